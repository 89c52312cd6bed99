"""The stack of the network. It outlives clusters and file systems."""

import aws_cdk as cdk
from constructs import Construct

from config.sections import ExistingVpc, NetworkSettings
from config.settings import Settings
from stacks.deployment_stack import RETENTIONS, DeploymentStack
from ultracluster.network import Network, UltraClusterNetwork


class NetworkStack(DeploymentStack):
    """The network of the settings, or references to the one that they name."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, settings, "network", tags=settings.tags)
        self._zone_id = settings.zone_id
        if settings.network.existing is None:
            made = self._make(settings.network)
            self.network, nat_addresses = made.network, made.nat_addresses
            self._export(made.network)
            cdk.CfnOutput(
                self,
                "NatAddresses",
                value=cdk.Fn.join(", ", nat_addresses),
                description="Public addresses from which the nodes reach the internet, for allow lists elsewhere",
            )
        else:
            self.network, nat_addresses = self._refer_to(settings.network.existing, settings.network.cidr), []
        summary = {
            "vpc_id": self.network.vpc.vpc_id,
            "public_subnet_id": self.network.public_subnet.subnet_id,
            "private_subnet_id": self.network.private_subnet.subnet_id,
            "zone_id": self._zone_id,
            "nat_addresses": nat_addresses,
        }
        cdk.CfnOutput(self, "VpcId", value=self.network.vpc.vpc_id, description="The VPC")
        cdk.CfnOutput(self, "Summary", value=self.to_json_string(summary), description="For scripts")

    @property
    def availability_zones(self) -> list[str]:
        """The zone of the settings. Without this CDK would ask the account for the zones of its Region."""
        return [self._zone_id]

    def _make(self, settings: NetworkSettings) -> UltraClusterNetwork:
        retention_days = settings.flow_log_retention_days
        return UltraClusterNetwork(
            self,
            "Network",
            zone_id=self._zone_id,
            cidr=settings.cidr,
            public_subnet_cidr=settings.public_subnet_cidr,
            private_subnet_cidr=settings.private_subnet_cidr,
            nat_addresses=settings.nat_addresses,
            interface_endpoints=settings.endpoint_services,
            flow_log_retention=None if retention_days is None else RETENTIONS[retention_days],
        )

    def _export(self, network: Network) -> None:
        """Export what other stacks import, whoever does just now.

        CDK exports only what is imported. The last import of a value that leaves the code would so remove the export
        first, in a deployment that CloudFormation refuses because the export is still in use (docs/adr/0003).
        """
        public_subnet_id, private_subnet_id = network.public_subnet.subnet_id, network.private_subnet.subnet_id
        for value in (network.vpc.vpc_id, public_subnet_id, private_subnet_id, network.nat_gateway_id):
            self.export_value(value)

    def _refer_to(self, existing: ExistingVpc, cidr: str) -> Network:
        # CloudFormation refuses a stack without resources; this one makes nothing and costs nothing.
        cdk.CfnWaitConditionHandle(self, "NothingToMake")
        return Network.existing(
            self,
            vpc_id=existing.vpc_id,
            cidr=cidr,
            public_subnet_id=existing.public_subnet_id,
            private_subnet_id=existing.private_subnet_id,
            zone_id=self._zone_id,
        )
