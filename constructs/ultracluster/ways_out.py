"""Whether nodes reach AWS's services, by what an app makes: asked when it is whole, because routes may come late."""

import re
from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import Annotations, CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultracluster.arguments import is_not_looked_up
from ultracluster.domain.network import LOGIN_NODE_ENDPOINTS, PARALLELCLUSTER_ENDPOINTS
from ultracluster.domain.violations import Path, dotted
from ultracluster.placement import may_be_same

_ROUTE = "AWS::EC2::Route"
_RAW = (_ROUTE, "AWS::EC2::VPNGatewayRoutePropagation")
_GATEWAYS = ("s3", "dynamodb")
_TOKEN = re.compile(r"\$\{Token\[[^\]]*\]\}")
"""Parts of a name that only CloudFormation knows: the Region, and what names in China begin with."""
_REMEDY = (
    "Give its subnets a route to a NAT gateway (ec2.Vpc(nat_gateways=1), or subnets of type PRIVATE_WITH_EGRESS), "
    "choose other subnets, or make these endpoints. Where routes are made beside this app, refer to the subnets by "
    "ec2.Subnet.from_subnet_id."
)


def shut_in(scope: Construct, vpc: ec2.IVpc, subnets: Mapping[Path, ec2.ISubnet]) -> Iterator[str]:
    """Yield which nodes have no way to AWS's services.

    Subnets that the app does not make have routes that nobody knows here.

    Args:
        scope: The cluster.
        vpc: Where it is.
        subnets: Those of nodes, by the arguments that say so.
    """
    without = [
        (subnet.node.path, places)
        for subnet, places in _inverted(subnets)
        if isinstance(subnet, ec2.Subnet) and not _has_route(scope, subnet)
    ]
    made = _endpoints(scope, vpc) if without else set()
    for path, places in without:
        needed = _needed(places)
        if missing := [each for each in needed if each not in made]:
            named = ", ".join(dotted(each) for each in places)
            yield (
                f"{named}: {path} has no route out of its VPC, and the VPC no endpoint for {', '.join(missing)}: nodes "
                f"would not reach AWS, and never be ready. {_REMEDY}"
            )


def warn_of_imported(scope: Construct, vpc: ec2.IVpc, subnets: Mapping[Path, ec2.ISubnet]) -> None:
    """Warn where nodes are in a subnet that is called isolated, and is not made in this app."""
    isolated = {each.subnet_id for each in vpc.isolated_subnets if not is_not_looked_up(each.subnet_id)}
    places = [
        place
        for each, of_subnet in _inverted(subnets)
        if not isinstance(each, ec2.Subnet) and each.subnet_id in isolated
        for place in of_subnet
    ]
    if places:
        needed = ", ".join(_needed(places))
        named = ", ".join(dotted(each) for each in places)
        Annotations.of(scope).add_warning_v2(
            "ultracluster:isolatedSubnet",
            f"{named}: the subnet is isolated, and its VPC is not made in this app: whether nodes have a way to AWS "
            f"was not checked. Without one they need endpoints for {needed}.",
        )


def _inverted(subnets: Mapping[Path, ec2.ISubnet]) -> list[tuple[ec2.ISubnet, list[Path]]]:
    """Return each subnet once, with the nodes that are in it: to ask one is a call of the jsii kernel."""
    places: dict[int, tuple[ec2.ISubnet, list[Path]]] = {}
    for place, subnet in subnets.items():
        places.setdefault(id(subnet), (subnet, []))[1].append(place)
    return list(places.values())


def _needed(places: Sequence[Path]) -> list[str]:
    of_login_nodes = any(place[0] == "login_nodes" for place in places)
    return [*PARALLELCLUSTER_ENDPOINTS, *(LOGIN_NODE_ENDPOINTS if of_login_nodes else ()), *_GATEWAYS]


def _has_route(scope: Construct, subnet: ec2.Subnet) -> bool:
    """Return whether a subnet has a route for IPv4, beside those in its VPC and those of gateway endpoints.

    A gateway of a VPN propagates those that the other side tells it
    (https://docs.aws.amazon.com/vpn/latest/s2svpn/SetUpVPNConnections.html).
    """
    if any(isinstance(each, ec2.CfnRoute) and any(_tables(each)) for each in subnet.node.find_all()):
        return True
    table = subnet.route_table.route_table_id
    resources = [each for each in scope.node.root.node.find_all() if isinstance(each, CfnResource)]
    return any(may_be_same(each, table) for resource in resources for each in _tables(resource))


def _tables(resource: CfnResource) -> Iterator[str]:
    """Yield the route tables that get a route out of their VPC by a resource, whatever class of the CDK makes it."""
    if isinstance(resource, ec2.CfnRoute):
        if resource.destination_cidr_block is not None or resource.destination_prefix_list_id is not None:
            yield resource.route_table_id
    elif isinstance(resource, ec2.CfnVPNGatewayRoutePropagation):
        yield from resource.route_table_ids
    elif type(resource) is CfnResource and resource.cfn_resource_type in _RAW:
        properties = resource._cfn_properties
        if resource.cfn_resource_type != _ROUTE or {"DestinationCidrBlock", "DestinationPrefixListId"} & {*properties}:
            tables = properties.get("RouteTableIds", properties.get("RouteTableId", ""))
            yield from (each for each in (tables if isinstance(tables, list) else [tables]) if isinstance(each, str))


def _endpoints(scope: Construct, vpc: ec2.IVpc) -> set[str]:
    """Return the services for which a VPC has endpoints in this app."""
    every = (each for each in scope.node.root.node.find_all() if isinstance(each, ec2.CfnVPCEndpoint))
    of_vpc = (each for each in every if each.vpc_id == vpc.vpc_id)
    names = (_TOKEN.sub("", each.service_name) for each in of_vpc if each.service_name is not None)
    return {name.rpartition(".")[2] for name in names}
