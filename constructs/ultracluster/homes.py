"""File systems for home directories: Amazon EFS, and FSx for OpenZFS with quotas."""

from collections.abc import Mapping

from aws_cdk import Duration, RemovalPolicy, Size, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.arguments import construct_name, together, wrong_types
from ultracluster.domain import homes as rules
from ultracluster.domain.homes import OpenZfsCompression, OpenZfsDeploymentType, OpenZfsSpec
from ultracluster.domain.violations import InvalidArguments, Violation
from ultracluster.placement import Subnet, subnet_in
from ultracluster.signatures import readable

_DEFAULTS = OpenZfsSpec()
_EXPORT_OPTIONS = ["rw", "crossmnt", "no_root_squash"]
"""As ParallelCluster's own /home: root of a node creates directories of users."""


class _Homes(Construct):
    security_group: ec2.SecurityGroup

    @property
    def connections(self) -> ec2.Connections:
        """Its security group; what carries it reaches it."""
        return ec2.Connections(security_groups=[self.security_group], default_port=ec2.Port.tcp(rules.NFS_PORT))


@readable
class ElasticFileSystem(_Homes):
    """Define an Amazon EFS file system for home directories.

    It is encrypted, takes any throughput (elastic), and is backed up daily by AWS Backup, which keeps a backup for 35
    days. It takes connections that are encrypted alone, as `SharedStorage.efs` makes them, from clients that reach its
    mount target; ParallelCluster signs none with IAM.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        vpc: Where it is. [change: new file system]
        subnet: The subnet of its mount target, in the zone of the nodes; of a selection the first one. Default: the
            VPC's first private subnet, else its first isolated one. [change: at once, to one in another zone]
        kms_key: Encrypts the data. Default: the key that EFS manages. [change: new file system]
        vpc_cidr: IPv4 block that may reach it. Default: only what carries the security group. [change: at once]
        removal_policy: Of the file system; mount target and security group go with the stack. Default: the data
            outlives the stack. [change: at once]

    Attributes:
        file_system_id: EFS's id of the file system.
        security_group: Carried by the mount target; by clients, too.

    Raises:
        InvalidArguments: Arguments are of other types; all of them are named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: Subnet | None = None,
        kms_key: kms.IKey | None = None,
        vpc_cidr: str | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        name = construct_name(type(self), scope, construct_id)
        place, broken = subnet_in(vpc, subnet, vpc_cidr, wrong_types(ElasticFileSystem.__init__, locals()))
        if place is None or broken:
            raise InvalidArguments(name, broken)
        super().__init__(scope, construct_id)
        self.security_group = _security_group(self, vpc, vpc_cidr, [ec2.Port.tcp(rules.NFS_PORT)], "Amazon EFS")
        made = efs.FileSystem(
            self,
            "Efs",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=[place]),
            security_group=self.security_group,
            encrypted=True,
            kms_key=kms_key,
            file_system_name=self.node.path,
            performance_mode=efs.PerformanceMode.GENERAL_PURPOSE,
            throughput_mode=efs.ThroughputMode.ELASTIC,
            enable_automatic_backups=True,
            # The policy that CDK writes by its flag denyAnonymousAccess lacks ClientMount: no node could mount it.
            allow_anonymous_access=True,
            file_system_policy=_through_mount_targets(),
            removal_policy=removal_policy,
        )
        self.file_system_id = made.file_system_id

    @staticmethod
    def from_file_system_attributes(
        scope: Construct, construct_id: str, *, file_system_id: str, security_group: ec2.ISecurityGroup
    ) -> efs.IFileSystem:
        """Refer to a file system that exists already, or that another app makes, as the CDK's own class does.

        Args:
            scope: Usually a stack.
            construct_id: Id in the scope.
            file_system_id: Such as ``fs-0123456789abcdef0``.
            security_group: Opens NFS among those who carry it; clients get it.

        Raises:
            InvalidArguments: Arguments are of other types.
        """
        name = construct_name("ElasticFileSystem.from_file_system_attributes", scope, construct_id)
        if broken := wrong_types(ElasticFileSystem.from_file_system_attributes, locals()):
            raise InvalidArguments(name, broken)
        return efs.FileSystem.from_file_system_attributes(
            scope, construct_id, file_system_id=file_system_id, security_group=security_group
        )


@readable
class OpenZfsFileSystem(_Homes):
    """Define an FSx for OpenZFS file system on SSD for home directories, with one volume in its root volume.

    Quotas and compression are those of a volume of its own, not of the root volume: CloudFormation makes another file
    system to change the root volume's. What is retained stays together: file system, volume and security group.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        vpc: Where it is. [change: new file system]
        subnet: The subnet of its file servers, best that of the nodes; of a selection the first one. Default: the VPC's
            first private subnet, else its first isolated one. [change: new file system]
        deployment_type: HA has a second file server that takes over; 2 is faster. Most Regions lack SINGLE_AZ_HA_1 or
            those of 2. [one of 'SINGLE_AZ_1', 'SINGLE_AZ_HA_1', 'SINGLE_AZ_2', 'SINGLE_AZ_HA_2'; default 'SINGLE_AZ_1';
            change: new file system]
        capacity_gib: Storage; it can grow, not shrink. [GiB; 64 to 524,288; default 256; change: at once, only up, by
            10 percent or more]
        throughput_mbps: MB/s of the file server. [MB/s; 64 to 10,240; 64, 128, 256, 512, 1024, 2048, 3072 or 4096 with
            SINGLE_AZ_1; 160, 320, 640, 1280, 2560, 3840, 5120, 7680 or 10240 with SINGLE_AZ_2; default 64; change: at
            once]
        compression: Of new data. [one of 'LZ4', 'ZSTD', 'NONE'; default 'LZ4'; change: at once]
        backup_retention_days: 0: no automatic backups. [days; 0 to 90; default 7; change: at once]
        quotas: GiB by user id; 500 at most. Default: no limits. [change: at once]
        kms_key: Encrypts the data. Default: the key that FSx manages. [change: new file system]
        vpc_cidr: IPv4 block that may reach it. Default: only what carries the security group. [change: at once]
        removal_policy: Of file system, volume and security group. Default: the data outlives the stack. [change: at
            once]

    Attributes:
        file_system_id: FSx's id of the file system.
        volume_id: Id of the volume.
        dns_name: Name of the file system in its VPC; clients mount ``DNS_NAME:/fsx/home``.
        security_group: Carried by the file system; by clients, too.

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
        deployment_type: OpenZfsDeploymentType = _DEFAULTS.deployment_type,
        capacity_gib: int | Size = _DEFAULTS.capacity_gib,
        throughput_mbps: int = _DEFAULTS.throughput_mbps,
        compression: OpenZfsCompression = _DEFAULTS.compression,
        backup_retention_days: int | Duration = _DEFAULTS.backup_retention_days,
        quotas: Mapping[int, int] | None = None,
        kms_key: kms.IKey | None = None,
        vpc_cidr: str | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        name = construct_name(type(self), scope, construct_id)
        place, broken = subnet_in(vpc, subnet, vpc_cidr, wrong_types(OpenZfsFileSystem.__init__, locals()))
        quotas = dict(quotas) if isinstance(quotas, Mapping) else {}
        spec, violations = OpenZfsSpec.checked(
            {
                "deployment_type": deployment_type,
                "capacity_gib": capacity_gib,
                "throughput_mbps": throughput_mbps,
                "compression": compression,
                "backup_retention_days": backup_retention_days,
            },
            lambda each: rules.openzfs_violations(each, region=Stack.of(scope).region),
        )
        broken = together(broken, violations)
        if len(quotas) > rules.MAX_QUOTAS:
            broken.append(Violation(("quotas",), len(quotas), f"at most {rules.MAX_QUOTAS}", "the most of a volume"))
        if spec is None or place is None or broken:
            raise InvalidArguments(name, broken)
        super().__init__(scope, construct_id)
        Tags.of(self).add("Name", self.node.path)
        ports = [make(port) for make in (ec2.Port.tcp, ec2.Port.udp) for port in rules.OPENZFS_PORTS]
        self.security_group = _security_group(self, vpc, vpc_cidr, ports, "FSx for OpenZFS")
        self.security_group.apply_removal_policy(removal_policy)
        file_system = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="OPENZFS",
            storage_capacity=spec.capacity_gib,
            storage_type="SSD",
            subnet_ids=[place.subnet_id],
            security_group_ids=[self.security_group.security_group_id],
            kms_key_id=None if kms_key is None else kms_key.key_arn,
            open_zfs_configuration=fsx.CfnFileSystem.OpenZFSConfigurationProperty(
                deployment_type=spec.deployment_type,
                throughput_capacity=spec.throughput_mbps,
                automatic_backup_retention_days=spec.backup_retention_days,
                # Of backups that FSx takes by itself: an inventory knows by the tags whose they are.
                copy_tags_to_backups=True,
            ),
        )
        if vpc_cidr is None:
            file_system.node.add_dependency(self.security_group)  # rules between members are resources of their own
        clients = fsx.CfnVolume.ClientConfigurationsProperty(clients=vpc_cidr or "*", options=_EXPORT_OPTIONS)
        volume = fsx.CfnVolume(
            self,
            "Volume",
            name=rules.VOLUME_NAME,
            volume_type="OPENZFS",
            open_zfs_configuration=fsx.CfnVolume.OpenZFSConfigurationProperty(
                parent_volume_id=file_system.attr_root_volume_id,
                data_compression_type=spec.compression,
                nfs_exports=[fsx.CfnVolume.NfsExportsProperty(client_configurations=[clients])],
                user_and_group_quotas=[
                    fsx.CfnVolume.UserAndGroupQuotasProperty(type="USER", id=user, storage_capacity_quota_gib=gib)
                    for user, gib in sorted(quotas.items())
                ],
            ),
        )
        for resource in (file_system, volume):
            resource.apply_removal_policy(removal_policy)
        self.file_system_id, self.volume_id = file_system.ref, volume.attr_volume_id
        self.dns_name = file_system.attr_dns_name

    @staticmethod
    def from_volume_attributes(
        scope: Construct, construct_id: str, *, volume_id: str, security_group: ec2.ISecurityGroup
    ) -> "ImportedOpenZfsVolume":
        """Refer to a volume that exists already, or that another app makes.

        Args:
            scope: Usually a stack.
            construct_id: Id in the scope.
            volume_id: Such as ``fsvol-0123456789abcdef0``.
            security_group: Opens the ports of NFS among those who carry it; clients get it.
        """
        return ImportedOpenZfsVolume(scope, construct_id, volume_id=volume_id, security_group=security_group)


class ImportedOpenZfsVolume(Construct):
    """A volume of FSx for OpenZFS that this app does not make.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        volume_id: Such as ``fsvol-0123456789abcdef0``.
        security_group: Opens the ports of NFS among those who carry it; clients get it.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, volume_id: str, security_group: ec2.ISecurityGroup
    ) -> None:
        name = construct_name("OpenZfsFileSystem.from_volume_attributes", scope, construct_id)
        if broken := wrong_types(ImportedOpenZfsVolume.__init__, locals()):
            raise InvalidArguments(name, broken)
        super().__init__(scope, construct_id)
        self.volume_id = volume_id
        self._group = security_group

    @property
    def connections(self) -> ec2.Connections:
        """Its security group; what carries it reaches it."""
        return ec2.Connections(security_groups=[self._group], default_port=ec2.Port.tcp(rules.NFS_PORT))


def _security_group(
    scope: Construct, vpc: ec2.IVpc, vpc_cidr: str | None, ports: list[ec2.Port], what: str
) -> ec2.SecurityGroup:
    group = ec2.SecurityGroup(scope, "SecurityGroup", vpc=vpc, description=f"{what}: homes and their clients")
    for port in ports:
        if vpc_cidr is None:
            group.add_ingress_rule(group, port, "NFS from its clients")
        else:
            group.add_ingress_rule(ec2.Peer.ipv4(vpc_cidr), port, "NFS from the VPC")
    return group


def _through_mount_targets() -> iam.PolicyDocument:
    """Return a policy that lets whoever reaches a mount target work as root, over encrypted connections alone.

    Users of nodes do not reach it: nodes/team/users.py.

    https://docs.aws.amazon.com/efs/latest/ug/access-control-block-public-access.html#what-is-a-public-policy
    """
    client = [f"elasticfilesystem:Client{each}" for each in ("Mount", "Write", "RootAccess")]
    return iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                principals=[iam.AnyPrincipal()],
                actions=client,
                conditions={"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}},
            ),
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=client,
                conditions={"Bool": {"aws:SecureTransport": "false"}},
            ),
        ]
    )
