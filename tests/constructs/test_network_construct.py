"""Ways out of the network, endpoints, and a network that exists already."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_logs as logs

from tests.stacks.small_app import ZONE_ID, Template, synthesize
from ultracluster.network import Network, UltraClusterNetwork

VPC = "AWS::EC2::VPC"
SUBNET = "AWS::EC2::Subnet"
ROUTE = "AWS::EC2::Route"
NAT_GATEWAY = "AWS::EC2::NatGateway"
ENDPOINT = "AWS::EC2::VPCEndpoint"
SECURITY_GROUP = "AWS::EC2::SecurityGroup"


def network(
    stack: cdk.Stack,
    *,
    nat_addresses: int = 1,
    interface_endpoints: Sequence[str] = (),
    flow_log_retention: logs.RetentionDays | None = None,
) -> UltraClusterNetwork:
    return UltraClusterNetwork(
        stack,
        "Network",
        zone_id=ZONE_ID,
        cidr="10.0.0.0/16",
        public_subnet_cidr="10.0.0.0/24",
        private_subnet_cidr="10.0.64.0/18",
        nat_addresses=nat_addresses,
        interface_endpoints=interface_endpoints,
        flow_log_retention=flow_log_retention,
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesize(network, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Template:
    def build(stack: cdk.Stack) -> None:
        network(
            stack,
            nat_addresses=8,
            interface_endpoints=["ssm", "ecr.api"],
            flow_log_retention=logs.RetentionDays.THREE_MONTHS,
        )

    return synthesize(build, tmp_path_factory.mktemp("full"))


def subnets(template: Template) -> tuple[tuple[str, Any], tuple[str, Any]]:
    public, private = (template.one(SUBNET, CidrBlock=block) for block in ("10.0.0.0/24", "10.0.64.0/18"))
    return public, private


def route_table_of(template: Template, subnet: str) -> str:
    (table,) = (
        item["Properties"]["RouteTableId"]["Ref"]
        for item in template.of_type("AWS::EC2::SubnetRouteTableAssociation").values()
        if item["Properties"]["SubnetId"] == {"Ref": subnet}
    )
    return str(table)


def routes_of(template: Template, subnet: str) -> list[tuple[str, dict[str, Any]]]:
    table = {"Ref": route_table_of(template, subnet)}
    return [
        (name, item) for name, item in template.of_type(ROUTE).items() if item["Properties"]["RouteTableId"] == table
    ]


def test_both_subnets_are_placed_by_zone_id_and_no_zone_name_is_used(plain: Template) -> None:
    for _, subnet in subnets(plain):
        assert subnet["Properties"]["AvailabilityZoneId"] == ZONE_ID
    assert len(plain.of_type(SUBNET)) == 2
    text = json.dumps(plain.body)
    assert '"AvailabilityZone"' not in text
    assert "us-west-2a" not in text
    assert "Fn::GetAZs" not in text
    assert plain.missing_context is None


def test_the_public_subnet_goes_out_by_the_internet_gateway(plain: Template) -> None:
    (public, _), _ = subnets(plain)
    (gateway,) = plain.of_type("AWS::EC2::InternetGateway")
    attachment, attached = plain.one("AWS::EC2::VPCGatewayAttachment")

    ((_, route),) = routes_of(plain, public)

    assert attached["Properties"]["InternetGatewayId"] == {"Ref": gateway}
    assert route["Properties"]["DestinationCidrBlock"] == "0.0.0.0/0"
    assert route["Properties"]["GatewayId"] == {"Ref": gateway}
    assert route["DependsOn"] == [attachment]


def test_the_private_subnet_goes_out_by_the_nat_gateway_in_the_public_one(plain: Template) -> None:
    (public, _), (private, _) = subnets(plain)
    (nat_gateway,) = plain.of_type(NAT_GATEWAY)

    ((_, route),) = routes_of(plain, private)

    assert route["Properties"]["DestinationCidrBlock"] == "0.0.0.0/0"
    assert route["Properties"]["NatGatewayId"] == {"Ref": nat_gateway}
    assert "GatewayId" not in route["Properties"]
    assert plain.properties(NAT_GATEWAY)["SubnetId"] == {"Ref": public}


def test_the_nat_gateway_waits_for_the_internet(plain: Template) -> None:
    (public, _), _ = subnets(plain)
    ((public_route, _),) = routes_of(plain, public)
    (attachment,) = plain.of_type("AWS::EC2::VPCGatewayAttachment")

    assert public_route in plain.one(NAT_GATEWAY)[1]["DependsOn"]
    assert plain.one("AWS::EC2::EIP")[1]["DependsOn"] == [attachment]


def test_s3_and_dynamodb_have_gateways_in_both_route_tables(plain: Template) -> None:
    tables = [{"Ref": route_table_of(plain, subnet)} for subnet, _ in subnets(plain)]
    endpoints = [item["Properties"] for item in plain.of_type(ENDPOINT).values()]

    assert [endpoint["VpcEndpointType"] for endpoint in endpoints] == ["Gateway", "Gateway"]
    assert [endpoint["RouteTableIds"] for endpoint in endpoints] == [tables, tables]
    services = {endpoint["ServiceName"]["Fn::Join"][1][-1] for endpoint in endpoints}
    assert services == {".s3", ".dynamodb"}


def test_interface_endpoints_stand_in_the_private_subnet(full: Template) -> None:
    _, (private, _) = subnets(full)
    endpoints = [
        item["Properties"]
        for item in full.of_type(ENDPOINT).values()
        if item["Properties"]["VpcEndpointType"] == "Interface"
    ]

    assert {endpoint["ServiceName"] for endpoint in endpoints} == {
        "com.amazonaws.us-west-2.ssm",
        "com.amazonaws.us-west-2.ecr.api",
    }
    assert all(endpoint["SubnetIds"] == [{"Ref": private}] for endpoint in endpoints)
    assert all(endpoint["PrivateDnsEnabled"] is True for endpoint in endpoints)


def test_interface_endpoints_take_https_from_the_vpc_alone(full: Template) -> None:
    (name, group) = full.one(SECURITY_GROUP)
    endpoints = [item["Properties"] for item in full.of_type(ENDPOINT).values()]

    (rule,) = group["Properties"]["SecurityGroupIngress"]

    assert (rule["CidrIp"], rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("10.0.0.0/16", "tcp", 443, 443)
    assert [endpoint["SecurityGroupIds"] for endpoint in endpoints if "SecurityGroupIds" in endpoint] == [
        [{"Fn::GetAtt": [name, "GroupId"]}]
    ] * 2


def test_what_depends_on_the_vpc_waits_for_the_way_out(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        consumer = cdk.CfnResource(stack, "Consumer", type="AWS::EC2::Instance")
        consumer.node.add_dependency(network(stack).network.vpc)

    template = synthesize(build, tmp_path)

    depends_on = template.of_type("AWS::EC2::Instance")["Consumer"]["DependsOn"]
    ways_out = {name for subnet, _ in subnets(template) for name, _ in routes_of(template, subnet)}
    assert len(ways_out) == 2
    assert ways_out <= set(depends_on)


def existing(stack: cdk.Stack) -> Network:
    return Network.existing(
        stack,
        vpc_id="vpc-0123456789abcdef0",
        cidr="10.0.0.0/16",
        public_subnet_id="subnet-0123456789abcdef0",
        private_subnet_id="subnet-0123456789abcdef1",
        zone_id=ZONE_ID,
    )


def test_an_existing_network_is_used_by_its_ids_and_nothing_is_made_or_asked(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        found = existing(stack)
        for name, value in (
            ("Vpc", found.vpc.vpc_id),
            ("Cidr", found.vpc.vpc_cidr_block),
            ("Public", found.public_subnet.subnet_id),
            ("Private", found.private_subnet.subnet_id),
        ):
            cdk.CfnOutput(stack, f"{name}Output", value=value)

    template = synthesize(build, tmp_path)

    assert {name: output["Value"] for name, output in template.body["Outputs"].items()} == {
        "VpcOutput": "vpc-0123456789abcdef0",
        "CidrOutput": "10.0.0.0/16",
        "PublicOutput": "subnet-0123456789abcdef0",
        "PrivateOutput": "subnet-0123456789abcdef1",
    }
    assert template.body.get("Resources", {}) == {}
    assert template.missing_context is None
    assert template.warnings == []
