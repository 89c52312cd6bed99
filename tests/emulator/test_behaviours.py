"""What AWS's documentation says of CloudFormation, each behaviour a test that names the page.

`test_stacks` and `test_changes` follow whole operations; here is what they do on the side.
"""

import json
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import ACCOUNT, EmulatedAws
from tests.emulator.stacks import REGION, TRUST, Stacks, export, parameter

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


def test_a_deleted_stack_is_found_by_its_id_only(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
    first = stacks.create("s", {"A": parameter()})
    stacks.delete("s")
    assert stacks.client.describe_stacks()["Stacks"] == []
    assert stacks.describe(first)["StackStatus"] == "DELETE_COMPLETE"
    second = stacks.create("s", {"A": parameter()})
    assert second != first
    assert stacks.describe("s")["StackId"] == second
    listed = stacks.client.list_stacks()["StackSummaries"]
    assert {each["StackId"] for each in listed} == {first, second}


def test_to_delete_what_is_not_there_is_no_error(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeleteStack.html
    stacks.delete("s")
    stack_id = stacks.create("s", {"A": parameter()})
    for _ in range(2):
        stacks.delete(stack_id)
    assert stacks.status(stack_id) == "DELETE_COMPLETE"


def test_a_deletion_that_failed_can_be_tried_again(stacks: Stacks, aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html
    s3 = aws.client("s3", REGION)
    stack_id = stacks.create("s", {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "full"}}})
    s3.put_object(Bucket="full", Key="k", Body=b"")
    stacks.delete("s")
    assert stacks.status("s") == "DELETE_FAILED"
    with pytest.raises(ClientError, match="is in DELETE_FAILED state and can not be updated"):
        stacks.update("s", {"A": parameter()})
    s3.delete_object(Bucket="full", Key="k")
    stacks.delete("s")
    assert stacks.status(stack_id) == "DELETE_COMPLETE"


# Updates


def test_what_has_not_changed_is_not_touched(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks.html
    stacks.create("s", {"A": parameter("1"), "B": parameter()})
    before = len(stacks.events("s"))
    stacks.update("s", {"A": parameter("2"), "B": parameter()})
    assert {name for name, _, _ in stacks.events("s")[before:]} == {"A", "s"}


def test_a_condition_alone_is_no_update(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-conditions.html
    template = {"Conditions": {"C": {"Fn::Equals": ["a", "a"]}}}
    stacks.create("s", {"A": parameter()})
    with pytest.raises(ClientError, match=r"No updates are to be performed\."):
        stacks.update("s", {"A": parameter()}, template=template)


def test_a_parameter_changes_with_the_previous_template(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_UpdateStack.html
    template = {"Parameters": {"P": {"Type": "String", "Default": "1"}}}
    stacks.create("s", {"A": parameter({"Ref": "P"}, Name="a")}, template=template)
    changed = [{"ParameterKey": "P", "ParameterValue": "2"}]
    stacks.client.update_stack(StackName="s", UsePreviousTemplate=True, Parameters=changed)
    assert stacks.values() == {"a": "2"}


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


def test_a_property_without_value_has_its_default_again(stacks: Stacks, aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
    template = {
        "Parameters": {"Long": {"Type": "String"}},
        "Conditions": {"IsLong": {"Fn::Equals": [{"Ref": "Long"}, "yes"]}},
    }
    timeout = {"Fn::If": ["IsLong", 120, {"Ref": "AWS::NoValue"}]}
    resources = {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": timeout}}}

    def visibility_timeout() -> str:
        found = aws.client("sqs", REGION).get_queue_attributes(
            QueueUrl=stacks.resources("s")["Queue"], AttributeNames=["VisibilityTimeout"]
        )
        value: str = found["Attributes"]["VisibilityTimeout"]
        return value

    def long(value: str) -> dict[str, Any]:
        return {"template": template, "Parameters": [{"ParameterKey": "Long", "ParameterValue": value}]}

    stacks.create("s", resources, **long("yes"))
    assert visibility_timeout() == "120"
    stacks.update("s", resources, **long("no"))
    assert visibility_timeout() == "30"


def test_a_tag_that_the_stack_loses_its_resources_lose(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-resource-tags.html
    resources = {"A": parameter(Name="a")}
    stacks.create("s", resources, Tags=[{"Key": "k", "Value": "v"}, {"Key": "l", "Value": "v"}])
    stacks.update("s", resources, Tags=[{"Key": "l", "Value": "w"}])
    found = stacks.ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId="a")["TagList"]
    assert found == [{"Key": "l", "Value": "w"}]


def test_an_update_that_adds_iam_resources_needs_a_capability(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_UpdateStack.html
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}}
    stacks.create("s", {"A": parameter()})
    with pytest.raises(ClientError, match=r"Requires capabilities : \[CAPABILITY_IAM\]"):
        stacks.update("s", {"A": parameter(), "R": role})
    stacks.update("s", {"A": parameter(), "R": role}, Capabilities=["CAPABILITY_NAMED_IAM"])
    assert stacks.status("s") == "UPDATE_COMPLETE"


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


def test_a_deletion_policy_does_not_keep_what_is_replaced(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html
    stacks.create("s", {"A": parameter(Name="old", DeletionPolicy="Retain")})
    stacks.update("s", {"A": parameter(Name="new", DeletionPolicy="Retain")})
    assert set(stacks.values()) == {"new"}


def test_an_update_replace_policy_does_not_keep_what_a_stack_deletes(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatereplacepolicy.html
    stacks.create("s", {"A": parameter(UpdateReplacePolicy="Retain")})
    stacks.delete("s")
    assert stacks.values() == {}


# Stacks and each other


def test_exports_are_those_of_one_region(stacks: Stacks, aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/outputs-section-structure.html
    template = {"Outputs": {"O": export("v", "shared")}}
    elsewhere = Stacks(aws, "us-west-2")
    elsewhere.create("producer", {"A": parameter()}, template=template)
    stacks.create("consumer", {"A": parameter({"Fn::ImportValue": "shared"})})
    assert stacks.status("consumer") == "ROLLBACK_COMPLETE"
    stacks.create("producer", {"A": parameter()}, template=template)
    assert stacks.status("producer") == "CREATE_COMPLETE"


def test_the_name_of_an_export_cannot_depend_on_a_resource(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/outputs-section-structure.html
    template = {"Outputs": {"O": {"Value": "v", "Export": {"Name": {"Ref": "A"}}}}}
    with pytest.raises(ClientError, match=r"Output O is malformed\. The Name field of Export must not depend on"):
        stacks.create("s", {"A": parameter()}, template=template)


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AccountId", ACCOUNT),
        ("Partition", "aws"),
        ("Region", REGION),
        ("StackId", rf"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/s/[-0-9a-f]{{36}}"),
        ("StackName", "s"),
        ("URLSuffix", r"amazonaws\.com"),
    ],
)
def test_pseudo_parameters(stacks: Stacks, name: str, value: str) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
    stacks.create("s", {"A": parameter({"Ref": f"AWS::{name}"}, Name="a")})
    assert re.fullmatch(value, stacks.values()["a"])


def test_a_name_that_is_not_given_is_made_of_stack_and_logical_id(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
    stacks.create("s", {"Queue": {"Type": "AWS::SQS::Queue"}, "Bucket": {"Type": "AWS::S3::Bucket"}})
    made = stacks.resources("s")
    assert re.search(r"/s-Queue-\w{12}$", made["Queue"])
    assert re.fullmatch(r"s-bucket-[a-z0-9]{12}", made["Bucket"])


def test_stored_values_are_looked_up(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references-ssm.html
    for value in ("1", "2"):
        stacks.ssm.put_parameter(Name="stored", Value=value, Type="String", Overwrite=True)
    resources = {"Latest": parameter("<{{resolve:ssm:stored}}>", Name="l")}
    stacks.create("s", {**resources, "First": parameter("{{resolve:ssm:stored:1}}", Name="f")})
    assert (stacks.values()["l"], stacks.values()["f"]) == ("<2>", "1")


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
