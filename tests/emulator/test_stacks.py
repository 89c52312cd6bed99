"""The life of stacks, as the CloudFormation User Guide and API Reference describe it."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.stacks import REGION, TRUST, Stacks, code_and_message, export, parameter

REFUSED = parameter(Name="aws/refused")  # Systems Manager keeps names that begin with "aws" to itself
PROPERTY_ERROR = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v", "Foo": 1}}


@pytest.fixture
def stacks(aws: EmulatedAws) -> Stacks:
    return Stacks(aws)


# Creation


def test_resources_are_created_in_the_order_of_their_references(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter({"Ref": "B"}), "B": parameter(), "C": parameter(DependsOn="A")})
    complete = [name for name, status, _ in stacks.events("s") if status == "CREATE_COMPLETE"]
    assert complete == ["B", "A", "C", "s"]
    assert stacks.values()[stacks.resources("s")["A"]] == stacks.resources("s")["B"]


def test_what_a_template_forgets_to_wait_for_is_not_there(stacks: Stacks) -> None:
    """A route to an internet gateway needs a DependsOn on its attachment, as the User Guide says."""
    resources: dict[str, Any] = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "Attachment": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
            "DependsOn": "Slow",
        },
        "Slow": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Route": {
            "Type": "AWS::EC2::Route",
            "Properties": {
                "RouteTableId": {"Ref": "Table"},
                "GatewayId": {"Ref": "Gateway"},
                "DestinationCidrBlock": "0.0.0.0/0",
            },
        },
    }
    stacks.create("forgetful", resources, Capabilities=["CAPABILITY_IAM"])
    assert stacks.status("forgetful") == "ROLLBACK_COMPLETE"
    stacks.create(
        "careful",
        {**resources, "Route": {**resources["Route"], "DependsOn": "Attachment"}},
        Capabilities=["CAPABILITY_IAM"],
    )
    assert stacks.status("careful") == "CREATE_COMPLETE"


def test_a_failed_creation_is_rolled_back(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter(), "Bad": REFUSED | {"DependsOn": "A"}})
    assert stacks.status("s") == "ROLLBACK_COMPLETE"
    assert stacks.reasons("s", "ROLLBACK_IN_PROGRESS") == [
        "The following resource(s) failed to create: [Bad]. Rollback requested by user."
    ]
    [reason] = stacks.reasons("s", "CREATE_FAILED")
    assert reason.startswith('Resource handler returned message: "')
    assert "(Service: Ssm, Status Code: 400, Request ID: " in reason
    assert "HandlerErrorCode: InvalidRequest)" in reason
    assert stacks.values() == {}
    with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        stacks.update("s", {"A": parameter()})


def test_what_is_under_way_when_another_resource_fails_is_cancelled(stacks: Stacks) -> None:
    stacks.create("s", {"Bad": REFUSED, "Q": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}})
    assert ("Q", "CREATE_FAILED", "Resource creation cancelled") in stacks.events("s")
    assert "[Bad, Q]" in stacks.reasons("s", "ROLLBACK_IN_PROGRESS")[0]


@pytest.mark.parametrize(
    ("arguments", "status", "left"),
    [
        ({"OnFailure": "DO_NOTHING"}, "CREATE_FAILED", 1),
        ({"OnFailure": "ROLLBACK"}, "ROLLBACK_COMPLETE", 0),
        ({"OnFailure": "DELETE"}, "DELETE_COMPLETE", 0),
    ],
)
def test_what_a_failed_creation_leads_to(stacks: Stacks, arguments: dict[str, Any], status: str, left: int) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
    stack_id = stacks.create("s", {"A": parameter(), "Bad": REFUSED | {"DependsOn": "A"}}, **arguments)
    assert stacks.status(stack_id) == status
    assert len(stacks.values()) == left


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        (PROPERTY_ERROR, "#: extraneous key [Foo] is not permitted"),
        ({"Type": "AWS::Sagemaker::Nonsense"}, None),
    ],
)
def test_what_is_wrong_with_a_resource_is_said_by_name(stacks: Stacks, resource: Any, reason: str | None) -> None:
    if reason is None:
        with pytest.raises(ClientError, match=r"Unrecognized resource types: \[AWS::Sagemaker::Nonsense\]"):
            stacks.create("s", {"R": resource})
        return
    stacks.create("s", {"R": resource})
    assert stacks.status("s") == "ROLLBACK_COMPLETE"
    assert reason in stacks.reasons("s", "CREATE_FAILED")[0]


def test_a_type_without_a_model_fails_the_stack(stacks: Stacks) -> None:
    stacks.create("s", {"R": {"Type": "AWS::SES::ConfigurationSet"}})
    assert stacks.reasons("s", "CREATE_FAILED") == ["resource type AWS::SES::ConfigurationSet"]


def test_stack_tags_go_to_resources_whose_own_tags_win(stacks: Stacks) -> None:
    tagged = parameter(Name="tagged")
    tagged["Properties"]["Tags"] = {"a": "own", "c": "own"}
    stacks.create("s", {"P": tagged}, Tags=[{"Key": "a", "Value": "stack"}, {"Key": "b", "Value": "stack"}])
    found = stacks.ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId="tagged")["TagList"]
    tags = {tag["Key"]: tag["Value"] for tag in found}
    assert tags == {"a": "own", "b": "stack", "c": "own"}


# Update


def test_values_change_in_place_and_dependents_follow(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter("1"), "B": parameter({"Fn::GetAtt": ["A", "Value"]})})
    before = stacks.resources("s")
    stacks.update("s", {"A": parameter("2"), "B": parameter({"Fn::GetAtt": ["A", "Value"]})})
    assert stacks.status("s") == "UPDATE_COMPLETE"
    assert stacks.resources("s") == before
    assert set(stacks.values().values()) == {"2"}


def test_what_cannot_change_is_replaced_and_the_old_one_goes_last(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter(Name="old"), "B": parameter({"Ref": "A"})})
    stacks.update("s", {"A": parameter(Name="new"), "B": parameter({"Ref": "A"})})
    assert stacks.values()[stacks.resources("s")["B"]] == "new"
    assert "old" not in stacks.values()
    events = stacks.events("s")
    hence = "Requested update requires the creation of a new physical resource; hence creating one."
    assert ("A", "UPDATE_IN_PROGRESS", hence) in events
    cleanup = events.index(("s", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", ""))
    assert events.index(("A", "DELETE_IN_PROGRESS", "")) > cleanup


def test_replaced_and_removed_resources_stay_where_their_policies_say_so(stacks: Stacks) -> None:
    retained = parameter(Name="old", UpdateReplacePolicy="Retain")
    stacks.create("s", {"A": retained, "B": parameter(Name="b", DeletionPolicy="Retain"), "C": parameter(Name="c")})
    stacks.update("s", {"A": parameter(Name="new", UpdateReplacePolicy="Retain")})
    assert set(stacks.values()) == {"old", "new", "b"}
    assert {name for name, status, _ in stacks.events("s") if status == "DELETE_SKIPPED"} == {"A", "B"}


def test_a_failed_update_is_rolled_back(stacks: Stacks) -> None:
    resources = {"A": parameter("1"), "B": parameter(Name="b"), "D": parameter(Name="d")}
    stacks.create("s", resources, template={"Outputs": {"O": {"Value": {"Ref": "B"}}}})
    before = stacks.resources("s"), stacks.values()
    changed = {"A": parameter("2"), "B": parameter(Name="b2"), "C": parameter(Name="c")}
    stacks.update("s", {**changed, "Bad": REFUSED | {"DependsOn": ["A", "B", "C"]}})
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.reasons("s", "UPDATE_ROLLBACK_IN_PROGRESS") == ["The following resource(s) failed to create: [Bad]. "]
    assert (stacks.resources("s"), stacks.values()) == before
    assert stacks.output("s", "O") == "b"
    stacks.update("s", {**resources, "A": parameter("3")})
    assert stacks.status("s") == "UPDATE_COMPLETE"


def test_a_failed_update_can_be_left_and_rolled_back_later(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter("1")})
    before = stacks.resources("s"), stacks.values()
    stacks.update("s", {"A": parameter("2"), "Bad": REFUSED | {"DependsOn": "A"}}, DisableRollback=True)
    assert stacks.status("s") == "UPDATE_FAILED"
    assert set(stacks.values().values()) == {"2"}
    stacks.client.rollback_stack(StackName="s")
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    assert (stacks.resources("s"), stacks.values()) == before


def test_a_roll_back_that_fails_can_be_continued(stacks: Stacks, aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html

    def resources(status: str, value: str) -> dict[str, Any]:
        versioning = {"BucketName": "versioned", "VersioningConfiguration": {"Status": status}}
        return {"A": {"Type": "AWS::S3::Bucket", "Properties": versioning}, "B": parameter(value, Name="b")}

    stacks.create("s", resources("Enabled", "1"))
    failing = {**resources("Suspended", "2"), "Bad": REFUSED | {"DependsOn": ["A", "B"]}}
    stacks.update("s", failing, DisableRollback=True)
    aws.client("s3", "us-east-1").delete_bucket(Bucket="versioned")
    stacks.client.rollback_stack(StackName="s")
    assert stacks.status("s") == "UPDATE_ROLLBACK_FAILED"
    assert "[A" in stacks.describe("s")["StackStatusReason"]
    stacks.client.continue_update_rollback(StackName="s", ResourcesToSkip=["A"])
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.values()["b"] == "1"


# Parameters and conditions


def test_parameters_keep_their_previous_value_and_stored_ones_are_looked_up_again(stacks: Stacks) -> None:
    stacks.ssm.put_parameter(Name="stored", Value="1", Type="String")
    template = {
        "Parameters": {
            "Stored": {"Type": "AWS::SSM::Parameter::Value<String>"},
            "Plain": {"Type": "String"},
        }
    }
    resources = {"A": parameter({"Fn::Sub": "${Stored}-${Plain}"}, Name="a")}
    given = [{"ParameterKey": "Stored", "ParameterValue": "stored"}, {"ParameterKey": "Plain", "ParameterValue": "p"}]
    stacks.create("s", resources, template=template, Parameters=given)
    stacks.ssm.put_parameter(Name="stored", Value="2", Type="String", Overwrite=True)
    kept = [{"ParameterKey": each["ParameterKey"], "UsePreviousValue": True} for each in given]
    stacks.update("s", resources, template=template, Parameters=kept)
    assert stacks.values()["a"] == "2-p"
    described = {each["ParameterKey"]: each for each in stacks.describe("s")["Parameters"]}
    assert described["Stored"] == {"ParameterKey": "Stored", "ParameterValue": "stored", "ResolvedValue": "2"}


def test_conditions_decide_on_resources_and_outputs(stacks: Stacks) -> None:
    template = {
        "Parameters": {"On": {"Type": "String", "Default": "no"}},
        "Conditions": {"IsOn": {"Fn::Equals": [{"Ref": "On"}, "yes"]}},
        "Outputs": {"O": {"Condition": "IsOn", "Value": {"Ref": "B"}}},
    }
    resources = {"A": parameter(), "B": parameter(Condition="IsOn")}
    stacks.create("s", resources, template=template)
    assert set(stacks.resources("s")) == {"A"}
    stacks.update("s", resources, template=template, Parameters=[{"ParameterKey": "On", "ParameterValue": "yes"}])
    assert stacks.output("s", "O") == stacks.resources("s")["B"]
    stacks.update("s", resources, template=template)
    assert set(stacks.resources("s")) == {"A"}
    assert len(stacks.values()) == 1


# Deletion


def test_deletion_goes_backwards(stacks: Stacks) -> None:
    stack_id = stacks.create("s", {"A": parameter({"Ref": "B"}), "B": parameter(), "C": parameter(DependsOn="A")})
    stacks.delete("s")
    gone = [name for name, status, _ in stacks.events(stack_id) if status == "DELETE_COMPLETE"]
    assert gone == ["C", "A", "B", "s"]
    assert stacks.values() == {}
    assert stacks.describe(stack_id)["StackStatus"] == "DELETE_COMPLETE"
    with pytest.raises(ClientError, match="Stack with id s does not exist"):
        stacks.describe("s")


def test_what_cannot_be_deleted_can_be_left_behind(stacks: Stacks, aws: EmulatedAws) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "full"}}
    stack_id = stacks.create("s", {"Bucket": bucket, "P": parameter()})
    aws.client("s3", "us-east-1").put_object(Bucket="full", Key="k", Body=b"")
    with pytest.raises(ClientError, match="only when the stack is in the DELETE_FAILED state"):
        stacks.delete("s", RetainResources=["Bucket"])
    stacks.delete("s")
    assert stacks.status("s") == "DELETE_FAILED"
    assert stacks.describe("s")["StackStatusReason"] == "The following resource(s) failed to delete: [Bucket]. "
    assert set(stacks.resources("s")) == {"Bucket"}
    stacks.delete("s", RetainResources=["Bucket"])
    assert stacks.status(stack_id) == "DELETE_COMPLETE"


def test_deletion_policy_retain(stacks: Stacks) -> None:
    resources = {
        "A": parameter(Name="a", DeletionPolicy="Retain"),
        "B": parameter(Name="b", DeletionPolicy="RetainExceptOnCreate"),
        "C": parameter(),
    }
    stack_id = stacks.create("s", resources)
    stacks.delete("s")
    assert set(stacks.values()) == {"a", "b"}
    listed = stacks.client.list_stack_resources(StackName=stack_id)["StackResourceSummaries"]
    assert {each["LogicalResourceId"]: each["ResourceStatus"] for each in listed} == {
        "A": "DELETE_SKIPPED",
        "B": "DELETE_SKIPPED",
        "C": "DELETE_COMPLETE",
    }
    [deleted] = stacks.client.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]
    assert (deleted["StackId"], deleted["StackName"]) == (stack_id, "s")


def test_termination_protection(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter()}, EnableTerminationProtection=True)
    with pytest.raises(ClientError) as refused:
        stacks.delete("s")
    message = "Stack [s] cannot be deleted while TerminationProtection is enabled"
    assert code_and_message(refused.value) == ("ValidationError", message)
    stacks.client.update_termination_protection(StackName="s", EnableTerminationProtection=False)
    stacks.delete("s")
    assert stacks.values() == {}


# Stacks and each other


def test_exports_and_imports(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html
    outputs = {"Outputs": {"O": export({"Ref": "A"}, "shared")}}
    stacks.create("producer", {"A": parameter(Name="a")}, template=outputs)
    stacks.create("consumer", {"B": parameter({"Fn::ImportValue": "shared"}, Name="b")})
    assert stacks.values()["b"] == "a"

    stacks.create("second", {"C": parameter()}, template=outputs | {"Outputs": {"O": export("x", "shared")}})
    assert stacks.status("second") == "ROLLBACK_COMPLETE"
    assert "Export with name shared is already exported by stack producer" in "".join(
        stacks.reasons("second", "ROLLBACK_IN_PROGRESS")
    )

    stacks.update("producer", {"A": parameter(Name="a2")}, template=outputs)
    assert stacks.status("producer") == "UPDATE_ROLLBACK_COMPLETE"
    assert "Cannot update export shared as it is in use by consumer" in "".join(
        stacks.reasons("producer", "UPDATE_ROLLBACK_IN_PROGRESS")
    )

    stacks.update("producer", {"A": parameter(Name="a")}, template={"Outputs": {}})
    assert "Cannot delete export shared as it is in use by consumer" in "".join(
        stacks.reasons("producer", "UPDATE_ROLLBACK_IN_PROGRESS")
    )

    stacks.delete("producer")
    assert stacks.describe("producer")["StackStatusReason"] == (
        "Delete canceled. Cannot delete export shared as it is in use by consumer."
    )
    assert stacks.status("producer") == "UPDATE_ROLLBACK_COMPLETE"

    stacks.delete("consumer")
    stacks.delete("producer")
    assert stacks.values() == {}


def test_outputs_of_other_stacks_and_regions(stacks: Stacks, aws: EmulatedAws) -> None:
    outputs = {"Outputs": {"O": {"Value": {"Ref": "A"}}}}
    stacks.create("near", {"A": parameter(Name="near")}, template=outputs)
    Stacks(aws, "us-west-2").create("far", {"A": parameter(Name="far")}, template=outputs)

    def reference(stack: str, **more: str) -> dict[str, Any]:
        return {"Fn::GetStackOutput": {"StackName": stack, "OutputName": "O", **more}}

    resources = {
        "B": parameter(reference("near"), Name="b"),
        "C": parameter(reference("far", Region="us-west-2"), Name="c"),
    }
    stacks.create("s", resources)
    assert (stacks.values()["b"], stacks.values()["c"]) == ("near", "far")
    stacks.create("lost", {"D": parameter(reference("nowhere"))})
    assert stacks.status("lost") == "ROLLBACK_COMPLETE"
    assert "nowhere" in stacks.reasons("lost", "ROLLBACK_IN_PROGRESS")[0]


# Nested stacks


@pytest.fixture
def nested(aws: EmulatedAws) -> Any:
    """Return a function that puts a template into a bucket and defines a nested stack of it."""
    s3 = aws.client("s3", "us-east-1")
    s3.create_bucket(Bucket="templates")

    def define(resources: dict[str, Any], key: str = "t", **properties: Any) -> dict[str, Any]:
        outputs = {"O": {"Value": {"Ref": next(iter(resources))}}}
        parameters = {name: {"Type": "String"} for name in properties.get("Parameters", {})}
        body = {"Parameters": parameters, "Resources": resources, "Outputs": outputs}
        s3.put_object(Bucket="templates", Key=key, Body=json.dumps(body).encode())
        url = f"https://templates.s3.us-east-1.amazonaws.com/{key}"
        return {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url, **properties}}

    return define


def test_a_nested_stack_gives_its_outputs_and_goes_with_its_parent(stacks: Stacks, nested: Any) -> None:
    child = nested({"A": parameter({"Ref": "Value"}, Name="a")}, Parameters={"Value": "1"})
    output = parameter({"Fn::GetAtt": ["Child", "Outputs.O"]}, Name="b")
    root_id = stacks.create("root", {"Child": child, "B": output}, Tags=[{"Key": "k", "Value": "v"}])
    child_id = stacks.resources("root")["Child"]
    described = stacks.describe(child_id)
    assert (described["ParentId"], described["RootId"]) == (root_id, root_id)
    assert described["Tags"] == [{"Key": "k", "Value": "v"}]
    assert stacks.values() == {"a": "1", "b": "a"}

    child["Properties"]["Parameters"]["Value"] = "2"
    stacks.update("root", {"Child": child, "B": output}, Tags=[{"Key": "k", "Value": "v"}])
    assert stacks.status(child_id) == "UPDATE_COMPLETE"
    assert stacks.values()["a"] == "2"

    stacks.delete("root")
    assert stacks.status(child_id) == "DELETE_COMPLETE"
    assert stacks.values() == {}


def test_a_failed_nested_stack_fails_its_parent(stacks: Stacks, nested: Any) -> None:
    root_id = stacks.create("root", {"Child": nested({"A": parameter(), "Bad": REFUSED | {"DependsOn": "A"}})})
    assert stacks.status(root_id) == "ROLLBACK_COMPLETE"
    [reason] = stacks.reasons(root_id, "CREATE_FAILED")
    assert reason.startswith("Embedded stack arn:aws:cloudformation:us-east-1:")
    assert "was not successfully created: The following resource(s) failed to create: [Bad]." in reason
    assert stacks.values() == {}


def test_a_failed_update_of_a_nested_stack_is_rolled_back_with_its_parent(stacks: Stacks, nested: Any) -> None:
    stacks.create("root", {"Child": nested({"A": parameter("1", Name="a")}), "B": parameter("1", Name="b")})
    worse = nested({"A": parameter("2", Name="a"), "Bad": REFUSED | {"DependsOn": "A"}}, key="worse")
    stacks.update("root", {"Child": worse, "B": parameter("2", Name="b")})
    assert stacks.status("root") == "UPDATE_ROLLBACK_COMPLETE"
    assert "was not successfully updated. Currently in UPDATE_ROLLBACK_" in stacks.reasons("root", "UPDATE_FAILED")[0]
    assert stacks.values() == {"a": "1", "b": "1"}


# What operations do beside


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


# Custom resources
