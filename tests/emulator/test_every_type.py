"""What holds for resources of every type, on a stack that has one of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from emulator.resources import MODELS
from emulator.resources.state import STATES
from tests.deployed import DeployedAccount
from tests.emulator import specimens
from tests.emulator.account import tags
from tests.emulator.stacks import Stacks
from toolchain import schemas

NOT_COMPARED = {
    "AWS::Budgets::Budget",
    "AWS::EC2::Route",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::Lambda::LayerVersion",
}
"""Types whose drift CloudFormation finds and the emulator does not: emulator/README.md and the page have them."""

CAPABILITIES = ["CAPABILITY_NAMED_IAM"]


@pytest.fixture(scope="module")
def specimen(rehearsal_server: EmulatedAws) -> dict[str, Any]:
    """The resources of the stack `every`, which exists."""
    rehearsal_server.reset()
    resources = specimens.resources(specimens.prepare(rehearsal_server))
    stacks = Stacks(rehearsal_server, specimens.REGION)
    stacks.create("every", resources, Capabilities=CAPABILITIES, Tags=tags(Team="one", Gone="x"))
    assert stacks.status("every") == "CREATE_COMPLETE", stacks.reasons("every", "CREATE_FAILED")
    return resources


@pytest.fixture
def every(rehearsal_server: EmulatedAws, specimen: dict[str, Any]) -> Iterator[EmulatedAws]:
    """An account with the stack `every`, for one test."""
    with rehearsal_server.clone() as clone:
        yield clone


def test_there_is_one_of_each(specimen: dict[str, Any]) -> None:
    assert {each["Type"] for each in specimen.values()} == set(MODELS)


def drifts(stacks: Stacks) -> dict[str, Any]:
    stacks.client.detect_stack_drift(StackName="every")
    page = stacks.client.describe_stack_resource_drifts(StackName="every")
    assert "NextToken" not in page
    return {each["LogicalResourceId"]: each for each in page["StackResourceDrifts"]}


def test_drift_of_every_type(every: EmulatedAws, specimen: dict[str, Any]) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html."""
    stacks = Stacks(every, specimens.REGION)
    found = drifts(stacks)
    assert {name: each for name, each in found.items() if each["StackResourceDriftStatus"] != "IN_SYNC"} == {}
    assert {specimen[name]["Type"] for name in found} == set(STATES)
    compared_on_aws = {each for each in MODELS if "read" in schemas._schema(each).get("handlers", {})}
    assert compared_on_aws - set(STATES) == NOT_COMPARED
    names = stacks.resources("every")
    ec2, iam, s3, sns, ssm = (every.client(each, specimens.REGION) for each in ("ec2", "iam", "s3", "sns", "ssm"))
    ec2.modify_vpc_attribute(VpcId=names["VPC"], EnableDnsHostnames={"Value": False})
    ec2.create_tags(Resources=[names["Subnet"]], Tags=tags(Team="two"))
    iam.attach_role_policy(RoleName=names["Role"], PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess")
    s3.delete_bucket_policy(Bucket=names["BucketPolicy"])
    sns.delete_topic(TopicArn=names["Topic"])
    ssm.delete_parameter(Name=names["Parameter"])
    changed = {name: each for name, each in drifts(stacks).items() if each["StackResourceDriftStatus"] != "IN_SYNC"}
    assert {name: each["StackResourceDriftStatus"] for name, each in changed.items()} == {
        "VPC": "MODIFIED",
        "Subnet": "MODIFIED",
        "BucketPolicy": "DELETED",
        "Subscription": "DELETED",
        "Topic": "DELETED",
        "Parameter": "DELETED",
    }
    assert changed["VPC"]["PropertyDifferences"] == [
        {
            "PropertyPath": "/EnableDnsHostnames",
            "DifferenceType": "NOT_EQUAL",
            "ExpectedValue": "true",
            "ActualValue": "false",
        }
    ]


@pytest.mark.slow
def test_stacks_of_a_deployment_have_not_drifted(deployed: Callable[[str], DeployedAccount]) -> None:
    with deployed("team").clone() as aws:
        client = aws.client("cloudformation", specimens.REGION)
        compared = 0
        for stack in client.describe_stacks()["Stacks"]:
            client.detect_stack_drift(StackName=stack["StackId"])
            found = client.describe_stack_resource_drifts(StackName=stack["StackId"])["StackResourceDrifts"]
            assert [each for each in found if each["StackResourceDriftStatus"] != "IN_SYNC"] == [], stack["StackName"]
            compared += len(found)
        assert compared


def test_tags_change_on_resources_of_every_type(every: EmulatedAws, specimen: dict[str, Any]) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-resource-tags.html."""
    stacks, resources = Stacks(every, specimens.REGION), deepcopy(specimen)
    for logical_id, own in (("EFSFileSystem", "FileSystemTags"), ("HostedZone", "HostedZoneTags")):
        resources[logical_id]["Properties"][own] = tags(Team="two", New="y")
    stacks.update("every", resources, Capabilities=CAPABILITIES, Tags=tags(Team="two", New="y"))
    assert stacks.status("every") == "UPDATE_COMPLETE", stacks.reasons("every", "UPDATE_FAILED")
    names = stacks.resources("every")
    [repository] = every.client("ecr", specimens.REGION).describe_repositories()["repositories"]
    for service, action, request, where in (
        ("autoscaling", "describe_tags", {}, ("Tags",)),
        ("ecr", "list_tags_for_resource", {"resourceArn": repository["repositoryArn"]}, ("tags",)),
        ("efs", "list_tags_for_resource", {"ResourceId": names["EFSFileSystem"]}, ("Tags",)),
        *(
            ("elbv2", "describe_tags", {"ResourceArns": [names[each]]}, ("TagDescriptions", 0, "Tags"))
            for each in ("Listener", "LoadBalancer", "TargetGroup")
        ),
        ("iam", "list_open_id_connect_provider_tags", {"OpenIDConnectProviderArn": names["OIDCProvider"]}, ("Tags",)),
        (
            "route53",
            "list_tags_for_resource",
            {"ResourceType": "hostedzone", "ResourceId": names["HostedZone"]},
            ("ResourceTagSet", "Tags"),
        ),
    ):
        found = getattr(every.client(service, specimens.REGION), action)(**request)
        for member in where:
            found = found[member]
        assert {each["Key"]: each["Value"] for each in found} == {"Team": "two", "New": "y"}, (service, request)
