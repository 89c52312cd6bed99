"""The network of an UltraCluster: one public and one private subnet in one availability zone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from aws_cdk import Annotations, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.acknowledgements import acknowledge


@dataclass(frozen=True)
class Network:
    """What other constructs need to know of a network.

    Whatever is launched in a subnet and needs the internet must depend on ``vpc``: the gateways and routes are ready
    only then. Across stacks that makes a dependency between the stacks.

    Attributes:
        vpc: The VPC.
        public_subnet: Has a route to an internet gateway.
        private_subnet: Has a route to a NAT gateway, or the endpoints that nodes need.
        nat_gateway_id: The NAT gateway; None in an existing VPC.
    """

    vpc: ec2.IVpc
    public_subnet: ec2.ISubnet
    private_subnet: ec2.ISubnet
    nat_gateway_id: str | None = None

    @classmethod
    def existing(
        cls, scope: Construct, *, vpc_id: str, cidr: str, public_subnet_id: str, private_subnet_id: str, zone_id: str
    ) -> "Network":
        """Refer to a network that exists already, without asking the account about it.

        The subnets have the routes, or endpoints, of those that are made here, and the VPC DNS support and hostnames.
        """
        vpc = ec2.Vpc.from_vpc_attributes(
            scope, "Vpc", vpc_id=vpc_id, vpc_cidr_block=cidr, availability_zones=[zone_id]
        )
        public_subnet = ec2.Subnet.from_subnet_id(scope, "PublicSubnet", public_subnet_id)
        private_subnet = ec2.Subnet.from_subnet_id(scope, "PrivateSubnet", private_subnet_id)
        for subnet in (public_subnet, private_subnet):
            Annotations.of(subnet).acknowledge_warning(
                "@aws-cdk/aws-ec2:noSubnetRouteTableId", "no route is added to a network that is not ours"
            )
        return cls(vpc=vpc, public_subnet=public_subnet, private_subnet=private_subnet)


class UltraClusterNetwork(Construct):
    """Define a VPC with a public subnet (head node, NAT gateway) and a private one (compute nodes, file system).

    The subnets are placed by zone id. The stack around it must override ``availability_zones``, or CDK asks the
    account for zone names that are never used. Each of the 1 to 8 public addresses of the NAT gateway carries 55,000
    connections to a destination (https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-basics.html). Interface
    endpoints are given by the service's short name, such as ``ssm`` or ``ecr.api``.

    Attributes:
        network: The VPC and its subnets.
        nat_addresses: The public IPv4 addresses under which the private subnet is seen.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        zone_id: str,
        cidr: str,
        public_subnet_cidr: str,
        private_subnet_cidr: str,
        nat_addresses: int,
        interface_endpoints: Sequence[str],
        flow_log_retention: logs.RetentionDays | None,
    ) -> None:
        super().__init__(scope, construct_id)
        vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            enable_dns_support=True,
            enable_dns_hostnames=True,
            subnet_configuration=[],
            nat_gateways=0,
        )
        # All else is put below the VPC: a dependency on the VPC is then one on the routes, too.
        public_subnet = ec2.PublicSubnet(
            vpc,
            "PublicSubnet",
            availability_zone=zone_id,
            cidr_block=public_subnet_cidr,
            vpc_id=vpc.vpc_id,
            map_public_ip_on_launch=True,
        )
        private_subnet = ec2.PrivateSubnet(
            vpc,
            "PrivateSubnet",
            availability_zone=zone_id,
            cidr_block=private_subnet_cidr,
            vpc_id=vpc.vpc_id,
            map_public_ip_on_launch=False,
        )
        for subnet in (public_subnet, private_subnet):
            _place_by_zone_id(subnet, zone_id)

        nat_gateway_id, self.nat_addresses = self._connect(vpc, public_subnet, private_subnet, nat_addresses)
        self.network = Network(
            vpc=vpc, public_subnet=public_subnet, private_subnet=private_subnet, nat_gateway_id=nat_gateway_id
        )
        self._add_gateway_endpoints(vpc, [public_subnet, private_subnet])
        if interface_endpoints:
            self._add_interface_endpoints(vpc, private_subnet, cidr, interface_endpoints)
        if flow_log_retention is None:
            acknowledge(vpc, "VPC7", "flow logs cost; the caller wants none")
        else:
            self._add_flow_log(vpc, flow_log_retention)

    def _connect(
        self, vpc: ec2.Vpc, public_subnet: ec2.PublicSubnet, private_subnet: ec2.PrivateSubnet, nat_addresses: int
    ) -> tuple[str, list[str]]:
        """Add the ways out, and return the NAT gateway's id and public addresses."""
        gateway = ec2.CfnInternetGateway(vpc, "InternetGateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            vpc, "InternetGatewayAttachment", vpc_id=vpc.vpc_id, internet_gateway_id=gateway.ref
        )
        public_subnet.add_default_internet_route(gateway.ref, attachment)

        addresses = [ec2.CfnEIP(vpc, f"NatAddress{number}", domain="vpc") for number in range(1, nat_addresses + 1)]
        for address in addresses:
            address.node.add_dependency(attachment)
        first, *others = (address.attr_allocation_id for address in addresses)
        nat_gateway = public_subnet.add_nat_gateway(first)
        if others:
            nat_gateway.secondary_allocation_ids = others
        private_subnet.add_default_nat_route(nat_gateway.ref)
        return nat_gateway.ref, [address.attr_public_ip for address in addresses]

    def _add_gateway_endpoints(self, vpc: ec2.Vpc, subnets: Sequence[ec2.ISubnet]) -> None:
        for construct_id, service in (
            ("S3Endpoint", ec2.GatewayVpcEndpointAwsService.S3),
            ("DynamoDbEndpoint", ec2.GatewayVpcEndpointAwsService.DYNAMODB),
        ):
            ec2.GatewayVpcEndpoint(
                vpc, construct_id, vpc=vpc, service=service, subnets=[ec2.SubnetSelection(subnets=subnets)]
            )

    def _add_interface_endpoints(
        self, vpc: ec2.Vpc, subnet: ec2.ISubnet, cidr: str, short_names: Sequence[str]
    ) -> None:
        security_group = ec2.SecurityGroup(
            vpc,
            "EndpointSecurityGroup",
            vpc=vpc,
            description="Interface endpoints: HTTPS from the VPC",
            allow_all_outbound=False,
        )
        security_group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(443), "HTTPS from the VPC")
        for short_name in short_names:
            ec2.InterfaceVpcEndpoint(
                vpc,
                f"{_pascal_case(short_name)}Endpoint",
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService(short_name),
                subnets=ec2.SubnetSelection(subnets=[subnet]),
                security_groups=[security_group],
                private_dns_enabled=True,
                open=False,
            )

    def _add_flow_log(self, vpc: ec2.Vpc, retention: logs.RetentionDays) -> None:
        log_group = logs.LogGroup(self, "FlowLogGroup", retention=retention, removal_policy=RemovalPolicy.DESTROY)
        ec2.FlowLog(
            self,
            "FlowLog",
            resource_type=ec2.FlowLogResourceType.from_vpc(vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(log_group),
            traffic_type=ec2.FlowLogTrafficType.ALL,
        )


def _place_by_zone_id(subnet: ec2.Subnet, zone_id: str) -> None:
    resource = cast(ec2.CfnSubnet, subnet.node.default_child)
    resource.availability_zone = None
    resource.availability_zone_id = zone_id


def _pascal_case(short_name: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[.-]", short_name))
