"""The routes of existing subnets, their endpoints, and what their network ACLs let pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from scripts.account.deployment import Deployment, filters
from scripts.check.estimate.sizes import others
from scripts.check.preflight.check import check
from scripts.check.preflight.network import ExistingSubnet, judge_subnets
from scripts.core.findings import FAIL, PASS, WARN, Finding
from ultracluster.domain import addresses
from ultracluster.domain.network import endpoint_services

_ANYWHERE = "0.0.0.0/0"
_RIGHT_TARGETS = {False: "a NAT gateway in a public subnet", True: "an internet gateway of the VPC"}
"""Of a subnet by whether it is public."""


@check(
    "routes",
    "Way to the internet from the existing subnets",
    calls=("ec2:DescribeSubnets", "ec2:DescribeRouteTables", "ec2:DescribeNatGateways", "ec2:DescribeVpcEndpoints"),
)
def routes(deployment: Deployment) -> Iterator[Finding]:
    """Nodes would not reach AWS's services, and the wait for the head node would end after 35 minutes."""
    yield from judge_subnets(deployment, _route, further=True)


def _route(deployment: Deployment, subnet: ExistingSubnet, described: dict[str, Any]) -> Finding:
    table = _route_table(deployment, described["VpcId"], subnet.id)
    route = _default_route(table)
    if route:
        finding = _along(deployment, subnet, route)
    else:
        finding = _without_route(deployment, subnet, described["VpcId"], table["RouteTableId"])
    table_id = table["RouteTableId"]
    command = deployment.command("ec2", "describe-route-tables", "--route-table-ids", table_id)
    return replace(finding, sentence=f"{table_id} of {subnet.id} {finding.sentence}").of(subnet.label, command)


def _route_table(deployment: Deployment, vpc_id: str, subnet_id: str) -> dict[str, Any]:
    """Return the route table of a subnet of a VPC: the VPC's main one, if none is associated with it.

    https://docs.aws.amazon.com/vpc/latest/userguide/subnet-route-tables.html
    """
    tables = deployment.account.list("ec2", "describe_route_tables", Filters=filters({"vpc-id": [vpc_id]}))
    associated = {each.get("SubnetId", "main"): table for table in tables for each in table["Associations"]}
    table: dict[str, Any] = associated.get(subnet_id) or associated["main"]
    return table


def _default_route(table: dict[str, Any]) -> dict[str, Any] | None:
    return next((each for each in table["Routes"] if each.get("DestinationCidrBlock") == _ANYWHERE), None)


def _target(route: dict[str, Any] | None) -> str:
    """Return the id of what a route leads to, such as ``nat-...``; nothing: there is no route, or it is a black hole.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Route.html
    """
    if route is None or route["State"] == "blackhole":
        return "nothing"
    return str(next(value for key, value in route.items() if key.endswith(("Id", "Arn")) and key != "InstanceOwnerId"))


def _along(deployment: Deployment, subnet: ExistingSubnet, route: dict[str, Any]) -> Finding:
    """Judge the target of a default route; that of a NAT gateway is followed to where its own subnet leads.

    https://docs.aws.amazon.com/vpc/latest/userguide/vpc-nat-gateway.html
    """
    target, right = _target(route), _RIGHT_TARGETS[subnet.public]
    other = f"let its route to {_ANYWHERE} lead to {right}"
    sentence = f"leads to {target}"
    if target.startswith("nat-") and not subnet.public:
        [gateway] = deployment.account.list("ec2", "describe_nat_gateways", NatGatewayIds=[target])
        onward = _target(_default_route(_route_table(deployment, gateway["VpcId"], gateway["SubnetId"])))
        sentence = (
            f"leads to the {gateway['ConnectivityType']} NAT gateway {target}, which is {gateway['State']}, and its "
            f"subnet {gateway['SubnetId']} to {onward}"
        )
        is_public, is_internet = gateway["ConnectivityType"] == "public", onward.startswith("igw-")
        if is_public and is_internet and gateway["State"] == "available":
            return Finding(PASS, sentence)
        if is_public or is_internet or onward == "nothing" or gateway["State"] != "available":
            hint = f"use a public NAT gateway that is available, whose subnet leads to {_RIGHT_TARGETS[True]}"
            return Finding(FAIL, sentence, hint)
    elif target.startswith("igw-"):
        if subnet.public:
            return Finding(PASS, sentence)
        return Finding(FAIL, f"{sentence}, an internet gateway, which serves public addresses only", other)
    elif target == "nothing":
        return Finding(FAIL, f"{sentence}: its target no longer exists (blackhole)", other)
    return Finding(WARN, sentence, f"check that this leads to the internet; known to work is {right}")


def _without_route(deployment: Deployment, subnet: ExistingSubnet, vpc_id: str, table_id: str) -> Finding:
    """Judge whether endpoints replace a default route.

    https://docs.aws.amazon.com/parallelcluster/latest/ug/aws-parallelcluster-in-a-single-public-subnet-no-internet-v3.html;
    head and login nodes take the names of their scripts from Systems Manager, all send metrics where these are wanted.
    """
    right = _RIGHT_TARGETS[subnet.public]
    if subnet.public:
        return Finding(FAIL, f"has no route to {_ANYWHERE}", f"add one to {right}")
    standing = others(deployment.settings, public=False)
    login_nodes = bool(deployment.settings.cluster.login_nodes)
    needed = {*endpoint_services(["parallelcluster"], login_nodes=login_nodes), "s3", "dynamodb"}
    if standing.head_nodes or standing.login_nodes:
        needed.add("ssm")
    if deployment.settings.monitoring.node_metrics:
        needed.add("monitoring")
    if missing := sorted(needed - _services(deployment, vpc_id, table_id).keys()):
        sentence = f"has no route to {_ANYWHERE}, nor are there endpoints for {', '.join(missing)}"
        return Finding(FAIL, sentence, f"add a route to {right}, or those endpoints")
    sentence = f"has no route to {_ANYWHERE}; there are the endpoints that ParallelCluster needs, and nothing else"
    return Finding(WARN, sentence, "check that all software comes with the image or from S3")


def _services(deployment: Deployment, vpc_id: str, table_id: str) -> dict[str, dict[str, Any]]:
    """Return a VPC's endpoints by the short name of their service: interfaces, and gateways of a route table."""
    wanted = filters({"vpc-id": [vpc_id], "vpc-endpoint-state": ["available"]})
    listed = deployment.account.list("ec2", "describe_vpc_endpoints", Filters=wanted)
    return {  # of a service that has both, the gateway
        each["ServiceName"].removeprefix(f"com.amazonaws.{deployment.settings.region}."): each
        for each in sorted(listed, key=lambda endpoint: endpoint["VpcEndpointType"] == "Gateway")
        if each["VpcEndpointType"] == "Interface" or table_id in each["RouteTableIds"]
    }


@check(
    "private-head-node",
    "Way to a private head node",
    calls=("ec2:DescribeSubnets", "ec2:DescribeRouteTables", "ec2:DescribeVpcEndpoints"),
)
def private_head_node(deployment: Deployment) -> Iterator[Finding]:
    """Nobody could open a shell on the head node, nor would the commands of this project reach it.

    Check that Session Manager's agent reaches its endpoints; nothing calls a private node from outside.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/systems-manager-setting-up-messageAPIs.html
    """
    head_node = deployment.settings.cluster.head_node
    if head_node.public:
        return
    block = addresses.parse(head_node.ssh_cidr or "")
    if block is not None and not block.is_private:
        sentence = f"{block} may reach port 22, but the head node has no public address"
        hint = "`cluster.head_node.ssh_cidr`: the private block of a VPN or peered network, or null"
        yield Finding(WARN, sentence, hint, subject="ssh")
    if deployment.settings.network.existing is None:
        yield Finding(PASS, "Session Manager reaches it through the NAT gateway of this deployment")
    yield from judge_subnets(deployment, _session_manager, only="private")


def _session_manager(deployment: Deployment, subnet: ExistingSubnet, described: dict[str, Any]) -> Finding:
    vpc_id = described["VpcId"]
    table = _route_table(deployment, vpc_id, subnet.id)
    command = deployment.command("ec2", "describe-vpc-endpoints", "--filters", f"Name=vpc-id,Values={vpc_id}")
    missing = sorted({"ssm", "ssmmessages"} - _services(deployment, vpc_id, table["RouteTableId"]).keys())
    if not missing:
        return Finding(PASS, "Session Manager reaches it by endpoints for ssm and ssmmessages", command=command)
    if _default_route(table):
        return Finding(PASS, f"Session Manager reaches it by the default route of {subnet.id}, see routes")
    lacking = f"no route to {_ANYWHERE}, no endpoint for {', '.join(missing)}"
    sentence = f"Session Manager does not reach {subnet.id}: {lacking}"
    hint = f"add a route to {_RIGHT_TARGETS[False]}, or endpoints with private DNS names for ssm and ssmmessages"
    return Finding(FAIL, sentence, hint, command)


@check(
    "s3-endpoint",
    "Gateway endpoint for S3",
    calls=("ec2:DescribeSubnets", "ec2:DescribeRouteTables", "ec2:DescribeVpcEndpoints"),
)
def s3_endpoint(deployment: Deployment) -> Iterator[Finding]:
    """What nodes read from S3 would go through the NAT gateway, which takes $0.045 per GB.

    Find S3 in the private subnet's route table; such an endpoint costs nothing.

    https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-s3.html, https://aws.amazon.com/vpc/pricing/
    """
    yield from judge_subnets(deployment, _s3_gateway, only="private")


def _s3_gateway(deployment: Deployment, subnet: ExistingSubnet, described: dict[str, Any]) -> Finding:
    vpc_id = described["VpcId"]
    table_id = _route_table(deployment, vpc_id, subnet.id)["RouteTableId"]
    service = f"com.amazonaws.{deployment.settings.region}.s3"
    command = deployment.command("ec2", "describe-vpc-endpoints", "--filters", f"Name=vpc-id,Values={vpc_id}")
    endpoint = _services(deployment, vpc_id, table_id).get("s3")
    if endpoint and endpoint["VpcEndpointType"] == "Gateway":
        return Finding(PASS, f"{endpoint['VpcEndpointId']} serves {table_id} of {subnet.id}", command=command)
    words = ("create-vpc-endpoint", "--vpc-id", vpc_id, "--service-name", service, "--route-table-ids", table_id)
    sentence = f"no gateway endpoint for S3 serves {table_id} of {subnet.id}"
    return Finding(WARN, sentence, f"`{deployment.command('ec2', *words)}`, which is free", command)


@check("network-acl", "Network ACLs of the existing subnets", calls=("ec2:DescribeSubnets", "ec2:DescribeNetworkAcls"))
def network_acl(deployment: Deployment) -> Iterator[Finding]:
    """Lustre, Slurm or answers from the internet would be dropped without a trace.

    Check that all IPv4 traffic passes, as in a VPC's default ACL; a narrower one is not judged.

    https://docs.aws.amazon.com/vpc/latest/userguide/nacl-rules.html
    """
    yield from judge_subnets(deployment, _acl, further=True)


def _acl(deployment: Deployment, subnet: ExistingSubnet, _: dict[str, Any]) -> Finding:
    wanted = filters({"association.subnet-id": [subnet.id]})
    [acl] = deployment.account.list("ec2", "describe_network_acls", Filters=wanted)
    acl_id = acl["NetworkAclId"]
    narrow = [way for way, egress in (("in", False), ("out", True)) if not _passes_all(acl["Entries"], egress)]
    command = deployment.command("ec2", "describe-network-acls", "--network-acl-ids", acl_id)
    if not narrow:
        return Finding(PASS, f"{acl_id} of {subnet.id} lets all traffic pass", "", command, subnet.label)
    sentence = f"{acl_id} of {subnet.id} does not let all traffic {' and '.join(narrow)}"
    hint = (
        "check that these pass: between the subnets all TCP (Lustre 988 and 1018-1023, NFS, Slurm, SSH); to the "
        "internet TCP 443, and from it answers to ports 1024-65535"
    )
    return Finding(WARN, sentence, hint, command, subnet.label)


def _passes_all(entries: Iterable[dict[str, Any]], egress: bool) -> bool:
    """Return whether nothing is denied in a direction: of the entries that fit, the lowest number decides."""
    of_direction = [each for each in entries if each["Egress"] is egress and "CidrBlock" in each]
    for entry in sorted(of_direction, key=lambda each: int(each["RuleNumber"])):
        if entry["RuleAction"] == "deny":
            return False
        if (entry["Protocol"], entry["CidrBlock"]) == ("-1", _ANYWHERE):
            return True
    return False


CHECKS = (routes, private_head_node, s3_endpoint, network_acl)
