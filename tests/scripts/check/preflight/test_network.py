"""Existing VPCs that can take a cluster, and existing VPCs that cannot."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from scripts.account.deployment import Account
from scripts.check.preflight.network import free_addresses, further_subnets, subnets, vpc
from scripts.check.preflight.routes import network_acl, private_head_node, routes, s3_endpoint
from scripts.core.findings import FAIL, PASS, SKIP, WARN, CheckStatus
from tests.scripts.check.preflight.accounts import PRIVATE, PUBLIC, VPC, Case, Raw, case, new_network, stacks


def hidden_head_node(raw: Raw) -> None:
    """Put nothing into the public subnet, login nodes into the private one."""
    raw["cluster"]["head_node"].update(public=False, ssh_key_name=None, ssh_cidr=None)
    raw["cluster"]["login_nodes"] = [{"name": "login"}]


def single_card_nodes(raw: Raw) -> None:
    raw["cluster"]["queues"] = raw["cluster"]["queues"][:1]
    raw["cluster"]["queues"][0]["compute_resources"][0].update(instance_type="trn1.2xlarge", efa=None)


FURTHER = ("subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb")


def spread(raw: Raw) -> None:
    """Have CPU nodes in further subnets."""
    node = {"name": "cpu", "instance_type": "c6i.4xlarge", "max_count": 2}
    raw["cluster"]["queues"].append(
        {"name": "cpu", "compute_resources": [node], "placement_group": None, "further_subnet_ids": list(FURTHER)}
    )


def elsewhere(*facts: tuple[str, str], public: bool = False) -> Any:
    """Return the further subnets with these VPCs and zones, and no other subnet."""
    named = zip(FURTHER, facts, strict=False)
    return [
        {"SubnetId": each, "VpcId": vpc_id, "AvailabilityZoneId": zone, "MapPublicIpOnLaunch": public}
        for each, (vpc_id, zone) in named
    ]


def blocks(*cidrs: str) -> Any:
    return lambda vpcs: vpcs[0].update(CidrBlockAssociationSet=[{"CidrBlock": each} for each in cidrs])


def attribute(name: str) -> Any:
    """Have an attribute of the VPC off."""
    return lambda answer: answer[name].update(Value=False) if name in answer else None


def subnet(subnet_id: str, **facts: Any) -> Any:
    return lambda listed: [each.update(facts) for each in listed if each["SubnetId"] == subnet_id].clear()


def addresses(public: int, private: int) -> Any:
    free = {PUBLIC: public, PRIVATE: private}
    return lambda listed: [each.update(AvailableIpAddressCount=free[each["SubnetId"]]) for each in listed].clear()


# Routes of the account: the private subnet leads to a NAT gateway in the public one, that to an internet gateway.

EVERYWHERE = {"DestinationCidrBlock": "0.0.0.0/0", "State": "active"}


def tables(public: dict[str, str] | None = None, private: dict[str, str] | None = None, main: bool = False) -> Any:
    """Return the route tables with these targets of default routes; none: there is no such route."""

    def table(number: int, target: dict[str, str] | None, association: dict[str, Any]) -> dict[str, Any]:
        routes_of_table = [{**EVERYWHERE, **target}] if target else []
        return {"RouteTableId": f"rtb-{number}", "Routes": routes_of_table, "Associations": [association]}

    of_private = {"Main": True} if main else {"SubnetId": PRIVATE}
    listed = [table(1, public, {"SubnetId": PUBLIC}), table(2, private, of_private)]
    return listed if main else [*listed, table(3, None, {"Main": True})]


INTERNET, NAT, TRANSIT = {"GatewayId": "igw-1"}, {"NatGatewayId": "nat-1"}, {"TransitGatewayId": "tgw-1"}
BLACK_HOLE = {**NAT, "State": "blackhole"}


def nat_gateway(state: str = "available", connectivity: str = "public") -> Any:
    return [{"State": state, "ConnectivityType": connectivity, "VpcId": VPC, "SubnetId": PUBLIC}]


def endpoints(*services: str, gateways: tuple[str, ...] = ("s3", "dynamodb"), table: str = "rtb-2") -> Any:
    """Return the endpoints of the VPC: interfaces for services, and gateways in a route table."""
    names: list[tuple[str, str, list[str]]] = [(each, "Interface", []) for each in services] + [
        (each, "Gateway", [table]) for each in gateways
    ]
    return [
        {
            "VpcEndpointId": f"vpce-{service}",
            "ServiceName": f"com.amazonaws.us-west-2.{service}",
            "VpcEndpointType": kind,
            "RouteTableIds": in_tables,
        }
        for service, kind, in_tables in names
    ]


ISOLATED = ("logs", "cloudformation", "ec2", "monitoring")


def routed(status: CheckStatus, *says: str, public: Any = INTERNET, private: Any = NAT, **keywords: Any) -> Any:
    answers = {"describe_nat_gateways": nat_gateway(), "describe_vpc_endpoints": endpoints(), **keywords}
    return case(routes, status, *says, describe_route_tables=tables(public, private), **answers)


def acl(*rules: tuple[int, bool, str, str]) -> Any:
    """Return a network ACL with rules: number, whether egress, protocol and action."""
    entries = [
        {"RuleNumber": number, "Egress": egress, "Protocol": protocol, "RuleAction": action, "CidrBlock": "0.0.0.0/0"}
        for number, egress, protocol, action in rules
    ]
    return [{"NetworkAclId": "acl-1", "Entries": entries}]


OPEN = [(100, False, "-1", "allow"), (100, True, "-1", "allow")]
_head = partial(case, private_head_node, edit=hidden_head_node)
CASES = [
    case(vpc, PASS, VPC, "10.0.0.0/16"),
    case(vpc, FAIL, f"no VPC {VPC}", "network.existing.vpc_id", describe_vpcs=[]),
    case(vpc, FAIL, "--enable-dns-hostnames", describe_vpc_attribute=attribute("EnableDnsHostnames")),
    case(vpc, FAIL, f"{VPC} has 10.1.0.0/16; in the settings: 10.0.0.0/16", describe_vpcs=blocks("10.1.0.0/16")),
    case(subnets, PASS, PUBLIC, "10.0.0.0/24", "usw2-az4"),
    case(subnets, FAIL, f"no subnet {PUBLIC}", "public_subnet_id", describe_subnets=[]),
    case(
        subnets,
        FAIL,
        "is 10.0.64.0/20; in the settings: 10.0.64.0/18",
        "is usw2-az1; in the settings: usw2-az4",
        f"is vpc-2; in the settings: {VPC}",
        describe_subnets=subnet(PRIVATE, CidrBlock="10.0.64.0/20", AvailabilityZoneId="usw2-az1", VpcId="vpc-2"),
    ),
    case(subnets, FAIL, "launches no trn1.32xlarge", describe_subnets=subnet(PRIVATE, MapPublicIpOnLaunch=True)),
    case(subnets, WARN, edit=single_card_nodes, describe_subnets=subnet(PRIVATE, MapPublicIpOnLaunch=True)),
    case(subnets, FAIL, "assigns no public addresses", describe_subnets=subnet(PUBLIC, MapPublicIpOnLaunch=False)),
    case(further_subnets, SKIP),
    case(
        further_subnets,
        PASS,
        *(f"{each} is in {VPC}" for each in FURTHER),
        edit=spread,
        describe_subnets=elsewhere((VPC, "usw2-az1"), (VPC, "usw2-az2")),
    ),
    case(
        further_subnets,
        FAIL,
        f"{FURTHER[0]} is in vpc-2; allowed: {VPC}",
        f"{FURTHER[1]} is in usw2-az1, as {FURTHER[0]}",
        edit=spread,
        describe_subnets=elsewhere(("vpc-2", "usw2-az1"), (VPC, "usw2-az1")),
    ),
    case(
        further_subnets,
        FAIL,
        "is in usw2-az4, as the cluster's own subnet",
        f"no subnet {FURTHER[1]}",
        "change `cluster.queues[4].further_subnet_ids[1]`",
        edit=spread,
        describe_subnets=elsewhere((VPC, "usw2-az4")),
    ),
    case(
        further_subnets,
        WARN,
        f"{FURTHER[0]} assigns public addresses, which nodes do not need",
        edit=spread,
        describe_subnets=elsewhere((VPC, "usw2-az1"), (VPC, "usw2-az2"), public=True),
    ),
    case(free_addresses, PASS, "1 address free", describe_subnets=addresses(1, 100_000)),
    case(
        free_addresses,
        FAIL,
        "0 addresses free in",
        "1 more needed",
        "1 too few",
        describe_subnets=addresses(0, 100_000),
    ),
    case(
        routes,
        PASS,
        "leads to the public NAT gateway nat-1",
        edit=hidden_head_node,
        describe_route_tables=tables(INTERNET, NAT, main=True),
        describe_nat_gateways=nat_gateway(),
    ),
    routed(
        FAIL,
        f"rtb-3 of {FURTHER[1]} has no route",
        edit=spread,
        describe_subnets=elsewhere((VPC, "usw2-az1"), (VPC, "usw2-az2")),
        describe_vpc_endpoints=[],
    ),
    routed(FAIL, "(blackhole)", "NAT gateway", private=BLACK_HOLE),
    routed(FAIL, "serves public addresses only", "NAT gateway", private=INTERNET),
    routed(WARN, "tgw-1", "NAT gateway", private=TRANSIT),
    routed(FAIL, "which is failed", describe_nat_gateways=nat_gateway("failed")),
    routed(
        WARN,
        "private NAT gateway",
        public=TRANSIT,
        edit=hidden_head_node,
        describe_nat_gateways=nat_gateway(connectivity="private"),
    ),
    routed(
        FAIL,
        "to nothing",
        public=None,
        edit=hidden_head_node,
        describe_nat_gateways=nat_gateway(connectivity="private"),
    ),
    routed(FAIL, "add one to an internet gateway", public=None),
    routed(
        FAIL,
        "no route to 0.0.0.0/0",
        "endpoints for autoscaling, cloudformation, dynamodb, ec2, elasticloadbalancing, logs, monitoring, s3, ssm",
        private=None,
        edit=hidden_head_node,
        describe_vpc_endpoints=endpoints(table="rtb-9"),
    ),
    routed(WARN, "no route", "endpoints", private=None, describe_vpc_endpoints=endpoints(*ISOLATED)),
    case(
        private_head_node,
        WARN,
        "8.8.8.0/24",
        edit=lambda raw: raw["cluster"]["head_node"].update(public=False, ssh_cidr="8.8.8.0/24"),
        base=new_network,
    ),
    case(private_head_node, SKIP),
    _head(PASS, "default route"),
    _head(
        FAIL,
        "no endpoint for ssmmessages",
        describe_route_tables=tables(INTERNET, None),
        describe_vpc_endpoints=endpoints("ssm"),
    ),
    _head(
        PASS,
        "endpoints",
        describe_route_tables=tables(INTERNET, None),
        describe_vpc_endpoints=endpoints("ssm", "ssmmessages"),
    ),
    case(s3_endpoint, PASS, "vpce-"),
    case(s3_endpoint, WARN, "create-vpc-endpoint", "rtb-", describe_vpc_endpoints=[]),
    case(network_acl, PASS, "lets all traffic pass"),
    case(network_acl, WARN, "all traffic in", describe_network_acls=acl((50, False, "6", "deny"), *OPEN)),
    case(network_acl, PASS, describe_network_acls=acl((150, True, "6", "deny"), *OPEN)),
    *(case(each, SKIP, base=new_network) for each in (vpc, subnets, free_addresses, routes, s3_endpoint, network_acl)),
    case(routes, SKIP, "see subnets", describe_subnets=[]),
]


@pytest.mark.parametrize("each", CASES)
def test_network(each: Case, account: Account) -> None:
    each.verify(account)


# In the public subnet the head node, in the private one 28 nodes, 8 file servers, a login node and its load balancer.
NODE = {
    "InstanceType": "trn1.32xlarge",
    "Tags": [{"Key": "parallelcluster:cluster-name", "Value": "reserved"}],
    "NetworkInterfaces": [{"SubnetId": PRIVATE, "PrivateIpAddresses": [{}]}],
}
THEIRS = {**NODE, "Tags": []}


def with_login_nodes(raw: Raw) -> None:
    raw["cluster"]["login_nodes"] = [{"name": "login"}]


def needed(account: Account, **answers: Any) -> list[str]:
    """Return what is said of both subnets, each after its id."""
    answers = {"describe_subnets": addresses(100_000, 100_000), **answers}
    findings = Case(free_addresses, PASS, edit=with_login_nodes, answers=answers).findings(account)
    return [each.sentence.partition("; ")[2] for each in findings]


def test_what_exists_already_counts(account: Account) -> None:
    public, private = needed(account)
    assert public == "1 more needed at max_count, 0 held"
    at_max = int(private.partition(" ")[0])

    def held(count: int) -> str:
        return f"{at_max - count} more needed at max_count, {count} held"

    instances = {"describe_instances": [{"Instances": [NODE, THEIRS]}]}
    assert needed(account, **instances)[1] == held(1)
    cluster = {"describe_stacks": stacks(reserved={})}
    assert needed(account, **instances, **cluster)[1] == held(2)
    outputs = {"Outputs": [{"OutputKey": "FileSystemId", "OutputValue": "fs-1"}]}
    known = {"FileSystemId": "fs-1", "FileSystemType": "LUSTRE", "Lifecycle": "AVAILABLE"}
    servers = {"FileSystems": [{**known, "NetworkInterfaceIds": ["eni-1", "eni-2"], "SubnetIds": [PRIVATE]}]}
    storage = {"describe_stacks": stacks(**{"reserved-storage": outputs}), "describe_file_systems": servers}
    assert needed(account, **storage)[1] == held(2)
