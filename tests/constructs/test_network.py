"""The network as a construct of any CDK app."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match, Template

from ultracluster.domain.violations import InvalidArguments
from ultracluster.network import UltraClusterNetwork

SUBNET = {"Ref": Match.string_like_regexp("^NetworkVpcPrivateSubnet")}


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    return cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))


def test_other_constructs_find_its_subnets_and_their_zones(stack: cdk.Stack) -> None:
    vpc = UltraClusterNetwork(stack, "Network", zone_id="usw2-az4").vpc
    ec2.Instance(
        stack,
        "Instance",
        vpc=vpc,
        instance_type=ec2.InstanceType("t3.micro"),
        machine_image=ec2.MachineImage.generic_linux({"us-west-2": "ami-0123456789abcdef0"}),
    )

    template = Template.from_stack(stack)
    template.has_resource_properties(
        "AWS::EC2::Instance",
        {
            "SubnetId": SUBNET,
            "AvailabilityZone": {
                "Fn::GetAtt": [Match.string_like_regexp("^NetworkVpcPrivateSubnet"), "AvailabilityZone"]
            },
        },
    )
    template.all_resources_properties("AWS::EC2::Subnet", {"AvailabilityZoneId": "usw2-az4"})


def test_invalid_arguments_are_named_together_and_leave_nothing_in_the_tree(stack: cdk.Stack) -> None:
    with pytest.raises(InvalidArguments) as refused:
        UltraClusterNetwork(
            stack,
            "Network",
            zone_id="us-west-2a",
            cidr="10.0.0.0/8",
            private_subnet_cidr="10.0.0.0/20",
            interface_endpoints=["ecr.api", "ecr-api"],
        )
    places = [each.path[0] for each in refused.value.violations]
    assert places == ["cidr", "private_subnet_cidr", "interface_endpoints", "zone_id"]
    assert stack.node.try_find_child("Network") is None


def test_a_misspelt_service_is_warned_of_and_a_misspelt_preset_refused(stack: cdk.Stack) -> None:
    services = ["parallelcluster", "cloudformtion", "ecr.dkr", "ecr-api", "ssm"]
    UltraClusterNetwork(stack, "Network", zone_id="usw2-az4", interface_endpoints=services)
    [warning] = [each.entry.data for each in Annotations.from_stack(stack).find_warning("*", Match.any_value())]
    assert "interface_endpoints[1]: got 'cloudformtion'; allowed: cloudformation or " in str(warning)
    with pytest.raises(InvalidArguments, match=r"interface_endpoints\[0\]: got 'paralelcluster'; allowed: parallelc"):
        UltraClusterNetwork(stack, "Other", zone_id="usw2-az4", interface_endpoints=["paralelcluster"])
