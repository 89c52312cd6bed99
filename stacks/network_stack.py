"""The stack of the network. It outlives clusters and file systems."""

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from config.sections import ExistingVpc, NetworkSettings
from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from ultracluster.network import UltraClusterNetwork
from ultracluster.retention import RETENTION


@dataclass(frozen=True, kw_only=True)
class Network:
    """What the other stacks need to know of the network.

    Whatever is launched in a subnet and needs the internet must depend on ``vpc``: the gateways and routes are ready
    only then. Across stacks that makes a dependency between the stacks.

    Attributes:
        vpc: The VPC.
        public_subnet: Has a route to an internet gateway.
        private_subnet: Has a route to a NAT gateway, or the endpoints that nodes need.
        made: The construct; None: the VPC exists already.
    """

    vpc: ec2.IVpc
    public_subnet: ec2.ISubnet
    private_subnet: ec2.ISubnet
    made: UltraClusterNetwork | None = None


class NetworkStack(DeploymentStack):
    """The network of the settings, or references to the one that they name."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, settings, "network", tags=settings.all_tags)
        self._zone_id = settings.zone_id
        if settings.network.existing is None:
            made = self._make(settings.network, settings.endpoint_services)
            self.network = Network(
                vpc=made.vpc, public_subnet=made.public_subnet, private_subnet=made.private_subnet, made=made
            )
            self._export(made)
            cdk.CfnOutput(
                self,
                "NatAddresses",
                value=cdk.Fn.join(", ", made.nat_addresses),
                description="Public addresses from which the nodes reach the internet, for allow lists elsewhere",
            )
        else:
            self.network = self._refer_to(settings.network.existing, settings.network.cidr)
        cdk.CfnOutput(self, "VpcId", value=self.network.vpc.vpc_id, description="The VPC")
        private_subnet_id = self.network.private_subnet.subnet_id
        cdk.CfnOutput(self, "PrivateSubnetId", value=private_subnet_id, description="The subnet of compute nodes")

    @property
    def availability_zones(self) -> list[str]:
        """The zone of the settings. Without this CDK would ask the account for the zones of its Region."""
        return [self._zone_id]

    def _make(self, settings: NetworkSettings, endpoints: list[str]) -> UltraClusterNetwork:
        days = settings.flow_log_retention_days
        return UltraClusterNetwork(
            self,
            "Network",
            zone_id=self._zone_id,
            cidr=settings.cidr,
            public_subnet_cidr=settings.public_subnet_cidr,
            private_subnet_cidr=settings.private_subnet_cidr,
            nat_addresses=settings.nat_addresses,
            interface_endpoints=endpoints,
            flow_log_retention=None if days is None else RETENTION[days],
        )

    def _export(self, network: UltraClusterNetwork) -> None:
        """Export what other stacks import, whoever does just now.

        CDK exports only what is imported. The last import of a value that leaves the code would so remove the export
        first, in a deployment that CloudFormation refuses because the export is still in use (docs/adr/0003).
        """
        public_subnet_id, private_subnet_id = network.public_subnet.subnet_id, network.private_subnet.subnet_id
        for value in (network.vpc.vpc_id, public_subnet_id, private_subnet_id, network.nat_gateway_id):
            self.export_value(value)

    def _refer_to(self, existing: ExistingVpc, cidr: str) -> Network:
        """Refer to a network that exists already, without asking the account about it.

        The subnets have the routes, or endpoints, of those that `UltraClusterNetwork` makes, and the VPC DNS support
        and hostnames.
        """
        # CloudFormation refuses a stack without resources; this one makes nothing and costs nothing.
        cdk.CfnWaitConditionHandle(self, "NothingToMake")
        vpc = ec2.Vpc.from_vpc_attributes(
            self, "Vpc", vpc_id=existing.vpc_id, vpc_cidr_block=cidr, availability_zones=[self._zone_id]
        )
        public_subnet = ec2.Subnet.from_subnet_id(self, "PublicSubnet", existing.public_subnet_id)
        private_subnet = ec2.Subnet.from_subnet_id(self, "PrivateSubnet", existing.private_subnet_id)
        for subnet in (public_subnet, private_subnet):
            cdk.Annotations.of(subnet).acknowledge_warning(
                "@aws-cdk/aws-ec2:noSubnetRouteTableId", "no route is added to a network that is not ours"
            )
        return Network(vpc=vpc, public_subnet=public_subnet, private_subnet=private_subnet)
