"""The network of an UltraCluster: one public and one private subnet in one availability zone."""

import re
from collections.abc import Sequence
from functools import cache
from typing import cast

from aws_cdk import Annotations, Duration, RemovalPolicy, Stack, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultracluster.acknowledgements import acknowledge
from ultracluster.arguments import construct_name, together, until_looked_up, wrong_types
from ultracluster.domain import addresses
from ultracluster.domain import network as rules
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.types import ZONE_ID_PATTERN, listed
from ultracluster.domain.violations import InvalidArguments, Violation, below, dotted, is_token
from ultracluster.metric import NAT_GATEWAY, metric_of
from ultracluster.retention import RETENTION
from ultracluster.signatures import readable

_DEFAULTS = NetworkSpec()
_FLOW_LOG_RETENTION = (
    None if _DEFAULTS.flow_log_retention_days is None else RETENTION[_DEFAULTS.flow_log_retention_days]
)


_COMMON_ENDPOINTS = frozenset({*rules.PARALLELCLUSTER_ENDPOINTS, *rules.LOGIN_NODE_ENDPOINTS, "ssm", "ssmmessages"})
"""Names for which the CDK is not asked, which takes a third of a second."""


@readable
class IUltraClusterNetwork(Construct):
    """A network of this app or of another.

    Attributes:
        vpc: The VPC; its first public and private subnets are the two.
        public_subnet: Has a route to an internet gateway.
        private_subnet: Has a route to a NAT gateway.
        nat_gateway_id: The NAT gateway.
    """

    vpc: ec2.IVpc
    public_subnet: ec2.ISubnet
    private_subnet: ec2.ISubnet
    nat_gateway_id: str
    _place_of_nat_gateway: str

    @property
    def place_of_nat_gateway(self) -> str:
        """What tells the NAT gateway from others: the block of its subnet, or its id."""
        return self._place_of_nat_gateway

    def metric_nat_gateway(
        self, metric_name: str, *, statistic: str = "Sum", period: Duration | None = None, label: str | None = None
    ) -> cloudwatch.Metric:
        """Return one of https://docs.aws.amazon.com/vpc/latest/userguide/metrics-dimensions-nat-gateway.html.

        Args:
            metric_name: Such as ``ErrorPortAllocation``.
            statistic: Such as ``Sum`` or ``Maximum``.
            period: Default: a minute.
            label: Default: CloudWatch makes one.
        """
        dimensions = {"NatGatewayId": self.nat_gateway_id}
        return metric_of(self, NAT_GATEWAY, dimensions, metric_name, statistic=statistic, period=period, label=label)


@readable
class UltraClusterNetwork(IUltraClusterNetwork):
    """Define a VPC with a public subnet (head node, NAT gateway) and a private one (compute nodes, file system).

    The subnets are placed by zone id, which is the same place in every account. As for any ``ec2.Vpc``, CDK asks the
    account for its zones when the stack has account and Region, and keeps the answer in ``cdk.context.json``; nothing
    here depends on it. A stack that overrides ``availability_zones`` needs no account to synthesize.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        zone_id: Such as ``usw2-az4``; Trn1 is not in every zone. [change: new deployment]
        cidr: IPv4 block of the VPC. [an IPv4 block such as 10.0.0.0/16, /16 to /28; default '10.0.0.0/16'; change: new
            deployment]
        public_subnet_cidr: Block of the public subnet. [an IPv4 block such as 10.0.0.0/16, /16 to /28; default
            '10.0.0.0/24'; change: new deployment]
        private_subnet_cidr: Block of the private subnet. [an IPv4 block such as 10.0.0.0/16, /16 to /28; default
            '10.0.64.0/18'; change: new deployment]
        nat_addresses: Public addresses of the NAT gateway; each carries 55,000 connections to a destination
            (https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-basics.html). [1 to 8; default 1; change: at
            once]
        interface_endpoints: Services by their short names, such as ``ssm`` or ``ecr.api``; ``parallelcluster`` means
            those that a cluster without internet access needs; login nodes need ``autoscaling`` and
            ``elasticloadbalancing``, too. [default empty; change: at once]
        flow_log_retention: How long flow logs are kept; None: no flow logs. [days; default 90 days; change: at once]

    Attributes:
        vpc: The VPC; its public and its private subnets are the two.
        public_subnet: Has a route to an internet gateway.
        private_subnet: Has a route to a NAT gateway.
        nat_gateway_id: The NAT gateway.
        nat_addresses: The public IPv4 addresses under which the private subnet is seen.

    Raises:
        InvalidArguments: Arguments break rules of Amazon VPC; all of them are named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        zone_id: str,
        cidr: str = _DEFAULTS.cidr,
        public_subnet_cidr: str = _DEFAULTS.public_subnet_cidr,
        private_subnet_cidr: str = _DEFAULTS.private_subnet_cidr,
        nat_addresses: int = _DEFAULTS.nat_addresses,
        interface_endpoints: Sequence[str] = tuple(_DEFAULTS.interface_endpoints),
        flow_log_retention: logs.RetentionDays | None = _FLOW_LOG_RETENTION,
    ) -> None:
        name = construct_name(type(self), scope, construct_id)
        broken = wrong_types(UltraClusterNetwork.__init__, locals())
        region = Stack.of(scope).region
        spec, violations = NetworkSpec.checked(
            {
                "cidr": cidr,
                "public_subnet_cidr": public_subnet_cidr,
                "private_subnet_cidr": private_subnet_cidr,
                "nat_addresses": nat_addresses,
                "interface_endpoints": listed(interface_endpoints),
            },
            rules.violations,
        )
        broken = together(broken, [*violations, *_zone_violations(region, zone_id)])
        if spec is None or broken:
            raise InvalidArguments(name, broken)

        super().__init__(scope, construct_id)
        vpc = _Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            enable_dns_support=True,
            enable_dns_hostnames=True,
            subnet_configuration=[],
            nat_gateways=0,
        )
        # All else is put below the VPC: a dependency on the VPC is then one on the routes, too.
        public_subnet = _PublicSubnet(
            vpc,
            "PublicSubnet",
            availability_zone=zone_id,
            cidr_block=public_subnet_cidr,
            vpc_id=vpc.vpc_id,
            map_public_ip_on_launch=True,
        )
        private_subnet = _PrivateSubnet(
            vpc,
            "PrivateSubnet",
            availability_zone=zone_id,
            cidr_block=private_subnet_cidr,
            vpc_id=vpc.vpc_id,
            map_public_ip_on_launch=False,
        )
        for subnet in (public_subnet, private_subnet):
            _place_by_zone_id(subnet, zone_id)

        vpc.hold(public_subnet, private_subnet)
        self.vpc: ec2.Vpc = vpc
        self.public_subnet: ec2.ISubnet = public_subnet
        self.private_subnet: ec2.ISubnet = private_subnet
        self.nat_gateway_id, self.nat_addresses = self._connect(vpc, public_subnet, private_subnet, nat_addresses)
        self._place_of_nat_gateway = public_subnet_cidr
        self._add_gateway_endpoints(vpc, [public_subnet, private_subnet])
        if spec.endpoint_services:
            unknown = {*spec.interface_endpoints} - {rules.PRESET, *_COMMON_ENDPOINTS}
            for each in rules.endpoint_warnings(spec, _services()) if unknown else ():
                Annotations.of(self).add_warning_v2("ultracluster:endpointService", f"{dotted(each.path)}: {each}")
            self._add_interface_endpoints(vpc, private_subnet, cidr, spec.endpoint_services)
        if flow_log_retention is None:
            acknowledge(vpc, "VPC7", "flow logs cost; the caller wants none")
        else:
            self._add_flow_log(vpc, flow_log_retention)

    @staticmethod
    def from_network_attributes(
        scope: Construct,
        construct_id: str,
        *,
        vpc_id: str,
        availability_zone: str,
        public_subnet_id: str,
        private_subnet_id: str,
        nat_gateway_id: str,
    ) -> IUltraClusterNetwork:
        """Refer to a network that exists already, or that another app makes, such as for `ClusterMonitoring`.

        Args:
            scope: Usually a stack.
            construct_id: Id in the scope.
            vpc_id: Such as ``vpc-0123456789abcdef0``.
            availability_zone: Name of the zone of both subnets, such as ``us-west-2d``.
            public_subnet_id: Such as ``subnet-0123456789abcdef0``.
            private_subnet_id: Such as ``subnet-0123456789abcdef1``.
            nat_gateway_id: Such as ``nat-0123456789abcdef0``.

        Raises:
            InvalidArguments: Arguments are of other types, or no such ids.
        """
        name = construct_name("UltraClusterNetwork.from_network_attributes", scope, construct_id)
        broken = wrong_types(UltraClusterNetwork.from_network_attributes, locals())
        if isinstance(availability_zone, str) and re.fullmatch(ZONE_ID_PATTERN, availability_zone):
            allowed = "the name of a zone such as us-west-2d"
            broken.append(Violation(("availability_zone",), availability_zone, allowed, "it is the id of one"))
        if broken:
            raise InvalidArguments(name, broken)
        network = IUltraClusterNetwork(scope, construct_id)
        network.vpc = ec2.Vpc.from_vpc_attributes(
            network,
            "Vpc",
            vpc_id=vpc_id,
            availability_zones=[availability_zone],
            public_subnet_ids=[public_subnet_id],
            private_subnet_ids=[private_subnet_id],
        )
        [network.public_subnet], [network.private_subnet] = network.vpc.public_subnets, network.vpc.private_subnets
        network.nat_gateway_id = network._place_of_nat_gateway = nat_gateway_id
        return network

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


@readable
class IsolatedSubnet(ec2.PrivateSubnet):
    """A subnet without a route out of its VPC, placed by zone id.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        vpc: Where it is. [change: new subnet]
        zone_id: Such as ``usw2-az4``. [change: new subnet]
        cidr: Block of the subnet. [change: new subnet]

    Raises:
        InvalidArguments: Arguments break rules of Amazon VPC; all of them are named.
    """

    def __init__(self, scope: Construct, construct_id: str, *, vpc: ec2.IVpc, zone_id: str, cidr: str) -> None:
        name = construct_name(type(self), scope, construct_id)
        broken = wrong_types(IsolatedSubnet.__init__, locals())
        broken = [*broken, *_zone_violations(Stack.of(scope).region, zone_id)]
        if isinstance(cidr, str) and not is_token(until_looked_up(cidr)):
            broken += addresses.block_violations({"cidr": cidr})
        if broken:
            raise InvalidArguments(name, broken)
        super().__init__(
            scope,
            construct_id,
            availability_zone=zone_id,
            cidr_block=cidr,
            vpc_id=vpc.vpc_id,
            map_public_ip_on_launch=False,
        )
        _place_by_zone_id(self, zone_id)

    @property
    def availability_zone(self) -> str:
        """Name of the zone in the account, which CloudFormation knows."""
        return _zone_name(self)


def _zone_violations(region: str, zone_id: object) -> list[Violation]:
    """Return why a text is no zone id, or none of the Region."""
    if not isinstance(zone_id, str):
        return []
    return below(("zone_id",), rules.zone_violations(None if Token.is_unresolved(region) else region, zone_id))


class _Vpc(ec2.Vpc):
    """A VPC whose subnets are made beside CDK's own way, which knows no zone ids, and are its subnets all the same."""

    _public: ec2.ISubnet | None = None
    _private: ec2.ISubnet | None = None

    def hold(self, public_subnet: ec2.ISubnet, private_subnet: ec2.ISubnet) -> None:
        """Take the subnets."""
        self._public, self._private = public_subnet, private_subnet

    @property
    def public_subnets(self) -> list[ec2.ISubnet]:
        return [self._public] if self._public else []

    @property
    def private_subnets(self) -> list[ec2.ISubnet]:
        return [self._private] if self._private else []


class _PublicSubnet(ec2.PublicSubnet):
    @property
    def availability_zone(self) -> str:
        return _zone_name(self)


class _PrivateSubnet(ec2.PrivateSubnet):
    @property
    def availability_zone(self) -> str:
        return _zone_name(self)


def _zone_name(subnet: ec2.Subnet) -> str:
    """Return the name of a subnet's zone in the account, which CloudFormation knows."""
    return cast(ec2.CfnSubnet, subnet.node.default_child).attr_availability_zone


def _place_by_zone_id(subnet: ec2.Subnet, zone_id: str) -> None:
    resource = cast(ec2.CfnSubnet, subnet.node.default_child)
    resource.availability_zone = None
    resource.availability_zone_id = zone_id


@cache
def _services() -> frozenset[str]:
    """Return the short names of services that have interface endpoints, as this version of the CDK knows them."""
    kind = ec2.InterfaceVpcEndpointAwsService
    return frozenset(getattr(kind, each).short_name for each in dir(kind) if each.isupper())


def _pascal_case(short_name: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[.-]", short_name))
