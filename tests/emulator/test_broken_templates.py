"""Good templates are broken on purpose: the emulated CloudFormation refuses them in AWS's words, and cfn-lint agrees.

cfn-lint sees what the template alone shows. The other faults show only when AWS is asked, so there it says nothing.
"""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cfnlint.api import lint  # type: ignore[import-untyped]
from cfnlint.core import get_rules  # type: ignore[import-untyped]

from config.settings import load
from emulator.aws import EmulatedAws
from scripts import emulated
from scripts.commands.validate import CONFIG
from tests.emulator.stacks import REGION, Stacks, export, parameter

SAMPLES = Path(__file__).with_name("samples")

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


def use_each_other(template: Template) -> None:
    rule = {"IpProtocol": "-1", "SourceSecurityGroupId": {"Ref": "Other"}}
    other = copy.deepcopy(resource(template, "Group"))
    properties(template, "Group")["SecurityGroupIngress"] = [rule]
    other["Properties"]["SecurityGroupIngress"] = [{**rule, "SourceSecurityGroupId": {"Ref": "Group"}}]
    template["Resources"]["Other"] = other


def forget_the_attachment(template: Template) -> None:
    del template["Resources"]["Attachment"], resource(template, "Route")["DependsOn"]


@dataclass(frozen=True)
class Fault:
    """A way to break the network.

    Attributes:
        edit: Breaks the template.
        message: Regular expression of what CloudFormation says.
        rule: The rule of cfn-lint that objects; None if the template alone does not show the fault.
    """

    edit: Edit
    message: str
    rule: str | None


REFUSED: dict[str, Fault] = {
    "circular reference": Fault(use_each_other, r"Circular dependency between resources: \[Group, Other\]", "E3004"),
    "attribute that the type lacks": Fault(
        lambda t: properties(t, "Subnet").update(VpcId={"Fn::GetAtt": ["Vpc", "Arn"]}),
        "Template error: resource Vpc does not support attribute type Arn in Fn::GetAtt",
        "E1010",
    ),
    "attribute of no resource": Fault(
        lambda t: properties(t, "Subnet").update(VpcId={"Fn::GetAtt": ["Vcp", "VpcId"]}),
        "Template error: instance of Fn::GetAtt references undefined resource Vcp",
        "E1010",
    ),
    "reference to nothing": Fault(
        lambda t: properties(t, "Subnet").update(VpcId={"Ref": "Vcp"}),
        r"Template format error: Unresolved resource dependencies \[Vcp\] in the Resources block of the template",
        "E1020",
    ),
    "dependency on nothing": Fault(
        lambda t: resource(t, "Route").update(DependsOn="Atachment"),
        r"Template format error: Unresolved resource dependencies \[Atachment\] in the Resources block of the template",
        "E3005",
    ),
    "condition that is not defined": Fault(
        lambda t: resource(t, "Subnet").update(Condition="Sometimes"),
        "Template format error: Unresolved condition dependency Sometimes in the Resources block of the template",
        "E3015",
    ),
    "type that does not exist": Fault(
        lambda t: resource(t, "Gateway").update(Type="AWS::EC2::InternetGatweay"),
        r"Template format error: Unrecognized resource types: \[AWS::EC2::InternetGatweay\]",
        "E3006",
    ),
    "attribute that no resource has": Fault(
        lambda t: resource(t, "Subnet").update(DeletePolicy="Retain"),
        "Invalid template resource property 'DeletePolicy'",
        "E3001",
    ),
    "no resources": Fault(
        lambda t: (t.pop("Resources"), t.pop("Outputs")),
        "Template format error: At least one Resources member must be defined.",
        "E1001",
    ),
    "default that is not allowed": Fault(
        lambda t: t.update(Parameters={"P": {"Type": "String", "Default": "c", "AllowedValues": ["a", "b"]}}),
        "Parameter 'P' must be one of AllowedValues",
        "E2015",
    ),
}
"""Faults that are found before anything is made."""

FAILED: dict[str, tuple[str, Fault]] = {
    "property that does not exist": (
        "Subnet",
        Fault(
            lambda t: properties(t, "Subnet").update(CidrBlok="10.0.0.0/24"),
            r"Properties validation failed for resource Subnet with message: "
            r"\[#: extraneous key \[CidrBlok\] is not permitted\]",
            "E3002",
        ),
    ),
    "required property that is missing": (
        "Group",
        Fault(
            lambda t: properties(t, "Group").pop("GroupDescription"),
            r"Properties validation failed for resource Group with message: "
            r"\[#: required key \[GroupDescription\] not found\]",
            "E3003",
        ),
    ),
    "property of another type": (
        "Interface",
        Fault(
            lambda t: properties(t, "Interface").update(GroupSet={"Ref": "Group"}),
            r"\[#/GroupSet: expected type: JSONArray, found: String\]",
            "E1020",
        ),
    ),
    "route to a gateway that is not attached": (
        "Route",
        Fault(
            forget_the_attachment,
            r"route table rtb-\w+ and network gateway igw-\w+ belong to different networks",
            None,
        ),
    ),
    "subnet of another VPC": (
        "Association",
        Fault(
            lambda t: properties(t, "Association").update(SubnetId={"Ref": "OtherSubnet"}),
            r"route table rtb-\w+ and subnet subnet-\w+ belong to different networks",
            None,
        ),
    ),
    "security group of another VPC": (
        "Interface",
        Fault(
            lambda t: properties(t, "Interface").update(SubnetId={"Ref": "OtherSubnet"}),
            r"Security group sg-\w+ and subnet subnet-\w+ belong to different networks",
            None,
        ),
    ),
    "subnet outside its VPC": (
        "Subnet",
        Fault(
            lambda t: properties(t, "Subnet").update(CidrBlock="10.9.0.0/24"),
            r"The CIDR '10\.9\.0\.0/24' is invalid",
            "E3059",
        ),
    ),
    "subnets that overlap": (
        "Second",
        Fault(
            lambda t: t["Resources"].update(Second=subnet("Vpc", "10.0.0.0/25") | {"DependsOn": "Subnet"}),
            r"The CIDR '10\.0\.0\.0/25' conflicts with another subnet",
            "E3060",
        ),
    ),
    "subnet in a zone of another Region": (
        "Subnet",
        Fault(
            lambda t: properties(t, "Subnet").update(AvailabilityZone="eu-west-1a"),
            r"Value \(eu-west-1a\) for parameter availabilityZone is invalid\. Subnets can currently only be created",
            None,
        ),
    ),
    "subnet without a range": (
        "Subnet",
        Fault(
            lambda t: properties(t, "Subnet").pop("CidrBlock"),
            "Either 'cidrBlock' or 'ipv4IpamPoolId' should be provided",
            "E3058",
        ),
    ),
    "route to nowhere": (
        "Route",
        Fault(
            lambda t: properties(t, "Route").pop("GatewayId"),
            "The request must contain exactly one of gatewayId, ",
            None,
        ),
    ),
    "rule for nobody": (
        "Group",
        Fault(
            lambda t: properties(t, "Group").update(
                SecurityGroupIngress=[{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2}]
            ),
            "The request must contain exactly one of: cidrIp, cidrIpv6, prefixListId, or referencedGroupId",
            "E3014",
        ),
    ),
    "tag of AWS's own": (
        "Vpc",
        Fault(
            lambda t: properties(t, "Vpc").update(Tags=[{"Key": "aws:x", "Value": "y"}]),
            r"Value \( aws:x \) for parameter key is invalid\. Tag keys starting with 'aws:' are reserved",
            "E3024",
        ),
    ),
    "notification to a queue that S3 may not use": (
        "Bucket",
        Fault(
            lambda t: t["Resources"].update(
                Queue={"Type": "AWS::SQS::Queue"},
                Bucket={
                    "Type": "AWS::S3::Bucket",
                    "Properties": {
                        "NotificationConfiguration": {
                            "QueueConfigurations": [
                                {"Event": "s3:ObjectCreated:*", "Queue": {"Fn::GetAtt": ["Queue", "Arn"]}}
                            ]
                        }
                    },
                },
            ),
            "Unable to validate the following destination configurations",
            None,
        ),
    ),
}
"""Faults that fail a resource, and with it the stack."""


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
"""Faults of a cluster's configuration, and how the end of ParallelCluster's answer reads."""


@pytest.fixture
def stacks(aws: EmulatedAws) -> Stacks:
    return Stacks(aws)


def broken(edit: Edit, good: Template = NETWORK) -> Template:
    template = copy.deepcopy(good)
    edit(template)
    return template


@cache
def all_rules() -> Any:
    """Load cfn-lint's rules, which takes longer than to apply them."""
    return get_rules([], [], [])


def errors(template: Template | str) -> set[str]:
    """Return the ids of cfn-lint's rules that find an error."""
    text = template if isinstance(template, str) else json.dumps(template)
    found = lint(text, all_rules(), regions=[REGION])
    return {match.rule.id for match in found if match.rule.severity == "error"}


def failures(stacks: Stacks, name: str) -> dict[str, str]:
    """Return why resources failed, without those that were only cancelled in consequence."""
    return {
        logical_id: reason
        for logical_id, status, reason in stacks.events(name)
        if status in ("CREATE_FAILED", "UPDATE_FAILED") and "cancelled" not in reason
    }


def test_nobody_objects_to_the_good_templates(stacks: Stacks) -> None:
    stacks.create("network", NETWORK["Resources"], template=NETWORK)
    assert stacks.status("network") == "CREATE_COMPLETE"
    assert errors(NETWORK) == errors(CLUSTER) == set()
    for sample in SAMPLES.glob("*.yaml"):  # tests/emulator/test_samples.py deploys them
        assert errors(sample.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("fault", REFUSED)
def test_a_template_that_is_refused(stacks: Stacks, fault: str) -> None:
    case = REFUSED[fault]
    template = broken(case.edit)
    with pytest.raises(ClientError, match=case.message) as refused:
        stacks.client.create_stack(StackName="network", TemplateBody=json.dumps(template))
    assert refused.value.response["Error"]["Code"] == "ValidationError"
    assert stacks.client.list_stacks()["StackSummaries"] == []
    assert errors(template) == {case.rule}


@pytest.mark.parametrize("fault", FAILED)
def test_a_template_that_fails(stacks: Stacks, fault: str) -> None:
    logical_id, case = FAILED[fault]
    template = broken(case.edit)
    stacks.create("network", template["Resources"], template=template)
    assert stacks.status("network") == "ROLLBACK_COMPLETE"
    [(failed, reason)] = failures(stacks, "network").items()
    assert failed == logical_id
    assert re.search(case.message, reason)
    assert "InternalFailure" not in reason
    assert errors(template) == ({case.rule} if case.rule else set())


def test_a_template_without_an_export_that_is_in_use(stacks: Stacks) -> None:
    resources = {"A": parameter()}
    with_export = {"Outputs": {"O": export({"Ref": "A"}, "shared")}}
    stacks.create("producer", resources, template=with_export)
    stacks.create("consumer", {"B": parameter({"Fn::ImportValue": "shared"})})
    stacks.update("producer", resources, template={"Description": "no outputs"})
    assert stacks.status("producer") == "UPDATE_ROLLBACK_COMPLETE"
    [reason] = stacks.reasons("producer", "UPDATE_ROLLBACK_IN_PROGRESS")
    assert "Cannot delete export shared as it is in use by consumer" in reason
    assert errors({"Resources": resources}) == set()


@pytest.fixture(scope="module")
def surroundings(rehearsal_server: EmulatedAws) -> Stacks:
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


@pytest.mark.validation
@pytest.mark.parametrize("fault", CLUSTERS)
def test_a_cluster_that_is_refused(surroundings: Stacks, fault: str) -> None:
    edit, message = CLUSTERS[fault]
    template = broken(edit, CLUSTER)
    stack_id = surroundings.create("cluster", template["Resources"], OnFailure="DELETE")
    surroundings.client.get_waiter("stack_delete_complete").wait(StackName=stack_id, WaiterConfig={"Delay": 1})
    reason = failures(surroundings, stack_id)["Cluster"]
    assert reason.startswith("Received response status [FAILED] from custom resource. Message returned: ")
    assert re.search(message, reason)
    assert errors(template) == set()
