"""The shared file system of an UltraCluster: FSx for Lustre, with links to S3."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import jsii
from aws_cdk import ArnFormat, Duration, Names, RemovalPolicy, Size, Stack, Tags, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.acknowledgements import acknowledge
from ultracluster.arguments import construct_name, of_type, together, wrong_types
from ultracluster.domain import lustre as rules
from ultracluster.domain.lustre import Compression, DataRepository, DeploymentType, FileEvent, LustreSpec
from ultracluster.domain.types import listed
from ultracluster.domain.violations import InvalidArguments, Path, Violation, is_token
from ultracluster.metric import FSX, metric_of
from ultracluster.placement import Subnet, subnet_in
from ultracluster.retention import RETENTION
from ultracluster.signatures import readable

_DEFAULTS = LustreSpec()
_LOG_RETENTION = RETENTION[_DEFAULTS.log_retention_days]
_PORTS = [ec2.Port.tcp_range(first, last) for first, last in rules.PORTS]
_LOG_GROUP_PREFIX = "/aws/fsx/"
"""https://docs.aws.amazon.com/fsx/latest/APIReference/API_LustreLogCreateConfiguration.html"""
_DEFAULT_PORT = ec2.Port.tcp_range(rules.PORTS[0][0], rules.PORTS[-1][-1])
"""Connections have one default; the ports between the two ranges are nobody's."""
_ARGUMENTS: Mapping[Path, Path] = {("kms_key_arn",): ("kms_key",)}
_LINK = DataRepository(path="/")
_SOME_KEY = "arn:aws:kms:us-west-2:123456789012:key/0"
"""Stands in the rules for a key whose ARN CloudFormation will know."""


@readable
@jsii.implements(ec2.IConnectable)
class ILustreFileSystem(Construct):
    """A file system of this app or of another.

    Attributes:
        file_system_id: FSx's id of the file system.
        dns_name: Name of the file system in its VPC.
    """

    file_system_id: str
    dns_name: str
    _connections: ec2.Connections

    @property
    def connections(self) -> ec2.Connections:
        """The security groups that open the Lustre ports. Clients carry them, too: servers also call clients."""
        return self._connections

    @property
    def file_system_arn(self) -> str:
        """ARN of the file system."""
        return Stack.of(self).format_arn(service="fsx", resource="file-system", resource_name=self.file_system_id)

    def grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow actions of the FSx API on the file system, such as ``fsx:CreateDataRepositoryTask``.

        To read and write files needs no permission of IAM: security groups and POSIX modes decide.
        """
        return iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=[self.file_system_arn])

    def metric(
        self, metric_name: str, *, statistic: str = "Sum", period: Duration | None = None, label: str | None = None
    ) -> cloudwatch.Metric:
        """Return one of https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html.

        Each minute has a value of each storage target: their Sum, over no more than that minute, is the file system's,
        the Minimum that of one target.

        Args:
            metric_name: Such as ``DataReadBytes``.
            statistic: Such as ``Sum`` or ``Minimum``.
            period: Default: a minute.
            label: Default: CloudWatch makes one.
        """
        dimensions = {"FileSystemId": self.file_system_id}
        return metric_of(self, FSX, dimensions, metric_name, statistic=statistic, period=period, label=label)

    def metric_free_capacity(self) -> cloudwatch.Metric:
        """Return the bytes that are free on all storage targets together."""
        return self.metric("FreeDataStorageCapacity")

    def metric_read_bytes(self) -> cloudwatch.Metric:
        """Return the bytes that clients read in a minute."""
        return self.metric("DataReadBytes")

    def metric_write_bytes(self) -> cloudwatch.Metric:
        """Return the bytes that clients wrote in a minute."""
        return self.metric("DataWriteBytes")


@readable
class LustreFileSystem(ILustreFileSystem):
    """Define an FSx for Lustre file system on SSD, its security group, its log group and its links to S3.

    What is retained stays when it leaves the stack, except in a creation that fails: file system, security group and
    bucket, together, because FSx's network interfaces hold the group. Log group and links always go with the stack; the
    data of a link stays on both sides. CloudFormation makes a new link before it removes the old one, so the bucket or
    prefix of a directory changes in two deployments: first without the link, then with the new one.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        vpc: Where it is. [change: new file system]
        subnet: The one subnet with its file servers, best that of the compute nodes; of a selection the first one.
            Default: the VPC's first private subnet, else its first isolated one. [change: new file system]
        deployment_type: PERSISTENT_2 for data to keep, SCRATCH_2 for data that can be lost. [one of 'SCRATCH_2',
            'PERSISTENT_1', 'PERSISTENT_2'; default 'PERSISTENT_2'; change: new file system]
        capacity_gib: Storage; it can grow, not shrink. [GiB; 1 to 2,147,483,647; 1200, 2400 or a multiple of 2400;
            default 4800; change: at once, only up]
        throughput_mbps_per_tib: MB/s per TiB; None with SCRATCH_2. [MB/s per TiB; 1 to 10,000; 50, 100 or 200 with
            PERSISTENT_1; 125, 250, 500 or 1000 with PERSISTENT_2; default 250; change: new file system]
        compression: Of new files. [one of 'LZ4', 'NONE'; default 'LZ4'; change: at once]
        metadata_iops: None: automatic, growing with the capacity. [1 to 192,000; 1500, 3000, 6000, 12000 or a multiple
            of 12000 up to 192000; default None; change: at once, only up]
        backup_retention_days: 0: no automatic backups. [days; 0 to 90; default 7; change: at once]
        kms_key: Encrypts the data. Default: the key that FSx manages. [change: new file system]
        security_group: Carried by the file system. Default: a new one. [change: new file system]
        vpc_cidr: IPv4 block that may reach the Lustre ports. Default: only what carries the security group may, such as
            the nodes of a cluster that mounts the file system, and what `connections` allows. [change: at once]
        log_group_name: Where FSx reports failed imports and exports; starts with ``/aws/fsx/``. Default: a name from
            the path of the construct. [change: at once]
        log_retention: How long these reports are kept. [days; one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365,
            400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653; default 90 days; change: at once]
        removal_policy: Of file system, security group and bucket. Default: the data outlives the stack. [change: at
            once]

    Attributes:
        file_system_id: FSx's id of the file system.
        mount_name: What clients mount, after ``dns_name@tcp:/``.
        dns_name: Name of the file system in its VPC.
        capacity_gib: Its nominal capacity.
        security_group: Carried by the file system; by clients, too.
        bucket: The bucket of links that name none; None as long as each names one.
        log_group: Where FSx reports failed imports and exports.

    Raises:
        InvalidArguments: Arguments break rules of FSx; all of them are named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: Subnet | None = None,
        deployment_type: DeploymentType = _DEFAULTS.deployment_type,
        capacity_gib: int | Size = _DEFAULTS.capacity_gib,
        throughput_mbps_per_tib: int | None = _DEFAULTS.throughput_mbps_per_tib,
        compression: Compression = _DEFAULTS.compression,
        metadata_iops: int | None = _DEFAULTS.metadata_iops,
        backup_retention_days: int | Duration = _DEFAULTS.backup_retention_days,
        kms_key: kms.IKey | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        vpc_cidr: str | None = None,
        log_group_name: str | None = None,
        log_retention: logs.RetentionDays = _LOG_RETENTION,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        name = construct_name(type(self), scope, construct_id)
        place, broken = subnet_in(vpc, subnet, vpc_cidr, wrong_types(LustreFileSystem.__init__, locals()))
        key_arn = getattr(kms_key, "key_arn", None)
        spec, violations = LustreSpec.checked(
            {
                "deployment_type": deployment_type,
                "capacity_gib": capacity_gib,
                "throughput_mbps_per_tib": throughput_mbps_per_tib,
                "compression": compression,
                "metadata_iops": metadata_iops,
                "backup_retention_days": backup_retention_days,
                "kms_key_arn": _SOME_KEY if Token.is_unresolved(key_arn) else key_arn,
            },
            rules.violations,
        )
        violations = [replace(each, path=_ARGUMENTS.get(each.path, each.path)) for each in violations]
        known = isinstance(log_group_name, str) and not is_token(log_group_name)
        if known and not str(log_group_name).startswith(_LOG_GROUP_PREFIX):
            allowed = f"a name that starts with {_LOG_GROUP_PREFIX}"
            violations.append(Violation(("log_group_name",), log_group_name, allowed, "FSx takes no other"))
        broken = together(broken, violations)
        if spec is None or place is None or broken:
            raise InvalidArguments(name, broken)

        super().__init__(scope, construct_id)
        self.capacity_gib = spec.capacity_gib
        self._spec, self._key_arn, self._placement = spec, key_arn, _placement(vpc, place)
        self._removal_policy = removal_policy
        Tags.of(self).add("Name", self.node.path)
        self.security_group = security_group or self._new_security_group(vpc)
        self._open(vpc_cidr)
        self._connections = ec2.Connections(security_groups=[self.security_group], default_port=_DEFAULT_PORT)
        self.log_group = logs.LogGroup(
            self,
            "LogGroup",
            log_group_name=log_group_name
            or f"{_LOG_GROUP_PREFIX}lustre/{Names.unique_resource_name(self, separator='-')}",
            retention=log_retention,
            removal_policy=RemovalPolicy.DESTROY,
        )
        file_system = self._add_file_system(place)
        if vpc_cidr is None:
            # Rules between members are resources of their own, and FSx refuses a group that does not have them yet.
            file_system.node.add_dependency(self.security_group)
        self.file_system_id = file_system.ref
        self.mount_name = file_system.attr_lustre_mount_name
        self.dns_name = file_system.attr_dns_name
        self.bucket: s3.Bucket | None = None
        self._links = Construct(self, "DataRepositories")
        self._linked: list[DataRepository] = []

    @staticmethod
    def from_lustre_file_system_attributes(
        scope: Construct, construct_id: str, *, file_system_id: str, security_group: ec2.ISecurityGroup
    ) -> "ImportedLustreFileSystem":
        """Refer to a file system that exists already, or that another app makes.

        Args:
            scope: Usually a stack.
            construct_id: Id in the scope.
            file_system_id: Such as ``fs-0123456789abcdef0``.
            security_group: Opens the Lustre ports among those who carry it; clients get it.
        """
        return ImportedLustreFileSystem(
            scope, construct_id, file_system_id=file_system_id, security_group=security_group
        )

    def add_data_repository(
        self,
        path: str,
        *,
        bucket: s3.IBucket | None = None,
        prefix: str = _LINK.prefix,
        import_events: Sequence[FileEvent] = tuple(_LINK.import_events),
        export_events: Sequence[FileEvent] = tuple(_LINK.export_events),
    ) -> None:
        """Link a directory to S3: at most 8, and none to a file system with automatic backups.

        Args:
            path: Directory in the file system, such as /data. [/ or an absolute path such as /data; change: two
                deployments]
            bucket: In the same Region. Default: a bucket of this construct. [the name of a general purpose bucket: 3 to
                63 of a-z, 0-9, hyphen and dot; change: two deployments]
            prefix: Prefix within the bucket, without a leading slash. [change: two deployments]
            import_events: Changes in S3 that show in the file system. [default 'NEW', 'CHANGED', 'DELETED'; change: at
                once]
            export_events: Changes in the file system that are written to S3. [default 'NEW', 'CHANGED', 'DELETED';
                change: at once]

        Raises:
            InvalidArguments: Arguments break rules of FSx, alone or with earlier links; all of them are named.
        """
        broken = wrong_types(LustreFileSystem.add_data_repository, locals())
        values = {
            "path": path,
            "bucket": _checkable_name(bucket),
            "prefix": prefix,
            "import_events": listed(import_events),
            "export_events": listed(export_events),
        }
        repository, violations = DataRepository.checked(values, self._link_violations)
        broken = together(broken, violations)
        if repository is None or broken:
            raise InvalidArguments(f"{self.node.path}.add_data_repository", broken)
        self._linked.append(repository)
        if bucket is None:
            bucket = self.bucket = self.bucket or self._add_bucket()
        self._add_link(repository, bucket)

    def shared_storage_name(self, mount_dir: str) -> str:
        """Return the ``Name`` under which ParallelCluster mounts the file system on a directory.

        It changes whenever CloudFormation would make a new file system, because ParallelCluster takes another one under
        another name alone.
        """
        stack = Stack.of(self)
        spec = self._spec.model_copy(update={"mount_dir": mount_dir, "kms_key_arn": stack.resolve(self._key_arn)})
        # The name of a nested stack is a token, whose text depends on how many others there are.
        name = stack.node.addr if Token.is_unresolved(stack.stack_name) else stack.stack_name
        return rules.shared_storage_name(spec, stack_name=name, subnet=stack.resolve(self._placement))

    def _link_violations(self, link: DataRepository) -> Iterator[Violation]:
        """Yield what FSx would refuse in one more link, by the arguments of `add_data_repository`."""
        for each in rules.repository_violations(self._spec, [*self._linked, link]):
            of_link = each.path[0] == "data_repositories" and len(each.path) > 1
            yield replace(each, path=each.path[2:] if of_link else each.path[-1:])

    def _new_security_group(self, vpc: ec2.IVpc) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(self, "SecurityGroup", vpc=vpc, description=rules.SECURITY_GROUP_DESCRIPTION)
        group.apply_removal_policy(self._removal_policy)
        return group

    def _open(self, vpc_cidr: str | None) -> None:
        peer: ec2.IPeer = self.security_group if vpc_cidr is None else ec2.Peer.ipv4(vpc_cidr)
        whence = "its clients" if vpc_cidr is None else "the VPC"
        for port in _PORTS:
            self.security_group.add_ingress_rule(peer, port, f"Lustre from {whence}")

    def _add_file_system(self, subnet: ec2.ISubnet) -> fsx.CfnFileSystem:
        """Define the file system by its resource: the construct of CDK has neither metadata modes nor logging.

        CopyTagsToBackups and EfaEnabled are left alone: a change of the former makes a new file system.
        """
        spec, metadata = self._spec, None
        if spec.deployment_type == "PERSISTENT_2":
            metadata = fsx.CfnFileSystem.MetadataConfigurationProperty(
                mode="AUTOMATIC" if spec.metadata_iops is None else "USER_PROVISIONED", iops=spec.metadata_iops
            )
        file_system = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=rules.VERSION,
            storage_capacity=spec.capacity_gib,
            storage_type="SSD",
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            kms_key_id=self._key_arn,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type=spec.deployment_type,
                per_unit_storage_throughput=spec.throughput_mbps_per_tib,
                data_compression_type=spec.compression,
                metadata_configuration=metadata,
                automatic_backup_retention_days=spec.backup_retention_days if spec.persistent else None,
            ),
        )
        # An override, because the CDK's own property is from 2025.
        logging = {"Level": "WARN_ERROR", "Destination": self._log_destination()}
        file_system.add_property_override("LustreConfiguration.LogConfiguration", logging)
        file_system.apply_removal_policy(self._removal_policy)
        return file_system

    def _log_destination(self) -> str:
        """Return the log group's plain ARN, without the ``:*`` that CloudFormation appends."""
        return Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=self.log_group.log_group_name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def _add_bucket(self) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(7))],
            removal_policy=self._removal_policy,
            auto_delete_objects=self._removal_policy is RemovalPolicy.DESTROY,
        )
        if bucket.policy is not None:
            bucket.policy.apply_removal_policy(self._removal_policy)
        reason = (
            "only the file system and the account's own people reach this bucket; CloudTrail data events tell who did "
            "what where that is wanted, without a second bucket to keep"
        )
        acknowledge(bucket, "S1", reason)
        return bucket

    def _add_link(self, repository: DataRepository, bucket: s3.IBucket) -> None:
        prefix = repository.prefix.strip("/")
        kind = fsx.CfnDataRepositoryAssociation
        imports = kind.AutoImportPolicyProperty(events=list(repository.import_events))
        exports = kind.AutoExportPolicyProperty(events=list(repository.export_events))
        events = kind.S3Property(
            auto_import_policy=imports if repository.import_events else None,
            auto_export_policy=exports if repository.export_events else None,
        )
        # The id follows the directory: a link that moves in the list is still the same one.
        link = kind(
            self._links,
            repository.path.strip("/") or "Root",
            file_system_id=self.file_system_id,
            file_system_path=repository.path,
            data_repository_path=f"s3://{bucket.bucket_name}/{prefix}/" if prefix else f"s3://{bucket.bucket_name}",
            batch_import_meta_data_on_create=True,
            s3=events if repository.import_events or repository.export_events else None,
        )
        # On the policy, too, and on what empties the bucket: the link must be gone first, or it fills it again.
        link.node.add_dependency(bucket)


class ImportedLustreFileSystem(ILustreFileSystem):
    """A file system that this app does not make."""

    def __init__(
        self, scope: Construct, construct_id: str, *, file_system_id: str, security_group: ec2.ISecurityGroup
    ) -> None:
        name = construct_name("LustreFileSystem.from_lustre_file_system_attributes", scope, construct_id)
        if broken := wrong_types(ImportedLustreFileSystem.__init__, locals()):
            raise InvalidArguments(name, broken)
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self.file_system_id = file_system_id
        self.dns_name = f"{file_system_id}.fsx.{stack.region}.{stack.url_suffix}"
        self._connections = ec2.Connections(security_groups=[security_group], default_port=_DEFAULT_PORT)


def _checkable_name(bucket: s3.IBucket | None) -> str | None:
    """Return the name of a bucket, or a name for the rules of one that CloudFormation will name; None: it is none."""
    if bucket is None or of_type(bucket, s3.IBucket, ()):
        return None
    return bucket.node.addr if Token.is_unresolved(bucket.bucket_name) else bucket.bucket_name


def _placement(vpc: ec2.IVpc, subnet: ec2.ISubnet) -> list[object]:
    """Return what identifies a subnet: another value means another subnet."""
    vpc_resource, subnet_resource = vpc.node.default_child, subnet.node.default_child
    if isinstance(vpc_resource, ec2.CfnVPC) and isinstance(subnet_resource, ec2.CfnSubnet):
        zone = subnet_resource.availability_zone_id or subnet_resource.availability_zone
        return [vpc_resource.cidr_block, subnet_resource.cidr_block, zone]
    return [vpc.vpc_id, subnet.subnet_id]
