"""What the checks of an existing VPC must say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from scripts.preflight.check import Status
from scripts.preflight.network import free_addresses, subnets, vpc
from scripts.preflight.routes import network_acl, routes, s3_endpoint
from scripts.preflight.routes import private_head_node as private_head_node_check
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import GoodAccount

VPC = "vpc-0123456789abcdef0"
PUBLIC = "subnet-0123456789abcdef0"
PRIVATE = "subnet-0123456789abcdef1"
OTHER_VPC = "vpc-0fedcba9876543210"


def existing(raw: dict[str, Any]) -> None:
    """Use a VPC that exists."""
    raw["network"].update(nat_addresses=1, interface_endpoints=[], flow_log_retention_days=None)
    raw["network"]["existing"] = {"vpc_id": VPC, "public_subnet_id": PUBLIC, "private_subnet_id": PRIVATE}


def private_head_node(raw: dict[str, Any]) -> None:
    """Use a VPC that exists, and put nothing into its public subnet."""
    existing(raw)
    raw["cluster"]["head_node"]["public"] = False


def of_its_own(raw: dict[str, Any]) -> None:
    """Put the head node into the private subnet of a VPC that is made, with SSH from outside."""
    raw["cluster"]["head_node"].update(public=False, ssh_cidr="8.8.8.0/24")


def with_login_nodes(raw: dict[str, Any]) -> None:
    """Use a VPC that exists, and put a login node into its public subnet."""
    existing(raw)
    raw["cluster"]["login_nodes"] = [{"name": "login", "public": True}]


def single_card_nodes(raw: dict[str, Any]) -> None:
    """Use a VPC that exists, and nodes of one network interface."""
    existing(raw)
    raw["cluster"]["queues"][0]["compute_resources"][0].update(instance_type="trn1.2xlarge", efa=None)


def without_vpc(account: GoodAccount) -> None:
    """Take everything away, also what the settings name."""
    account.aws.reset()


def with_blocks(*blocks: str) -> Callable[[GoodAccount], None]:
    """Put a VPC of other blocks in the place of the good one, under the same id."""

    def make(account: GoodAccount) -> None:
        account.aws.reset()
        ec2 = account.client("ec2")
        ec2.create_vpc(CidrBlock=blocks[0], TagSpecifications=chosen("vpc", VPC))
        ec2.modify_vpc_attribute(VpcId=VPC, EnableDnsHostnames={"Value": True})
        for block in blocks[1:]:
            ec2.associate_vpc_cidr_block(VpcId=VPC, CidrBlock=block)

    return make


def without_dns(account: GoodAccount) -> None:
    """Switch DNS hostnames off."""
    account.client("ec2").modify_vpc_attribute(VpcId=VPC, EnableDnsHostnames={"Value": False})


def without_resolver(account: GoodAccount) -> None:
    """Switch DNS support off."""
    account.client("ec2").modify_vpc_attribute(VpcId=VPC, EnableDnsSupport={"Value": False})


def replaced(vpc_id: str = VPC, **changes: str) -> Callable[[GoodAccount], None]:
    """Put another private subnet in the place of the good one, under the same id."""

    def make(account: GoodAccount) -> None:
        ec2, network = account.client("ec2"), account.settings.network
        if vpc_id != VPC:
            ec2.create_vpc(CidrBlock=network.cidr, TagSpecifications=chosen("vpc", vpc_id))
        ec2.delete_subnet(SubnetId=PRIVATE)
        wanted = {"CidrBlock": network.private_subnet_cidr, "AvailabilityZoneId": account.settings.zone_id, **changes}
        ec2.create_subnet(VpcId=vpc_id, TagSpecifications=chosen("subnet", PRIVATE), **wanted)
        ec2.modify_subnet_attribute(SubnetId=PRIVATE, MapPublicIpOnLaunch={"Value": False})

    return make


def chosen(resource_type: str, resource_id: str) -> list[dict[str, Any]]:
    """Return tags that choose an id."""
    return [{"ResourceType": resource_type, "Tags": [{"Key": "_custom_id_", "Value": resource_id}]}]


def assigning(subnet_id: str, *, public: bool) -> Callable[[GoodAccount], None]:
    """Let a subnet assign public addresses, or not."""
    return lambda account: account.client("ec2").modify_subnet_attribute(
        SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": public}
    )


def table_of(account: GoodAccount, subnet_id: str) -> str:
    """Return the id of a subnet's own route table."""
    filters = [{"Name": "association.subnet-id", "Values": [subnet_id]}]
    [table] = account.client("ec2").describe_route_tables(Filters=filters)["RouteTables"]
    table_id: str = table["RouteTableId"]
    return table_id


def without_route(subnet_id: str) -> Callable[[GoodAccount], None]:
    """Take a subnet's default route away."""
    return lambda account: account.client("ec2").delete_route(
        RouteTableId=table_of(account, subnet_id), DestinationCidrBlock="0.0.0.0/0"
    )


def routed(subnet_id: str, make: Callable[[GoodAccount], dict[str, str]]) -> Callable[[GoodAccount], None]:
    """Lead a subnet's default route elsewhere."""
    return lambda account: account.client("ec2").replace_route(
        RouteTableId=table_of(account, subnet_id), DestinationCidrBlock="0.0.0.0/0", **make(account)
    )


def internet_gateway(account: GoodAccount) -> dict[str, str]:
    """Return the VPC's internet gateway."""
    [gateway] = account.client("ec2").describe_internet_gateways()["InternetGateways"]
    return {"GatewayId": gateway["InternetGatewayId"]}


def nat_gateway(account: GoodAccount) -> dict[str, str]:
    """Return the VPC's NAT gateway."""
    [gateway] = account.client("ec2").describe_nat_gateways()["NatGateways"]
    return {"NatGatewayId": gateway["NatGatewayId"]}


def transit_gateway(account: GoodAccount) -> dict[str, str]:
    """Make a transit gateway."""
    return {"TransitGatewayId": account.client("ec2").create_transit_gateway()["TransitGateway"]["TransitGatewayId"]}


def private_nat_gateway(account: GoodAccount) -> dict[str, str]:
    """Make a NAT gateway that is a private one."""
    made = account.client("ec2").create_nat_gateway(SubnetId=PUBLIC, ConnectivityType="private")
    return {"NatGatewayId": made["NatGateway"]["NatGatewayId"]}


def public_behind_nat(account: GoodAccount) -> None:
    """Lead the public subnet to the NAT gateway, and the private one past it."""
    routed(PUBLIC, nat_gateway)(account)
    routed(PRIVATE, transit_gateway)(account)


def private_nat_gateway_to_transit(account: GoodAccount) -> dict[str, str]:
    """Make a private NAT gateway whose subnet leads to a transit gateway."""
    routed(PUBLIC, transit_gateway)(account)
    return private_nat_gateway(account)


def failed_nat_gateway(account: GoodAccount) -> dict[str, str]:
    """Make a NAT gateway that fails, because the VPC has lost its internet gateway."""
    ec2 = account.client("ec2")
    ec2.delete_nat_gateway(**nat_gateway(account))
    ec2.detach_internet_gateway(VpcId=VPC, InternetGatewayId=internet_gateway(account)["GatewayId"])
    address_id = ec2.allocate_address(Domain="vpc")["AllocationId"]
    made = ec2.create_nat_gateway(SubnetId=PUBLIC, AllocationId=address_id)
    return {"NatGatewayId": made["NatGateway"]["NatGatewayId"]}


def without_nat_gateway(account: GoodAccount) -> None:
    """Delete the NAT gateway; the route to it stays."""
    account.client("ec2").delete_nat_gateway(**nat_gateway(account))


def in_the_main_table(account: GoodAccount) -> None:
    """Leave the private subnet to the main table, and give that the default route and the endpoint."""
    ec2 = account.client("ec2")
    [association] = [
        each["RouteTableAssociationId"]
        for table in ec2.describe_route_tables()["RouteTables"]
        for each in table["Associations"]
        if each.get("SubnetId") == PRIVATE
    ]
    ec2.disassociate_route_table(AssociationId=association)
    main = [{"Name": "vpc-id", "Values": [VPC]}, {"Name": "association.main", "Values": ["true"]}]
    [table] = ec2.describe_route_tables(Filters=main)["RouteTables"]
    ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", **nat_gateway(account))
    [endpoint] = ec2.describe_vpc_endpoints()["VpcEndpoints"]
    ec2.modify_vpc_endpoint(VpcEndpointId=endpoint["VpcEndpointId"], AddRouteTableIds=[table["RouteTableId"]])


def isolated(account: GoodAccount, *, metrics: bool = True) -> None:
    """Give the private subnet endpoints in the place of a route to the internet, one for metrics among them or not."""
    ec2, region = account.client("ec2"), account.settings.region
    without_route(PRIVATE)(account)
    table_id = table_of(account, PRIVATE)
    ec2.create_vpc_endpoint(VpcId=VPC, ServiceName=f"com.amazonaws.{region}.dynamodb", RouteTableIds=[table_id])
    for name in ("logs", "cloudformation", "ec2", *(["monitoring"] if metrics else [])):
        ec2.create_vpc_endpoint(
            VpcId=VPC, ServiceName=f"com.amazonaws.{region}.{name}", VpcEndpointType="Interface", SubnetIds=[PRIVATE]
        )


def isolated_with_session_manager(account: GoodAccount) -> None:
    """Do as `isolated`, with a way for Session Manager."""
    isolated(account)
    for name in ("ssm", "ssmmessages"):
        service = f"com.amazonaws.{account.settings.region}.{name}"
        account.client("ec2").create_vpc_endpoint(
            VpcId=VPC, ServiceName=service, VpcEndpointType="Interface", SubnetIds=[PRIVATE]
        )


def isolated_without_metrics(account: GoodAccount) -> None:
    """Do as `isolated`, but leave no way for metrics."""
    isolated(account, metrics=False)


def no_metrics(raw: dict[str, Any]) -> None:
    """Use a VPC that exists, and have nodes send no metrics."""
    existing(raw)
    raw["monitoring"]["node_metrics"] = False


def half_isolated(account: GoodAccount) -> None:
    """Do as `isolated`, but leave DynamoDB to another route table."""
    isolated(account)
    ec2 = account.client("ec2")
    [endpoint] = [each for each in ec2.describe_vpc_endpoints()["VpcEndpoints"] if "dynamodb" in each["ServiceName"]]
    ec2.modify_vpc_endpoint(VpcEndpointId=endpoint["VpcEndpointId"], RemoveRouteTableIds=endpoint["RouteTableIds"])


def without_endpoint(account: GoodAccount) -> None:
    """Delete the endpoint of S3."""
    ec2 = account.client("ec2")
    [endpoint] = ec2.describe_vpc_endpoints()["VpcEndpoints"]
    ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])


def endpoint_elsewhere(account: GoodAccount) -> None:
    """Take the endpoint of S3 out of the private subnet's route table."""
    ec2 = account.client("ec2")
    [endpoint] = ec2.describe_vpc_endpoints()["VpcEndpoints"]
    ec2.modify_vpc_endpoint(VpcEndpointId=endpoint["VpcEndpointId"], RemoveRouteTableIds=endpoint["RouteTableIds"])


def taken(subnet_id: str, addresses: int) -> Callable[[GoodAccount], None]:
    """Take addresses of a subnet."""

    def take(account: GoodAccount) -> None:
        for _ in range(addresses):
            account.client("ec2").create_network_interface(SubnetId=subnet_id)

    return take


def small_public_subnet(raw: dict[str, Any]) -> None:
    """Use a VPC that exists, with a public subnet of 11 addresses."""
    existing(raw)
    raw["network"]["public_subnet_cidr"] = "10.0.0.0/28"


def narrow_private_subnet(raw: dict[str, Any]) -> None:
    """Use a VPC that exists, with a private subnet that only just suffices, at eight addresses to a node."""
    existing(raw)
    raw["network"]["private_subnet_cidr"] = "10.0.64.0/24"
    raw["cluster"]["efa_interface_type"] = "efa"


def denying(*, egress: bool) -> Callable[[GoodAccount], None]:
    """Let the subnets' ACL deny Lustre before it allows everything."""

    def deny(account: GoodAccount) -> None:
        ec2 = account.client("ec2")
        filters = [{"Name": "association.subnet-id", "Values": [PRIVATE]}]
        [acl] = ec2.describe_network_acls(Filters=filters)["NetworkAcls"]
        ec2.create_network_acl_entry(
            NetworkAclId=acl["NetworkAclId"],
            RuleNumber=50,
            Egress=egress,
            Protocol="6",
            RuleAction="deny",
            CidrBlock="0.0.0.0/0",
            PortRange={"From": 988, "To": 988},
        )

    return deny


_case = partial(Case, edit=existing)


CASES = (
    Case(vpc, Status.SKIP, name="own-vpc"),
    _case(vpc, Status.PASS, (VPC, "10.0.0.0/16")),
    _case(vpc, Status.FAIL, (f"no VPC {VPC}", "network.existing.vpc_id"), without_vpc, name="missing"),
    _case(vpc, Status.FAIL, ("enableDnsHostnames", "--enable-dns-hostnames"), without_dns, name="no-hostnames"),
    _case(vpc, Status.FAIL, ("enableDnsSupport", "--enable-dns-support"), without_resolver, name="no-dns"),
    _case(
        vpc,
        Status.FAIL,
        (f"{VPC} has 10.1.0.0/16, 10.2.0.0/16; in the settings: 10.0.0.0/16", "network.cidr"),
        with_blocks("10.1.0.0/16", "10.2.0.0/16"),
        name="other-blocks",
    ),
    _case(vpc, Status.PASS, spoil=with_blocks("10.1.0.0/16", "10.0.0.0/16"), name="second-block"),
    Case(subnets, Status.SKIP, name="own-vpc"),
    _case(subnets, Status.PASS, (PUBLIC, "10.0.0.0/24", "usw2-az4")),
    _case(subnets, Status.FAIL, (f"no subnet {PUBLIC}", "public_subnet_id"), without_vpc, name="missing"),
    _case(
        subnets,
        Status.FAIL,
        ("is 10.0.64.0/20; in the settings: 10.0.64.0/18", "network.private_subnet_cidr"),
        replaced(CidrBlock="10.0.64.0/20"),
        name="other-block",
    ),
    _case(
        subnets,
        Status.FAIL,
        ("is in usw2-az1; in the settings: usw2-az4", "zone_id"),
        replaced(AvailabilityZoneId="usw2-az1"),
        name="other-zone",
    ),
    _case(
        subnets,
        Status.FAIL,
        (f"is in {OTHER_VPC}; in the settings: {VPC}", "private_subnet_id"),
        replaced(OTHER_VPC),
        name="other-vpc",
    ),
    _case(
        subnets,
        Status.FAIL,
        ("launches no trn1.32xlarge", "--no-map-public-ip-on-launch"),
        assigning(PRIVATE, public=True),
        name="public-addresses-for-nodes",
    ),
    _case(
        subnets,
        Status.WARN,
        ("assigns public addresses", "--no-map-public-ip-on-launch"),
        assigning(PRIVATE, public=True),
        edit=single_card_nodes,
        name="needless-public-addresses",
    ),
    _case(
        subnets,
        Status.FAIL,
        ("assigns no public addresses", "--map-public-ip-on-launch"),
        assigning(PUBLIC, public=False),
        name="no-public-addresses",
    ),
    _case(
        subnets, Status.PASS, spoil=assigning(PUBLIC, public=False), edit=private_head_node, name="private-head-node"
    ),
    Case(routes, Status.SKIP, name="own-vpc"),
    _case(routes, Status.PASS),
    _case(routes, Status.PASS, spoil=in_the_main_table, name="main-table"),
    _case(routes, Status.SKIP, ("see subnets",), without_vpc, name="missing"),
    _case(routes, Status.FAIL, ("(blackhole)", "NAT gateway"), without_nat_gateway, name="no-nat-gateway"),
    _case(
        routes,
        Status.FAIL,
        ("serves public addresses only", "NAT gateway"),
        routed(PRIVATE, internet_gateway),
        name="internet-gateway-for-nodes",
    ),
    _case(routes, Status.WARN, ("tgw-", "NAT gateway"), routed(PRIVATE, transit_gateway), name="transit-gateway"),
    _case(
        routes,
        Status.FAIL,
        ("is failed; allowed: available",),
        routed(PRIVATE, failed_nat_gateway),
        edit=private_head_node,
        name="failed-nat-gateway",
    ),
    _case(routes, Status.FAIL, ("private NAT gateway",), routed(PRIVATE, private_nat_gateway), name="private-nat"),
    _case(
        routes,
        Status.WARN,
        ("private NAT gateway", "tgw-"),
        routed(PRIVATE, private_nat_gateway_to_transit),
        edit=private_head_node,
        name="private-nat-onward",
    ),
    _case(
        routes,
        Status.FAIL,
        ("leads to the NAT gateway", "leads to nothing", "an internet gateway"),
        without_route(PUBLIC),
        edit=private_head_node,
        name="nat-without-internet",
    ),
    _case(
        routes,
        Status.FAIL,
        ("no route to 0.0.0.0/0", "cloudformation, dynamodb, ec2, logs"),
        without_route(PRIVATE),
        name="no-route",
    ),
    _case(routes, Status.WARN, ("no route to 0.0.0.0/0", "endpoints"), isolated, name="isolated"),
    _case(routes, Status.FAIL, ("endpoints for monitoring",), isolated_without_metrics, name="isolated-metrics"),
    _case(routes, Status.WARN, ("endpoints",), isolated_without_metrics, edit=no_metrics, name="isolated-no-metrics"),
    _case(routes, Status.FAIL, ("endpoints for ssm",), isolated, edit=private_head_node, name="isolated-head-node"),
    _case(
        routes, Status.FAIL, ("endpoints for elastic",), isolated, edit=with_login_nodes, name="isolated-login-nodes"
    ),
    _case(routes, Status.FAIL, ("endpoints for dynamodb",), half_isolated, name="half-isolated"),
    _case(routes, Status.FAIL, ("internet gateway",), without_route(PUBLIC), name="no-public-route"),
    _case(routes, Status.WARN, ("nat-",), public_behind_nat, name="public-behind-nat"),
    _case(routes, Status.FAIL, ("but rtb-", "leads to nat-"), routed(PUBLIC, nat_gateway), name="nat-behind-itself"),
    _case(routes, Status.PASS, edit=private_head_node, name="private-head-node"),
    Case(private_head_node_check, Status.SKIP, name="public"),
    Case(private_head_node_check, Status.WARN, ("8.8.8.0/24", "VPN"), edit=of_its_own, name="ssh"),
    Case(private_head_node_check, Status.PASS, ("default route",), edit=private_head_node),
    Case(private_head_node_check, Status.SKIP, ("see subnets",), without_vpc, edit=private_head_node, name="missing"),
    Case(
        private_head_node_check,
        Status.FAIL,
        ("no endpoint for ssm, ssmmessages", "NAT gateway", "endpoints"),
        isolated,
        edit=private_head_node,
        name="isolated",
    ),
    Case(
        private_head_node_check,
        Status.PASS,
        ("endpoints",),
        isolated_with_session_manager,
        edit=private_head_node,
        name="endpoints",
    ),
    Case(s3_endpoint, Status.SKIP, name="own-vpc"),
    _case(s3_endpoint, Status.PASS, ("vpce-",)),
    _case(s3_endpoint, Status.PASS, spoil=in_the_main_table, name="main-table"),
    _case(s3_endpoint, Status.WARN, ("create-vpc-endpoint", "rtb-"), without_endpoint, name="no-endpoint"),
    _case(s3_endpoint, Status.WARN, ("modify-vpc-endpoint", "vpce-"), endpoint_elsewhere, name="other-table"),
    _case(s3_endpoint, Status.SKIP, ("see subnets",), without_vpc, name="missing"),
    Case(free_addresses, Status.SKIP, name="own-vpc"),
    _case(free_addresses, Status.PASS, ("addresses of", "0 held")),
    _case(free_addresses, Status.SKIP, ("see subnets",), without_vpc, name="missing"),
    _case(
        free_addresses,
        Status.FAIL,
        ("0 addresses of", "1 more are needed", "1 too few"),
        taken(PUBLIC, 10),
        edit=small_public_subnet,
        name="full-public-subnet",
    ),
    _case(
        free_addresses,
        Status.FAIL,
        ("132 more are needed", "efa-only"),
        taken(PRIVATE, 120),
        edit=narrow_private_subnet,
        name="full-private-subnet",
    ),
    Case(network_acl, Status.SKIP, name="own-vpc"),
    _case(network_acl, Status.PASS, ("lets all traffic pass",)),
    _case(network_acl, Status.SKIP, ("see subnets",), without_vpc, name="missing"),
    _case(network_acl, Status.WARN, ("all traffic in", "988"), denying(egress=False), name="denies-in"),
    _case(network_acl, Status.WARN, ("all traffic out", "1024-65535"), denying(egress=True), name="denies-out"),
)
