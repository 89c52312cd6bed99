"""The API of CloudFormation: requests and answers as the API Reference has them, and the speeds of the server."""

import json
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.stacks import TRUST, Stacks, code_and_message, parameter

BODY = json.dumps({"Resources": {"A": parameter()}})
NAMED_ROLE = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST, "RoleName": "r"}}


@pytest.mark.parametrize(
    ("action", "arguments", "code", "message"),
    [
        ("describe_stacks", {"StackName": "x"}, "ValidationError", "Stack with id x does not exist"),
        (
            "create_stack",
            {"StackName": "s", "TemplateBody": BODY},
            "AlreadyExistsException",
            "Stack [s] already exists",
        ),
        (
            "create_stack",
            {
                "StackName": "x",
                "TemplateBody": json.dumps({"Resources": {"R": NAMED_ROLE}}),
                "Capabilities": ["CAPABILITY_IAM"],
            },
            "InsufficientCapabilitiesException",
            "Requires capabilities : [CAPABILITY_NAMED_IAM]",
        ),
        (
            "create_stack",
            {"StackName": "x", "TemplateURL": "https://none.s3.us-east-1.amazonaws.com/t"},
            "ValidationError",
            "S3 error: The specified bucket does not exist",
        ),
        # LocalStack's api/test_templates.py and api/test_resources.py recorded these.
        (
            "create_stack",
            {"StackName": "x", "TemplateURL": "s3://bucket/key"},
            "ValidationError",
            "S3 error: Domain name specified in bucket is not a valid S3 domain",
        ),
        (
            "update_stack",
            {"StackName": "s"},
            "ValidationError",
            "Either Template URL or Template Body must be specified.",
        ),
        ("get_template", {}, "ValidationError", "StackName is required if ChangeSetName is not specified."),
        ("get_template", {"ChangeSetName": "c"}, "ValidationError", "StackName is a required parameter."),
        (
            "describe_stack_resource",
            {"StackName": "s", "LogicalResourceId": "X"},
            "ValidationError",
            "Resource X does not exist for stack s",
        ),
        (
            "describe_stack_resources",
            {"PhysicalResourceId": "x"},
            "ValidationError",
            "Not emulated: DescribeStackResources without StackName",
        ),
        (
            "create_stack",
            {"StackName": "x", "TemplateBody": BODY, "TimeoutInMinutes": 5},
            "ValidationError",
            "Not emulated: TimeoutInMinutes",
        ),
        (
            "create_stack_set",
            {"StackSetName": "x"},
            "InvalidAction",
            "Not emulated: action CreateStackSet",
        ),
    ],
)
def test_refusals(stacks: Stacks, action: str, arguments: dict[str, Any], code: str, message: str) -> None:
    stacks.create("s", {"A": parameter()})
    with pytest.raises(ClientError) as refused:
        getattr(stacks.client, action)(**arguments)
    assert code_and_message(refused.value) == (code, message)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_events_come_in_pages_that_new_ones_do_not_shift(stacks: Stacks) -> None:
    stacks.create("s", {f"A{number}": parameter() for number in range(40)})
    first = stacks.client.describe_stack_events(StackName="s")
    stacks.update("s", {"A0": parameter("2")})
    second = stacks.client.describe_stack_events(StackName="s", NextToken=first["NextToken"])
    ids = [event["EventId"] for event in first["StackEvents"] + second["StackEvents"]]
    assert len(ids) == len(set(ids)) == 2 + 3 * 40
    assert "NextToken" not in second
    # LocalStack's test_list_events_after_deployment has such ids.
    [of_a1] = [each for each in ids if each.startswith("A1-CREATE_COMPLETE-")]
    assert re.fullmatch(r"A1-CREATE_COMPLETE-[-0-9]{10}T[0-9:.]{12}Z", of_a1)
    times = [int(event["Timestamp"].timestamp() * 1000) for event in first["StackEvents"] + second["StackEvents"]]
    assert times == sorted(set(times), reverse=True)


@pytest.mark.slow
def test_at_real_speed_a_creation_or_its_roll_back_gives_way_to_a_deletion(wait_for: Any) -> None:
    # https://github.com/aws-solutions-library-samples/guidance-for-clickstream-analytics-on-aws/issues/573: the words.
    slow = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}, "DependsOn": "A"}
    bad = parameter(Name="aws/refused", DependsOn="A")
    with EmulatedAws(speed="real") as aws:
        stacks = Stacks(aws, waits=False)
        creating = stacks.create("creating", {"A": parameter(), "Slow": slow})
        s3 = aws.client("s3", "us-east-1")
        s3.create_bucket(Bucket="templates")
        s3.put_object(Bucket="templates", Key="k", Body=json.dumps({"Resources": {"A": parameter(), "Slow": slow}}))
        properties = {"TemplateURL": "https://s3.amazonaws.com/templates/k"}
        nesting = stacks.create("nesting", {"One": {"Type": "AWS::CloudFormation::Stack", "Properties": properties}})
        wait_for(lambda: "Slow" in stacks.resources("creating"))
        stacks.delete("creating")
        wait_for(lambda: stacks.resources("nesting").get("One", "") != "")
        nested = stacks.resources("nesting")["One"]
        assert stacks.status(nested) == "CREATE_IN_PROGRESS"
        stacks.delete("nesting")
        returning = stacks.create("returning", {"A": parameter(), "Bad": bad})
        wait_for(lambda: stacks.status("returning") == "ROLLBACK_IN_PROGRESS")
        stacks.delete("returning")
        for stack_id in (creating, returning, nesting, nested):
            wait_for(lambda stack_id=stack_id: stacks.status(stack_id) == "DELETE_COMPLETE")
            assert stacks.resources(stack_id) == {}
        assert ("Slow", "CREATE_FAILED", "Resource creation cancelled") in stacks.events(creating)
        assert not stacks.reasons(returning, "ROLLBACK_COMPLETE")
