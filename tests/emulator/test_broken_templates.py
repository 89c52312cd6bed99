"""Templates with a mistake that shows only when AWS is asked: the emulated CloudFormation refuses it in AWS's words.

Mistakes that the template alone shows are in test_template.py.
"""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from config.settings import load
from emulator.aws import EmulatedAws
from scripts import emulated
from scripts.commands.validate import CONFIG
from tests.emulator.stacks import Stacks

Template = dict[str, Any]
Edit = Callable[[Template], object]


def subnet(vpc: str, cidr: str) -> dict[str, Any]:
    return {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": vpc}, "CidrBlock": cidr}}


def vpc(cidr: str) -> dict[str, Any]:
    return {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": cidr}}


NETWORK: Template = {
    "Resources": {
        "Vpc": vpc("10.0.0.0/16"),
        "Subnet": subnet("Vpc", "10.0.0.0/24"),
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "Attachment": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
        },
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Route": {
            "Type": "AWS::EC2::Route",
            "DependsOn": "Attachment",
            "Properties": {
                "RouteTableId": {"Ref": "Table"},
                "DestinationCidrBlock": "0.0.0.0/0",
                "GatewayId": {"Ref": "Gateway"},
            },
        },
        "Association": {
            "Type": "AWS::EC2::SubnetRouteTableAssociation",
            "Properties": {"RouteTableId": {"Ref": "Table"}, "SubnetId": {"Ref": "Subnet"}},
        },
        "Group": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {"GroupDescription": "all", "VpcId": {"Ref": "Vpc"}},
        },
        "Interface": {
            "Type": "AWS::EC2::NetworkInterface",
            "Properties": {"SubnetId": {"Ref": "Subnet"}, "GroupSet": [{"Ref": "Group"}]},
        },
        "OtherVpc": vpc("10.1.0.0/16"),
        "OtherSubnet": subnet("OtherVpc", "10.1.0.0/24"),
    },
    "Outputs": {
        "GroupId": {"Value": {"Ref": "Group"}},
        "SubnetId": {"Value": {"Ref": "Subnet"}},
        "OtherSubnetId": {"Value": {"Ref": "OtherSubnet"}},
    },
}


def resource(template: Template, logical_id: str) -> dict[str, Any]:
    found: dict[str, Any] = template["Resources"][logical_id]
    return found


def properties(template: Template, logical_id: str) -> dict[str, Any]:
    found: dict[str, Any] = resource(template, logical_id)["Properties"]
    return found


def forget_the_attachment(template: Template) -> None:
    del template["Resources"]["Attachment"], resource(template, "Route")["DependsOn"]


FAILED: dict[str, tuple[str, Edit, str]] = {
    "property that does not exist": (
        "Subnet",
        lambda t: properties(t, "Subnet").update(CidrBlok="10.0.0.0/24"),
        r"Properties validation failed for resource Subnet with message: "
        r"\[#: extraneous key \[CidrBlok\] is not permitted\]",
    ),
    "required property that is missing": (
        "Group",
        lambda t: properties(t, "Group").pop("GroupDescription"),
        r"Properties validation failed for resource Group with message: "
        r"\[#: required key \[GroupDescription\] not found\]",
    ),
    "property of another type": (
        "Interface",
        lambda t: properties(t, "Interface").update(GroupSet={"Ref": "Group"}),
        r"\[#/GroupSet: expected type: JSONArray, found: String\]",
    ),
    "route to a gateway that is not attached": (
        "Route",
        forget_the_attachment,
        r"route table rtb-\w+ and network gateway igw-\w+ belong to different networks",
    ),
    "subnet of another VPC": (
        "Association",
        lambda t: properties(t, "Association").update(SubnetId={"Ref": "OtherSubnet"}),
        r"route table rtb-\w+ and subnet subnet-\w+ belong to different networks",
    ),
    "security group of another VPC": (
        "Interface",
        lambda t: properties(t, "Interface").update(SubnetId={"Ref": "OtherSubnet"}),
        r"Security group sg-\w+ and subnet subnet-\w+ belong to different networks",
    ),
    "subnet outside its VPC": (
        "Subnet",
        lambda t: properties(t, "Subnet").update(CidrBlock="10.9.0.0/24"),
        r"The CIDR '10\.9\.0\.0/24' is invalid",
    ),
    "subnets that overlap": (
        "Second",
        lambda t: t["Resources"].update(Second=subnet("Vpc", "10.0.0.0/25") | {"DependsOn": "Subnet"}),
        r"The CIDR '10\.0\.0\.0/25' conflicts with another subnet",
    ),
    "subnet in a zone of another Region": (
        "Subnet",
        lambda t: properties(t, "Subnet").update(AvailabilityZone="eu-west-1a"),
        r"Value \(eu-west-1a\) for parameter availabilityZone is invalid\. Subnets can currently only be created",
    ),
    "subnet without a range": (
        "Subnet",
        lambda t: properties(t, "Subnet").pop("CidrBlock"),
        "Either 'cidrBlock' or 'ipv4IpamPoolId' should be provided",
    ),
    "route to nowhere": (
        "Route",
        lambda t: properties(t, "Route").pop("GatewayId"),
        "The request must contain exactly one of gatewayId, ",
    ),
    "rule for nobody": (
        "Group",
        lambda t: properties(t, "Group").update(
            SecurityGroupIngress=[{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2}]
        ),
        "The request must contain exactly one of: cidrIp, cidrIpv6, prefixListId, or referencedGroupId",
    ),
    "tag of AWS's own": (
        "Vpc",
        lambda t: properties(t, "Vpc").update(Tags=[{"Key": "aws:x", "Value": "y"}]),
        r"Value \( aws:x \) for parameter key is invalid\. Tag keys starting with 'aws:' are reserved",
    ),
}
"""By mistake: the resource that fails, an edit of the network, and what CloudFormation says."""


def of_network(output: str) -> dict[str, Any]:
    return {"Fn::GetStackOutput": {"StackName": "network", "OutputName": output}}


CLUSTER: Template = {
    "Resources": {
        "Cluster": {
            "Type": "Custom::PclusterCluster",
            "Properties": {
                "ServiceToken": {"Fn::GetStackOutput": {"StackName": "provider", "OutputName": "ServiceToken"}},
                "ClusterName": "small",
                "ClusterConfiguration": {
                    "Region": {"Ref": "AWS::Region"},
                    "Image": {"Os": "alinux2023"},
                    "HeadNode": {
                        "InstanceType": "c5.large",
                        "Networking": {"SubnetId": of_network("SubnetId")},
                    },
                    "Scheduling": {
                        "Scheduler": "slurm",
                        "SlurmQueues": [
                            {
                                "Name": "queue",
                                "ComputeResources": [
                                    {"Name": "nodes", "InstanceType": "c5.xlarge", "MinCount": 0, "MaxCount": 4}
                                ],
                                "Networking": {
                                    "SubnetIds": [of_network("SubnetId")],
                                    "SecurityGroups": [of_network("GroupId")],
                                },
                            }
                        ],
                    },
                },
            },
        }
    }
}


def queue(template: Template) -> dict[str, Any]:
    configuration = properties(template, "Cluster")["ClusterConfiguration"]
    found: dict[str, Any] = configuration["Scheduling"]["SlurmQueues"][0]
    return found


def misspell_max_count(template: Template) -> None:
    nodes = queue(template)["ComputeResources"][0]
    nodes["MaxCuont"] = nodes.pop("MaxCount")


CLUSTERS: dict[str, tuple[Edit, str]] = {
    "MinCount above MaxCount": (
        lambda t: queue(t)["ComputeResources"][0].update(MinCount=5),
        "Max count must be greater than or equal to min count",
    ),
    "unknown key": (misspell_max_count, r"'MaxCuont': \['Unknown field\.'\]"),
    "subnet of another VPC": (
        lambda t: queue(t)["Networking"].update(SubnetIds=[of_network("OtherSubnetId")]),
        r"Security group sg-\w+ and subnet subnet-\w+ belong to different networks",
    ),
}
"""Mistakes in a cluster's configuration, and how the end of ParallelCluster's answer reads."""


@pytest.fixture
def stacks(aws: EmulatedAws) -> Stacks:
    return Stacks(aws)


def broken(edit: Edit, good: Template = NETWORK) -> Template:
    template = copy.deepcopy(good)
    edit(template)
    return template


def failures(stacks: Stacks, name: str) -> dict[str, str]:
    """Return why resources failed, without those that were only cancelled in consequence."""
    return {
        logical_id: reason
        for logical_id, status, reason in stacks.events(name)
        if status in ("CREATE_FAILED", "UPDATE_FAILED") and "cancelled" not in reason
    }


@pytest.mark.parametrize("mistake", FAILED)
def test_a_template_that_fails(stacks: Stacks, mistake: str) -> None:
    logical_id, edit, message = FAILED[mistake]
    template = broken(edit)
    stacks.create("network", template["Resources"], template=template)
    assert stacks.status("network") == "ROLLBACK_COMPLETE"
    [(failed, reason)] = failures(stacks, "network").items()
    assert failed == logical_id
    assert re.search(message, reason)
    assert "InternalFailure" not in reason


@pytest.fixture(scope="module")
def with_provider(rehearsal_server: EmulatedAws) -> Stacks:
    """Stacks where clusters can be made: there is a network, and the provider of clusters."""
    rehearsal_server.reset()
    settings = load(CONFIG / "dev.yaml")
    emulated.create_prerequisites(rehearsal_server, settings)
    stacks = Stacks(rehearsal_server, settings.region)
    stacks.create("network", NETWORK["Resources"], template=NETWORK)
    stacks.client.create_stack(
        StackName="provider",
        TemplateURL=f"https://{settings.region}-aws-parallelcluster.s3.{settings.region}.amazonaws.com/parallelcluster/"
        f"{settings.cluster.parallelcluster_version}/templates/custom_resource/cluster.yaml",
        Capabilities=["CAPABILITY_IAM"],
    )
    stacks.client.get_waiter("stack_create_complete").wait(StackName="provider", WaiterConfig={"Delay": 1})
    return stacks


@pytest.mark.slow
@pytest.mark.validation
@pytest.mark.parametrize("mistake", CLUSTERS)
def test_a_cluster_that_is_refused(with_provider: Stacks, mistake: str) -> None:
    edit, message = CLUSTERS[mistake]
    template = broken(edit, CLUSTER)
    stack_id = with_provider.create("cluster", template["Resources"], OnFailure="DELETE")
    with_provider.client.get_waiter("stack_delete_complete").wait(StackName=stack_id, WaiterConfig={"Delay": 1})
    reason = failures(with_provider, stack_id)["Cluster"]
    assert reason.startswith("Received response status [FAILED] from custom resource. Message returned: ")
    assert re.search(message, reason)
