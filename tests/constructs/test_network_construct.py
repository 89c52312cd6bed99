"""What the golden templates have no example of: interface endpoints, dependents, a network that exists already."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk

from tests.stacks.small_app import ZONE_ID, synthesize
from ultracluster.network import UltraClusterNetwork


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


def test_what_depends_on_the_vpc_waits_for_the_ways_out(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        consumer = cdk.CfnResource(stack, "Consumer", type="AWS::EC2::Instance")
        consumer.node.add_dependency(network(stack).network.vpc)

    template = synthesize(build, tmp_path)
    routes = template.of_type("AWS::EC2::Route")

    assert len(routes) == 2
    assert routes.keys() <= set(template.of_type("AWS::EC2::Instance")["Consumer"]["DependsOn"])
