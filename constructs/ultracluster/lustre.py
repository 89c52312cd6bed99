"""The shared file system of an UltraCluster: FSx for Lustre, with links to S3."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ultracluster.acknowledgements import acknowledge
from ultracluster.domain import lustre as rules
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.network import Network


class LustreFileSystem(Construct):
    """Define a file system in the private subnet, its security group, its log group and its links to S3.

    The specifications break no rules of ``ultracluster.domain.lustre``. What is retained stays when it leaves the
    stack, except in a creation that fails: file system, security group and bucket, together, because FSx's network
    interfaces hold the group. Log group and links always go with the stack; the data of a link stays on both sides.
    CloudFormation makes a new link before it removes the old one, so the bucket or prefix of a directory changes in two
    deployments: first without the link, then with the new one.

    Attributes:
        mount_name: What clients mount, after ``dns_name@tcp:/``.
        security_group: Opens the Lustre ports to the VPC, and everything outward. The file system carries it; clients
            must, too: servers also call clients.
        bucket: The bucket of the repositories that name none, or None when each names one.
        log_group: Where FSx reports failed imports and exports.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        spec: LustreSpec,
        network: Network,
        vpc_cidr: str,
        retain: bool,
        log_retention: logs.RetentionDays,
        repositories: Sequence[DataRepository] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self._removal_policy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retain else RemovalPolicy.DESTROY
        Tags.of(self).add("Name", self.node.path)
        self.security_group = self._add_security_group(network, vpc_cidr)
        self.log_group = logs.LogGroup(
            self,
            "LogGroup",
            log_group_name=f"/aws/fsx/lustre/{stack.stack_name}",
            retention=log_retention,
            removal_policy=RemovalPolicy.DESTROY,
        )
        file_system = self._add_file_system(spec, network)
        self.file_system_id = file_system.ref
        self.mount_name = file_system.attr_lustre_mount_name
        self.dns_name = file_system.attr_dns_name
        self.bucket = self._add_bucket() if any(each.bucket is None for each in repositories) else None
        links = Construct(self, "DataRepositories")
        for repository in repositories:
            self._add_link(links, repository)

    def _add_security_group(self, network: Network, vpc_cidr: str) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(self, "SecurityGroup", vpc=network.vpc, description=rules.SECURITY_GROUP_DESCRIPTION)
        for first, last in rules.PORTS:
            group.add_ingress_rule(ec2.Peer.ipv4(vpc_cidr), ec2.Port.tcp_range(first, last), "Lustre from the VPC")
        group.apply_removal_policy(self._removal_policy)
        return group

    def _add_file_system(self, spec: LustreSpec, network: Network) -> fsx.CfnFileSystem:
        """Define the file system by its resource: the construct of CDK has neither metadata modes nor logging.

        CopyTagsToBackups and EfaEnabled are left alone: a change of the former makes a new file system.
        """
        metadata = None
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
            subnet_ids=[network.private_subnet.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            kms_key_id=spec.kms_key_arn,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type=spec.deployment_type,
                per_unit_storage_throughput=spec.throughput_mbps_per_tib,
                data_compression_type=spec.compression,
                metadata_configuration=metadata,
                automatic_backup_retention_days=spec.backup_retention_days if spec.persistent else None,
                log_configuration=fsx.CfnFileSystem.LogConfigurationProperty(
                    level="WARN_ERROR", destination=self._log_destination()
                ),
            ),
        )
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

    def _add_link(self, scope: Construct, repository: DataRepository) -> None:
        name, prefix = repository.bucket, repository.prefix.strip("/")
        if name is None and self.bucket is not None:
            name = self.bucket.bucket_name
        kind = fsx.CfnDataRepositoryAssociation
        imports = kind.AutoImportPolicyProperty(events=list(repository.import_events))
        exports = kind.AutoExportPolicyProperty(events=list(repository.export_events))
        events = kind.S3Property(
            auto_import_policy=imports if repository.import_events else None,
            auto_export_policy=exports if repository.export_events else None,
        )
        # The id follows the directory: a link that moves in the list is still the same one.
        link = kind(
            scope,
            repository.path.strip("/") or "Root",
            file_system_id=self.file_system_id,
            file_system_path=repository.path,
            data_repository_path=f"s3://{name}/{prefix}/" if prefix else f"s3://{name}",
            batch_import_meta_data_on_create=True,
            s3=events if repository.import_events or repository.export_events else None,
        )
        if repository.bucket is None and self.bucket is not None:
            # On the policy, too, and on what empties the bucket: the link must be gone first, or it fills it again.
            link.node.add_dependency(self.bucket)
