"""The stack of what people have beside jobs: home directories, and the database of accounting. It outlives clusters."""

from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from stacks.network_stack import Network
from ultracluster.domain import accounting_rules
from ultracluster.domain.accounting import AccountingSpec
from ultracluster.network import IsolatedSubnet

if TYPE_CHECKING:
    from ultracluster.accounting_database import AccountingDatabase


class TeamStack(DeploymentStack):
    """Homes and database of the settings.

    Attributes:
        database: That of accounting; None: none is made.
    """

    def __init__(self, scope: Construct, settings: Settings, network: Network) -> None:
        super().__init__(scope, settings, "team", tags=settings.tags)
        summary: dict[str, object] = {}
        self.database: AccountingDatabase | None = None
        if settings.accounting is not None and settings.accounting.existing is None:
            self.database = self._database(settings, settings.accounting, network)
            summary["accounting"] = {
                "host": self.database.host,
                "port": self.database.port,
                "user": self.database.user,
                "password_secret_arn": self.database.password.secret_arn,
                "security_group_id": self.database.client_group.security_group_id,
                "retained": settings.accounting.database.retain,
            }
        cdk.CfnOutput(self, "Summary", value=self.to_json_string(summary), description="For scripts")

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
        return AccountingDatabase(
            self,
            "Accounting",
            vpc=network.vpc,
            subnets=subnets,
            instance_class=spec.instance_class,
            engine_version=spec.engine_version,
            storage_gib=spec.storage_gib,
            backup_retention_days=spec.backup_retention_days,
            removal_policy=policy,
        )
