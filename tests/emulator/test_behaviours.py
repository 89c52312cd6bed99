"""What AWS's documentation says of CloudFormation, each behaviour a test that names the page.

`test_stacks` and `test_changes` follow whole operations; here is what they do on the side.
"""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.stacks import REGION, TRUST, Stacks, parameter

REFUSED = parameter(Name="aws/refused")  # Systems Manager keeps names that begin with "aws" to itself


@pytest.fixture
def stacks(aws: EmulatedAws) -> Stacks:
    return Stacks(aws)


# Statuses and events


def test_events_tell_of_each_step(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
    stacks.create("s", {"A": parameter(Name="a")})
    stacks.update("s", {"A": parameter("2", Name="a")})
    stacks.delete("s")
    [summary] = stacks.client.list_stacks()["StackSummaries"]
    assert stacks.events(summary["StackId"]) == [
        ("s", "CREATE_IN_PROGRESS", "User Initiated"),
        ("A", "CREATE_IN_PROGRESS", ""),
        ("A", "CREATE_IN_PROGRESS", "Resource creation Initiated"),
        ("A", "CREATE_COMPLETE", ""),
        ("s", "CREATE_COMPLETE", ""),
        ("s", "UPDATE_IN_PROGRESS", "User Initiated"),
        ("A", "UPDATE_IN_PROGRESS", ""),
        ("A", "UPDATE_COMPLETE", ""),
        ("s", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", ""),
        ("s", "UPDATE_COMPLETE", ""),
        ("s", "DELETE_IN_PROGRESS", "User Initiated"),
        ("A", "DELETE_IN_PROGRESS", ""),
        ("A", "DELETE_COMPLETE", ""),
        ("s", "DELETE_COMPLETE", ""),
    ]


def test_a_stack_whose_creation_was_rolled_back_can_only_be_deleted(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
    stacks.create("s", {"Bad": REFUSED})
    body = json.dumps({"Resources": {"A": parameter()}})
    for action, arguments, message in (
        (stacks.client.create_stack, {"TemplateBody": body}, "already exists"),
        (stacks.client.update_stack, {"TemplateBody": body}, "can not be updated"),
        (stacks.client.create_change_set, {"TemplateBody": body, "ChangeSetName": "c"}, "can not be updated"),
        (stacks.client.rollback_stack, {}, "can not be rolled back"),
        (stacks.client.continue_update_rollback, {}, "can not continue rolling back update"),
    ):
        with pytest.raises(ClientError, match=message):
            action(StackName="s", **arguments)
    stacks.delete("s")
    stacks.create("s", {"A": parameter()})
    assert stacks.status("s") == "CREATE_COMPLETE"


# Updates


def test_what_a_failed_update_was_asked_for_is_forgotten(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
    template = {"Parameters": {"P": {"Type": "String"}}}
    arguments = {"Parameters": [{"ParameterKey": "P", "ParameterValue": "1"}], "Tags": [{"Key": "k", "Value": "1"}]}
    stacks.create("s", {"A": parameter({"Ref": "P"}, Name="a")}, template=template, **arguments)
    before = stacks.describe("s")
    worse = {"Parameters": [{"ParameterKey": "P", "ParameterValue": "2"}], "Tags": [{"Key": "k", "Value": "2"}]}
    resources = {"A": parameter({"Ref": "P"}, Name="a"), "Bad": REFUSED | {"DependsOn": "A"}}
    stacks.update("s", resources, template=template, **worse)
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    after = stacks.describe("s")
    assert (after["Parameters"], after["Tags"]) == (before["Parameters"], before["Tags"])
    assert set(stacks.client.get_template(StackName="s")["TemplateBody"]["Resources"]) == {"A"}
    assert stacks.values() == {"a": "1"}


# Deletion policies


@pytest.mark.parametrize(
    ("policy", "rolled_back", "removed"),
    [("Delete", False, False), ("RetainExceptOnCreate", False, True), ("Retain", True, True)],
)
def test_what_policies_do_in_an_update(stacks: Stacks, policy: str, rolled_back: bool, removed: bool) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html
    stacks.create("s", {"A": parameter(Name="a")})
    new = {"A": parameter(Name="a"), "B": parameter(Name="b", DeletionPolicy=policy)}
    stacks.update("s", {**new, "Bad": REFUSED | {"DependsOn": "B"}})
    assert ("b" in stacks.values()) is rolled_back
    if rolled_back:
        stacks.ssm.delete_parameter(Name="b")
    stacks.update("s", new)
    stacks.update("s", {"A": parameter(Name="a")})
    assert ("b" in stacks.values()) is removed


# Stacks and each other


def test_an_output_that_another_stack_reads_can_go_and_change(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-getstackoutput.html

    def output(value: str) -> dict[str, Any]:
        return {"Outputs": {"O": {"Value": value}}}

    reference = {"Fn::GetStackOutput": {"StackName": "producer", "OutputName": "O"}}
    stacks.create("producer", {"A": parameter(Name="a")}, template=output("1"))
    stacks.create("consumer", {"B": parameter(reference, Name="b")})
    stacks.update("producer", {"A": parameter(Name="a")}, template=output("2"))
    assert stacks.values()["b"] == "1"
    stacks.update("consumer", {"B": parameter(reference, Name="b")})
    assert stacks.values()["b"] == "2"
    stacks.delete("producer")
    assert stacks.values() == {"b": "2"}


def test_termination_protection_is_that_of_the_root_stack(stacks: Stacks, aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-protect-stacks.html
    s3 = aws.client("s3", REGION)
    s3.create_bucket(Bucket="templates")
    s3.put_object(Bucket="templates", Key="t", Body=json.dumps({"Resources": {"A": parameter()}}).encode())
    properties = {"TemplateURL": "https://templates.s3.us-east-1.amazonaws.com/t"}
    child = {"Type": "AWS::CloudFormation::Stack", "Properties": properties}
    stacks.create("root", {"Child": child, "B": parameter()}, EnableTerminationProtection=True)
    child_id = stacks.resources("root")["Child"]
    assert stacks.describe(child_id)["EnableTerminationProtection"] is True
    with pytest.raises(ClientError, match="TerminationProtection"):
        stacks.delete(child_id)
    with pytest.raises(ClientError, match="nested stack"):
        stacks.client.update_termination_protection(StackName=child_id, EnableTerminationProtection=False)
    stacks.client.update_termination_protection(StackName="root", EnableTerminationProtection=False)
    assert stacks.describe(child_id)["EnableTerminationProtection"] is False
    stacks.client.update_termination_protection(StackName="root", EnableTerminationProtection=True)
    stacks.update("root", {"B": parameter()})
    assert stacks.status(child_id) == "DELETE_COMPLETE"


# Values


# Custom resources

PROVIDER = """
import cfnresponse

def handler(event, context):
    name = event["ResourceProperties"]["Name"]
    print(event["RequestType"], event.get("PhysicalResourceId"), name)
    failing = event["ResourceProperties"].get("Fails") == "true" and event["RequestType"] != "Delete"
    status = cfnresponse.FAILED if failing else cfnresponse.SUCCESS
    cfnresponse.send(event, context, status, {"Upper": name.upper()}, name)
"""


class Custom:
    """Stacks of a custom resource, whose provider calls it what its property Name says."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.stacks = Stacks(aws)
        self._logs = aws.client("logs", REGION)
        role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}
        function = {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": "provider",
                "Code": {"ZipFile": PROVIDER},
                "Handler": "index.handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Runtime": "python3.12",
            },
        }
        outputs = {"Outputs": {"Token": {"Value": {"Fn::GetAtt": ["Function", "Arn"]}}}}
        resources = {"Role": role, "Function": function}
        self.stacks.create("provider", resources, template=outputs, Capabilities=["CAPABILITY_IAM"])

    def resources(self, name: str, **more: Any) -> dict[str, Any]:
        token = {"Fn::GetStackOutput": {"StackName": "provider", "OutputName": "Token"}}
        custom = {"Type": "Custom::Thing", "Properties": {"ServiceToken": token, "Name": name, **more}}
        return {"Thing": custom, "P": parameter({"Fn::GetAtt": ["Thing", "Upper"]}, Name="p")}

    def requests(self) -> list[str]:
        """Return what the provider was asked: type, physical id, name."""
        pages = self._logs.filter_log_events(logGroupName="/aws/lambda/provider")["events"]
        lines = [line for event in pages for line in event["message"].splitlines()]
        return [line for line in lines if line.split(" ")[0] in ("Create", "Update", "Delete")]


@pytest.fixture
def custom(aws: EmulatedAws) -> Custom:
    return Custom(aws)


def test_a_custom_resource_of_another_id_takes_the_place_of_the_old_one(custom: Custom) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-update.html
    custom.stacks.create("s", custom.resources("a"))
    custom.stacks.update("s", custom.resources("a", More=1))
    custom.stacks.update("s", custom.resources("b"))
    assert custom.stacks.resources("s")["Thing"] == "b"
    assert custom.stacks.values() == {"p": "B"}
    assert custom.requests() == ["Create None a", "Update a a", "Update a b", "Delete a a"]
    custom.stacks.delete("s")
    assert custom.requests()[-1] == "Delete b b"


def test_a_custom_resource_that_fails_is_rolled_back_by_its_provider(custom: Custom) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-update.html
    stacks = custom.stacks
    stacks.create("s", custom.resources("a"))
    stacks.update("s", custom.resources("a", Fails=True))
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    [reason] = stacks.reasons("s", "UPDATE_FAILED")
    assert reason.startswith(
        "Received response status [FAILED] from custom resource. Message returned: See the details"
    )
    assert custom.requests() == ["Create None a", "Update a a", "Update a a"]


def test_a_replaced_custom_resource_is_deleted_when_its_update_is_rolled_back(custom: Custom) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-delete.html
    stacks = custom.stacks
    stacks.create("s", custom.resources("a"))
    stacks.update("s", {**custom.resources("b"), "Bad": REFUSED | {"DependsOn": "Thing"}})
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.resources("s")["Thing"] == "a"
    assert custom.requests()[-1] == "Delete b b"
    assert "Delete a a" not in custom.requests()
