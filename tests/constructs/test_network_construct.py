"""What the golden templates have no example of: interface endpoints, dependents, a network that exists already."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk

from tests.stacks.small_app import ZONE_ID, synthesize
from ultracluster.network import Network, UltraClusterNetwork


def network(stack: cdk.Stack, *interface_endpoints: str) -> UltraClusterNetwork:
    return UltraClusterNetwork(
        stack,
        "Network",
        zone_id=ZONE_ID,
        cidr="10.0.0.0/16",
        public_subnet_cidr="10.0.0.0/24",
        private_subnet_cidr="10.0.64.0/18",
        nat_addresses=1,
        interface_endpoints=interface_endpoints,
        flow_log_retention=None,
    )


def test_interface_endpoints_are_in_the_private_subnet_and_take_https_from_the_vpc_alone(tmp_path: Path) -> None:
    template = synthesize(lambda stack: network(stack, "ssm", "ecr.api"), tmp_path)
    private, _ = template.one("AWS::EC2::Subnet", CidrBlock="10.0.64.0/18")
    name, group = template.one("AWS::EC2::SecurityGroup")
    [rule] = group["Properties"]["SecurityGroupIngress"]
    endpoints = [item["Properties"] for item in template.of_type("AWS::EC2::VPCEndpoint").values()]
    interfaces = [each for each in endpoints if each["VpcEndpointType"] == "Interface"]

    assert {each["ServiceName"] for each in interfaces} == {
        "com.amazonaws.us-west-2.ssm",
        "com.amazonaws.us-west-2.ecr.api",
    }
    for each in interfaces:
        assert (each["SubnetIds"], each["PrivateDnsEnabled"]) == ([{"Ref": private}], True)
        assert each["SecurityGroupIds"] == [{"Fn::GetAtt": [name, "GroupId"]}]
    assert (rule["CidrIp"], rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("10.0.0.0/16", "tcp", 443, 443)


def test_subnets_are_placed_by_zone_id_and_the_private_one_goes_out_by_the_nat_gateway(tmp_path: Path) -> None:
    template = synthesize(network, tmp_path)
    public, private = (template.one("AWS::EC2::Subnet", CidrBlock=f"10.0.{block}") for block in ("0.0/24", "64.0/18"))
    [nat_gateway] = template.of_type("AWS::EC2::NatGateway")
    routes = [item["Properties"] for item in template.of_type("AWS::EC2::Route").values()]
    [way_out] = [route for route in routes if "NatGatewayId" in route]
    [subnet] = [
        item["Properties"]["SubnetId"]
        for item in template.of_type("AWS::EC2::SubnetRouteTableAssociation").values()
        if item["Properties"]["RouteTableId"] == way_out["RouteTableId"]
    ]

    for _, resource in (public, private):
        assert resource["Properties"]["AvailabilityZoneId"] == ZONE_ID
        assert "AvailabilityZone" not in resource["Properties"]
    assert template.properties("AWS::EC2::NatGateway")["SubnetId"] == {"Ref": public[0]}
    assert (way_out["DestinationCidrBlock"], way_out["NatGatewayId"]) == ("0.0.0.0/0", {"Ref": nat_gateway})
    assert subnet == {"Ref": private[0]}


def test_what_depends_on_the_vpc_waits_for_the_ways_out(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        consumer = cdk.CfnResource(stack, "Consumer", type="AWS::EC2::Instance")
        consumer.node.add_dependency(network(stack).network.vpc)

    template = synthesize(build, tmp_path)
    routes = template.of_type("AWS::EC2::Route")

    assert len(routes) == 2
    assert routes.keys() <= set(template.of_type("AWS::EC2::Instance")["Consumer"]["DependsOn"])


def test_an_existing_network_is_used_by_its_ids_and_nothing_is_made_or_asked(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        existing = Network.existing(
            stack,
            vpc_id="vpc-0123456789abcdef0",
            cidr="10.0.0.0/16",
            public_subnet_id="subnet-0123456789abcdef0",
            private_subnet_id="subnet-0123456789abcdef1",
            zone_id=ZONE_ID,
        )
        for name, value in (
            ("Vpc", existing.vpc.vpc_id),
            ("Cidr", existing.vpc.vpc_cidr_block),
            ("Public", existing.public_subnet.subnet_id),
            ("Private", existing.private_subnet.subnet_id),
        ):
            cdk.CfnOutput(stack, f"{name}Output", value=value)

    template = synthesize(build, tmp_path)

    assert [output["Value"] for output in template.body["Outputs"].values()] == [
        *("vpc-0123456789abcdef0", "10.0.0.0/16", "subnet-0123456789abcdef0", "subnet-0123456789abcdef1"),
    ]
    assert (template.body.get("Resources", {}), template.missing_context, template.warnings) == ({}, None, [])
