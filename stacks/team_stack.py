"""The stack of what people have beside jobs: home directories, and the database of accounting. It outlives clusters."""

from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from stacks.network_stack import Network
from ultracluster.acknowledgements import acknowledge
from ultracluster.domain import accounting_rules
from ultracluster.domain.accounting import AccountingSpec
from ultracluster.domain.homes import HOME, HomesSpec
from ultracluster.network import IsolatedSubnet
from ultracluster.shared_storage import SharedStorage

if TYPE_CHECKING:
    from ultracluster.accounting_database import AccountingDatabase

HOMES_NAME = "homes"
"""ParallelCluster's name of what is mounted on /home, which never changes in the life of a cluster."""


class TeamStack(DeploymentStack):
    """Homes and database of the settings.

    Attributes:
        homes: What is mounted on /home; None: none is made.
        database: That of accounting; None: none is made.
    """

    def __init__(self, scope: Construct, settings: Settings, network: Network) -> None:
        super().__init__(scope, settings, "team", tags=settings.all_tags)
        self.homes: SharedStorage | None = None
        if settings.homes is not None and settings.homes.is_made:
            self.homes, file_system_id = self._make_homes(settings, settings.homes, network)
            cdk.CfnOutput(self, "HomesFileSystemId", value=file_system_id, description="The file system of /home")
        self.database: AccountingDatabase | None = None
        if settings.accounting is not None and settings.accounting.existing is None:
            self.database = self._database(settings, settings.accounting, network)
            for name, value, description in (
                ("DatabaseHost", self.database.host, "The database of accounting"),
                ("DatabaseSecretArn", self.database.password.secret_arn, "Its password"),
                ("DatabaseClients", self.database.client_group.security_group_id, "Security group that reaches it"),
            ):
                cdk.CfnOutput(self, name, value=value, description=description)

    def _make_homes(self, settings: Settings, homes: HomesSpec, network: Network) -> tuple[SharedStorage, str]:
        """Return the homes to mount, and the id of their file system.

        References are strong: CloudFormation replaces no file system, and deletes none, that a cluster has on /home.
        """
        from ultracluster.homes import ElasticFileSystem, OpenZfsFileSystem  # noqa: PLC0415 -- most have none

        keep, go = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE, cdk.RemovalPolicy.DESTROY
        key = None if homes.kms_key_arn is None else kms.Key.from_key_arn(self, "HomesKey", homes.kms_key_arn)
        subnet, cidr, policy = network.private_subnet, settings.network.cidr, keep if homes.retain else go
        if homes.type == "efs":
            elastic = ElasticFileSystem(
                self,
                "Homes",
                vpc=network.vpc,
                subnet=subnet,
                kms_key=key,
                vpc_cidr=cidr,
                removal_policy=policy,
            )
            cdk.CfnOutput(self, "HomesBackupRoleArn", value=self._backup_role(), description="AWS Backup uses it")
            storage, name = SharedStorage.efs(elastic, HOME, name=HOMES_NAME), elastic.file_system_id
        else:
            volume = OpenZfsFileSystem(
                self,
                "Homes",
                vpc=network.vpc,
                subnet=subnet,
                **homes.openzfs.model_dump(exclude={"quota_gib_per_user"}),
                quotas=homes.quotas([user.uid for user in settings.users]),
                kms_key=key,
                vpc_cidr=cidr,
                removal_policy=policy,
            )
            storage, name = SharedStorage.openzfs(volume, HOME, name=HOMES_NAME), volume.file_system_id
        # Whoever imports it just now: see the network's exports.
        self.export_value(storage.mount.file_system_id)
        for group in storage.security_groups:
            self.export_value(group.security_group_id)
        return storage, name

    def _backup_role(self) -> str:
        """Return the ARN of the role for a backup on demand, which `destroy` takes; daily ones have EFS's own role."""
        policy = "service-role/AWSBackupServiceRolePolicyForBackup"
        role = iam.Role(
            self,
            "HomesBackupRole",
            assumed_by=iam.ServicePrincipal("backup.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(policy)],
        )
        finding = f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]"
        acknowledge(role, finding, "AWS Backup documents no smaller one, and only AWS Backup may assume the role")
        return role.role_arn

    def _database(self, settings: Settings, accounting: AccountingSpec, network: Network) -> "AccountingDatabase":
        from ultracluster.accounting_database import AccountingDatabase  # noqa: PLC0415 -- RDS, which most have not

        spec = accounting.database
        policy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if spec.retain else cdk.RemovalPolicy.DESTROY
        zones = accounting_rules.zone_ids(spec, settings.zone_id)
        blocks = accounting_rules.subnet_cidrs(spec, settings.network)
        subnets = [
            IsolatedSubnet(self, f"DatabaseSubnet{number}", vpc=network.vpc, zone_id=zone, cidr=block)
            for number, (zone, block) in enumerate(zip(zones, blocks, strict=True), start=1)
        ]
        for subnet in subnets:  # what stays in them keeps them
            for each in subnet.node.find_all():
                if isinstance(each, cdk.CfnResource):
                    each.apply_removal_policy(policy)
        before = [each for each in self.node.children if not isinstance(each, cdk.CfnOutput)]
        return AccountingDatabase(
            self,
            "Accounting",
            vpc=network.vpc,
            subnets=subnets,
            **spec.model_dump(exclude={"retain", "second_zone_id", "subnet_cidrs"}),
            dependencies=before,
            removal_policy=policy,
        )
