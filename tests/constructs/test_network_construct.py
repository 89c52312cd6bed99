import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_logs as logs

from config.settings import ExistingVpc, NetworkSettings
from stacks.network_stack import NetworkStack
from tests.stacks.small_app import ZONE_ID, Template, new_app, synthesize, template_of
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


def test_the_vpc_resolves_names(plain: Template) -> None:
    vpc = plain.properties(VPC)

    assert vpc["CidrBlock"] == "10.0.0.0/16"
    assert vpc["EnableDnsSupport"] is True
    assert vpc["EnableDnsHostnames"] is True


def test_both_subnets_are_placed_by_zone_id_and_no_zone_name_is_used(plain: Template) -> None:
    for _, subnet in subnets(plain):
        assert subnet["Properties"]["AvailabilityZoneId"] == ZONE_ID
    assert len(plain.of_type(SUBNET)) == 2
    text = json.dumps(plain.body)
    assert '"AvailabilityZone"' not in text
    assert "us-west-2a" not in text
    assert "Fn::GetAZs" not in text


def test_the_account_is_asked_nothing(plain: Template) -> None:
    assert plain.missing_context is None


def test_only_the_public_subnet_gives_public_addresses(plain: Template) -> None:
    (_, public), (_, private) = subnets(plain)

    assert public["Properties"]["MapPublicIpOnLaunch"] is True
    assert private["Properties"]["MapPublicIpOnLaunch"] is False


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


def test_one_public_address_is_the_nat_gateways_own(plain: Template) -> None:
    (address,) = plain.of_type("AWS::EC2::EIP")
    nat_gateway = plain.properties(NAT_GATEWAY)

    assert nat_gateway["AllocationId"] == {"Fn::GetAtt": [address, "AllocationId"]}
    assert "SecondaryAllocationIds" not in nat_gateway


def test_further_public_addresses_are_secondary(full: Template) -> None:
    addresses = list(full.of_type("AWS::EC2::EIP"))
    nat_gateway = full.properties(NAT_GATEWAY)

    used = [nat_gateway["AllocationId"], *nat_gateway["SecondaryAllocationIds"]]

    assert len(addresses) == 8
    assert used == [{"Fn::GetAtt": [address, "AllocationId"]} for address in addresses]


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


def test_without_interface_endpoints_there_is_no_security_group(plain: Template) -> None:
    assert plain.of_type(SECURITY_GROUP) == {}


def test_flow_logs_of_all_traffic_are_kept_as_long_as_asked(full: Template) -> None:
    (log_group,) = full.of_type("AWS::Logs::LogGroup")
    flow_log = full.properties("AWS::EC2::FlowLog")
    (vpc,) = full.of_type(VPC)

    assert flow_log["TrafficType"] == "ALL"
    assert flow_log["ResourceId"] == {"Ref": vpc}
    assert flow_log["LogGroupName"] == {"Ref": log_group}
    assert full.properties("AWS::Logs::LogGroup")["RetentionInDays"] == 90


def test_flow_logs_can_be_left_out(plain: Template) -> None:
    assert plain.of_type("AWS::EC2::FlowLog") == {}
    assert plain.of_type("AWS::Logs::LogGroup") == {}


def test_the_default_security_group_is_closed(plain: Template) -> None:
    (vpc,) = plain.of_type(VPC)

    closed = plain.properties("Custom::VpcRestrictDefaultSG")

    assert closed["DefaultSecurityGroupId"] == {"Fn::GetAtt": [vpc, "DefaultSecurityGroup"]}


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


def stack_of(settings: NetworkSettings, outdir: Path) -> Template:
    app = new_app(outdir)
    env = cdk.Environment(account="123456789012", region="us-west-2")
    NetworkStack(app, "trn1-network", settings=settings, zone_id="usw2-az2", env=env, tags={"project": "trn1"})
    return template_of(app, "trn1-network")


def test_the_stack_makes_the_network_of_its_settings_and_sums_it_up(tmp_path: Path) -> None:
    settings = NetworkSettings(
        cidr="10.0.0.0/16",
        public_subnet_cidr="10.0.0.0/24",
        private_subnet_cidr="10.0.64.0/18",
        nat_addresses=2,
        interface_endpoints=["parallelcluster"],
        flow_log_retention_days=30,
    )

    template = stack_of(settings, tmp_path)

    (public, made), (private, _) = subnets(template)
    addresses = list(template.of_type("AWS::EC2::EIP"))
    assert made["Properties"]["AvailabilityZoneId"] == "usw2-az2"
    assert len(template.of_type(ENDPOINT)) == 2 + len(settings.endpoint_services)
    assert template.properties("AWS::Logs::LogGroup")["RetentionInDays"] == 30
    assert template.missing_context is None
    assert template.summary() == {
        "vpc_id": template.one(VPC)[0],
        "public_subnet_id": public,
        "private_subnet_id": private,
        "zone_id": "usw2-az2",
        "nat_addresses": [f"{address}|PublicIp" for address in addresses],
    }


def test_the_stack_of_an_existing_network_makes_nothing_and_sums_it_up_all_the_same(tmp_path: Path) -> None:
    settings = NetworkSettings(
        existing=ExistingVpc(
            vpc_id="vpc-0123456789abcdef0",
            public_subnet_id="subnet-0123456789abcdef0",
            private_subnet_id="subnet-0123456789abcdef1",
        )
    )

    template = stack_of(settings, tmp_path)

    types = {item["Type"] for item in template.body["Resources"].values()}
    assert types == {"AWS::CloudFormation::WaitConditionHandle"}
    assert template.summary() == {
        "vpc_id": "vpc-0123456789abcdef0",
        "public_subnet_id": "subnet-0123456789abcdef0",
        "private_subnet_id": "subnet-0123456789abcdef1",
        "zone_id": "usw2-az2",
        "nat_addresses": [],
    }
