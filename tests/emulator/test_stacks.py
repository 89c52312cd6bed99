"""The life of stacks, as the CloudFormation User Guide and API Reference describe it."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.stacks import TRUST, Stacks, code_and_message, export, parameter

REFUSED = parameter(Name="aws/refused")  # Systems Manager keeps names that begin with "aws" to itself


# Creation


def test_events_tell_of_each_step(stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
    stack_id = stacks.create("s", {"A": parameter({"Ref": "B"}), "B": parameter(), "C": parameter(DependsOn="A")})
    assert stacks.values()[stacks.resources("s")["A"]] == stacks.resources("s")["B"]
    stacks.update("s", {"A": parameter({"Ref": "B"}), "B": parameter("2"), "C": parameter(DependsOn="A")})
    stacks.delete("s")
    created = [
        event
        for name in ("B", "A", "C")
        for event in (
            (name, "CREATE_IN_PROGRESS", ""),
            (name, "CREATE_IN_PROGRESS", "Resource creation Initiated"),
            (name, "CREATE_COMPLETE", ""),
        )
    ]
    deleted = [(name, f"DELETE_{step}", "") for name in ("C", "A", "B") for step in ("IN_PROGRESS", "COMPLETE")]
    assert stacks.events(stack_id) == [
        ("s", "CREATE_IN_PROGRESS", "User Initiated"),
        *created,
        ("s", "CREATE_COMPLETE", ""),
        ("s", "UPDATE_IN_PROGRESS", "User Initiated"),
        ("B", "UPDATE_IN_PROGRESS", ""),
        ("B", "UPDATE_COMPLETE", ""),
        ("s", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", ""),
        ("s", "UPDATE_COMPLETE", ""),
        ("s", "DELETE_IN_PROGRESS", "User Initiated"),
        *deleted,
        ("s", "DELETE_COMPLETE", ""),
    ]
    assert stacks.values() == {}
    with pytest.raises(ClientError, match="Stack with id s does not exist"):
        stacks.describe("s")


def test_what_a_template_forgets_to_wait_for_is_not_there(stacks: Stacks) -> None:
    """A route to an internet gateway needs a DependsOn on its attachment, as the User Guide says."""
    attached = {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}}
    route = {
        "RouteTableId": {"Ref": "Table"},
        "GatewayId": {"Ref": "Gateway"},
        "DestinationCidrBlock": "0.0.0.0/0",
    }
    resources: dict[str, Any] = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "Attachment": {"Type": "AWS::EC2::VPCGatewayAttachment", "Properties": attached, "DependsOn": "Slow"},
        "Slow": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Route": {"Type": "AWS::EC2::Route", "Properties": route},
    }
    stacks.create("forgetful", resources, Capabilities=["CAPABILITY_IAM"])
    assert stacks.status("forgetful") == "ROLLBACK_COMPLETE"
    resources["Route"]["DependsOn"] = "Attachment"
    stacks.create("careful", resources, Capabilities=["CAPABILITY_IAM"])
    assert stacks.status("careful") == "CREATE_COMPLETE"


def test_a_failed_creation_is_rolled_back_and_can_only_be_deleted(stacks: Stacks) -> None:
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
    body = json.dumps({"Resources": {"A": parameter()}})
    for action, arguments, message in (
        (stacks.client.create_stack, {"TemplateBody": body}, "already exists"),
        (stacks.client.update_stack, {"TemplateBody": body}, "is in ROLLBACK_COMPLETE state and can not be updated"),
        (stacks.client.create_change_set, {"TemplateBody": body, "ChangeSetName": "c"}, "can not be updated"),
        (stacks.client.continue_update_rollback, {}, "can not continue rolling back update"),
    ):
        with pytest.raises(ClientError, match=message):
            action(StackName="s", **arguments)
    stacks.delete("s")
    stacks.create("s", {"A": parameter()})
    assert stacks.status("s") == "CREATE_COMPLETE"


def test_what_is_under_way_when_another_resource_fails_is_cancelled(stacks: Stacks) -> None:
    stacks.create("s", {"Bad": REFUSED, "Q": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}})
    assert ("Q", "CREATE_FAILED", "Resource creation cancelled") in stacks.events("s")
    assert "[Bad, Q]" in stacks.reasons("s", "ROLLBACK_IN_PROGRESS")[0]


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        (
            {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v", "Foo": 1}},
            "Properties validation failed for resource R with message: "
            "[#/Foo: Additional properties are not allowed ('Foo' was unexpected)]",
        ),
        ({"Type": "AWS::SES::ConfigurationSet"}, "Not emulated: resource type AWS::SES::ConfigurationSet"),
    ],
)
def test_what_is_wrong_with_a_resource_fails_the_stack_by_name(stacks: Stacks, resource: Any, reason: str) -> None:
    stacks.create("s", {"R": resource})
    assert stacks.reasons("s", "CREATE_FAILED") == [reason]


def test_a_parameter_without_echo_is_hidden_and_a_stored_list_is_a_list(stacks: Stacks) -> None:
    stacks.ssm.put_parameter(Name="stored", Type="StringList", Value="a,b")
    definitions = {
        "Hidden": {"Type": "String", "NoEcho": True},
        "Stored": {"Type": "AWS::SSM::Parameter::Value<List<String>>", "Default": "stored"},
    }
    values = {"Fn::Join": ["-", [{"Ref": "Hidden"}, {"Fn::Select": [1, {"Ref": "Stored"}]}]]}
    given = [{"ParameterKey": "Hidden", "ParameterValue": "secret"}]
    stacks.create("s", {"A": parameter(values, Name="a")}, template={"Parameters": definitions}, Parameters=given)
    assert stacks.values()["a"] == "secret-b"
    assert stacks.describe("s")["Parameters"] == [
        {"ParameterKey": "Hidden", "ParameterValue": "****"},
        {"ParameterKey": "Stored", "ParameterValue": "stored", "ResolvedValue": "a,b"},
    ]


def test_zones_are_those_of_a_region(stacks: Stacks) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-getavailabilityzones.html."""
    zones = {
        "Own": parameter({"Fn::Select": [0, {"Fn::GetAZs": ""}]}, Name="own"),
        "Other": parameter({"Fn::Select": ["1", {"Fn::GetAZs": "us-west-2"}]}, Name="other"),
    }
    stacks.create("s", zones)
    assert stacks.values() == {"own": "us-east-1a", "other": "us-west-2b"}
    stacks.create("t", {"Nowhere": parameter({"Fn::Select": [0, {"Fn::GetAZs": "mars"}]})})
    assert "Fn::GetAZs got mars" in str(stacks.events("t"))


def test_the_id_of_a_stack_is_no_name_for_another(stacks: Stacks) -> None:
    """Not even of one that waits for its first change set, which CreateStack takes over by its name."""
    stack_id = stacks.change_set("s", {"A": parameter()}, ChangeSetType="CREATE")["StackId"]
    with pytest.raises(ClientError, match="failed to satisfy constraint: Member must satisfy regular expression"):
        stacks.create(stack_id, {"A": parameter()})
    assert stacks.status("s") == "REVIEW_IN_PROGRESS"


def test_an_attribute_that_a_resource_does_not_have_is_not_missing_here(stacks: Stacks) -> None:
    key = {"AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}], "BillingMode": "PAY_PER_REQUEST"}
    table = {**key, "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}]}
    for name, resource, attribute in (
        ("a", {"Type": "AWS::DynamoDB::Table", "Properties": table}, "StreamArn"),
        ("b", {"Type": "AWS::SNS::Topic"}, "DisplayName"),
    ):
        stacks.create(name, {"R": resource}, template={"Outputs": {"O": {"Value": {"Fn::GetAtt": ["R", attribute]}}}})
        said = str(stacks.events(name))
        assert f"Unable to retrieve {attribute} attribute for {resource['Type']}" in said
        assert "Not emulated" not in said


# Update


def test_what_cannot_change_is_replaced_and_the_old_one_goes_last(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter(Name="old"), "B": parameter({"Ref": "A"}, Name="b")})
    stacks.update("s", {"A": parameter(Name="new"), "B": parameter({"Ref": "A"}, Name="b")})
    assert stacks.values() == {"new": "v", "b": "new"}
    events = stacks.events("s")
    hence = "Requested update requires the creation of a new physical resource; hence creating one."
    assert ("A", "UPDATE_IN_PROGRESS", hence) in events
    cleanup = events.index(("s", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", ""))
    assert events.index(("A", "DELETE_IN_PROGRESS", "")) > cleanup


def test_a_failed_update_is_rolled_back_and_what_it_was_asked_for_is_forgotten(stacks: Stacks) -> None:
    def template(value: str) -> dict[str, Any]:
        return {
            "template": {"Parameters": {"P": {"Type": "String"}}, "Outputs": {"O": {"Value": {"Ref": "B"}}}},
            "Parameters": [{"ParameterKey": "P", "ParameterValue": value}],
            "Tags": [{"Key": "k", "Value": value}],
        }

    resources = {"A": parameter({"Ref": "P"}), "B": parameter(Name="b"), "D": parameter(Name="d")}
    stacks.create("s", resources, **template("1"))
    before = stacks.resources("s"), stacks.values(), stacks.describe("s")
    changed = {"A": parameter({"Ref": "P"}), "B": parameter(Name="b2"), "C": parameter(Name="c")}
    stacks.update("s", {**changed, "Bad": REFUSED | {"DependsOn": ["A", "B", "C"]}}, **template("2"))
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.reasons("s", "UPDATE_ROLLBACK_IN_PROGRESS") == ["The following resource(s) failed to create: [Bad]. "]
    assert (stacks.resources("s"), stacks.values()) == before[:2]
    after = stacks.describe("s")
    assert all(after[key] == before[2][key] for key in ("Parameters", "Outputs", "Tags"))
    assert set(stacks.client.get_template(StackName="s")["TemplateBody"]["Resources"]) == resources.keys()
    stacks.update("s", resources, **template("3"))
    assert stacks.status("s") == "UPDATE_COMPLETE"


def stuck(capacity: int, value: str) -> dict[str, Any]:
    """Return resources of which "Grown" cannot become smaller again, when capacity 2400 and value 2 are rolled back."""
    subnet = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24"}
    lustre = {"DeploymentType": "SCRATCH_2"}
    files = {"FileSystemType": "LUSTRE", "SubnetIds": [{"Ref": "Subnet"}], "LustreConfiguration": lustre}
    return {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": subnet},
        "Grown": {"Type": "AWS::FSx::FileSystem", "Properties": {**files, "StorageCapacity": capacity}},
        "P": parameter(value, Name="p"),
        **({"Bad": REFUSED | {"DependsOn": ["Grown", "P"]}} if capacity > 1200 else {}),
    }


# https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html


def test_a_roll_back_that_fails_can_be_continued(stacks: Stacks) -> None:
    stacks.create("s", stuck(1200, "1"))
    stacks.update("s", stuck(2400, "2"))
    assert stacks.status("s") == "UPDATE_ROLLBACK_FAILED"
    assert "[Grown" in stacks.describe("s")["StackStatusReason"]
    for name in ("P", "Vpc", "None", "other.Grown"):  # cancelled, as it was, of no template, of no nested stack
        with pytest.raises(ClientError, match=rf"Resources \[{name}\] can not be skipped"):
            stacks.client.continue_update_rollback(StackName="s", ResourcesToSkip=[name, "Grown"])
        assert stacks.status("s") == "UPDATE_ROLLBACK_FAILED"
    stacks.client.continue_update_rollback(StackName="s")
    stacks.follow("s")
    assert stacks.status("s") == "UPDATE_ROLLBACK_FAILED"
    stacks.client.continue_update_rollback(StackName="s", ResourcesToSkip=["Grown"])
    stacks.follow("s")
    assert stacks.status("s") == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.values() == {"p": "1"}


def test_a_roll_back_skips_resources_of_nested_stacks_by_the_name_of_their_stack(stacks: Stacks, nested: Any) -> None:
    stacks.create("root", {"Child": nested(stuck(1200, "1")), "B": parameter("1", Name="b")})
    child_id = stacks.resources("root")["Child"]
    child = stacks.describe(child_id)["StackName"]
    stacks.update("root", {"Child": nested(stuck(2400, "2"), key="worse"), "B": parameter("2", Name="b")})
    assert (stacks.status("root"), stacks.status(child_id)) == ("UPDATE_ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED")
    for stack, name in ((child, "Grown"), ("root", "Grown"), ("root", "Child"), ("root", "Child.Grown")):
        with pytest.raises(ClientError, match="is nested" if stack == child else "can not be skipped"):
            stacks.client.continue_update_rollback(StackName=stack, ResourcesToSkip=[name])
    stacks.client.continue_update_rollback(StackName="root", ResourcesToSkip=[f"{child}.Grown"])
    stacks.follow("root")
    assert (stacks.status("root"), stacks.status(child_id)) == ("UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
    assert stacks.values() == {"p": "1", "b": "1"}


# Parameters and conditions


def test_parameters_keep_their_previous_value_and_stored_ones_are_looked_up_again(stacks: Stacks) -> None:
    stacks.ssm.put_parameter(Name="stored", Value="1", Type="String")
    types = {"Stored": {"Type": "AWS::SSM::Parameter::Value<String>"}, "Plain": {"Type": "String"}}
    resources = {"A": parameter({"Fn::Sub": "${Stored}-${Plain}"}, Name="a")}
    given = [{"ParameterKey": "Stored", "ParameterValue": "stored"}, {"ParameterKey": "Plain", "ParameterValue": "p"}]
    stacks.create("s", resources, template={"Parameters": types}, Parameters=given)
    stacks.ssm.put_parameter(Name="stored", Value="2", Type="String", Overwrite=True)
    kept = [{"ParameterKey": each["ParameterKey"], "UsePreviousValue": True} for each in given]
    stacks.update("s", resources, template={"Parameters": types}, Parameters=kept)
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


def test_what_is_refused_by_the_values_of_parameters(stacks: Stacks) -> None:
    # recorded on AWS by LocalStack's tests engine/test_mappings.py and engine/test_conditions.py
    template = {
        "Parameters": {"Key": {"Type": "String", "Default": "C"}},
        "Mappings": {"M": {"A": {"Suffix": "a"}}},
        "Conditions": {"IsA": {"Fn::Equals": [{"Ref": "Key"}, "A"]}},
    }
    mapped = parameter({"Fn::FindInMap": ["M", {"Ref": "Key"}, "Suffix"]})
    missing = "Unresolved resource dependencies [B] in the {} block of the template"
    for resources, outputs, message in (
        ({"A": mapped}, {}, "Template error: Unable to get mapping for M::C::Suffix"),
        (
            {"A": parameter({"Ref": "B"}), "B": parameter(Condition="IsA")},
            {},
            f"Template format error: {missing.format('Resources')}",
        ),
        (
            {"A": parameter(), "B": parameter(Condition="IsA")},
            {"O": {"Value": {"Ref": "B"}}},
            missing.format("Outputs"),
        ),
    ):
        body = {**template, "Outputs": outputs}
        with pytest.raises(ClientError) as refused:
            stacks.create("s", resources, template=body)
        assert code_and_message(refused.value) == ("ValidationError", message)
        with pytest.raises(ClientError) as refused:
            stacks.change_set("s", resources, template=body, ChangeSetType="CREATE")
        assert code_and_message(refused.value) == ("ValidationError", message)
    otherwise = {"Fn::If": ["IsA", mapped["Properties"]["Value"], "v"]}
    stacks.create("s", {"A": parameter(otherwise), "B": {**mapped, "Condition": "IsA"}}, template=template)
    assert stacks.status("s") == "CREATE_COMPLETE"


# Policies and protection


def test_a_policy_hangs_on_parameters(stacks: Stacks) -> None:
    # recorded on AWS by LocalStack's test engine/test_deletion_policy.py
    template = {
        "Parameters": {"Kind": {"Type": "String"}},
        "Conditions": {"Kept": {"Fn::Equals": [{"Ref": "Kind"}, "prod"]}},
    }
    policy = {"Fn::If": ["Kept", "Retain", "Delete"]}
    for name in ("prod", "dev"):
        given = [{"ParameterKey": "Kind", "ParameterValue": name}]
        resources = {"A": parameter(Name=name, DeletionPolicy=policy, UpdateReplacePolicy=policy)}
        stacks.create(name, resources, template=template, Parameters=given)
        stacks.update(name, {"A": {**resources["A"], "Metadata": {"a": 1}}}, template=template, Parameters=given)
        stacks.delete(name)
    assert set(stacks.values()) == {"prod"}
    wrong: tuple[tuple[Any, str], ...] = (
        ({"Ref": "Kind"}, "Template format error: Unrecognized DeletionPolicy prod for resource A"),
        ("Snapshot", "Template error: resource type AWS::SSM::Parameter does not support deletion policy Snapshot"),
    )
    for value, message in wrong:
        with pytest.raises(ClientError) as refused:
            stacks.create(
                "s",
                {"A": parameter(DeletionPolicy=value)},
                template=template,
                Parameters=[{"ParameterKey": "Kind", "ParameterValue": "prod"}],
            )
        assert code_and_message(refused.value) == ("ValidationError", message)


def test_what_policies_keep_at_deletion(stacks: Stacks) -> None:
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


@pytest.mark.parametrize(
    ("policy", "rolled_back", "removed"),
    [("Delete", False, False), ("RetainExceptOnCreate", False, True), ("Retain", True, True)],
)
def test_what_policies_keep_in_an_update(stacks: Stacks, policy: str, rolled_back: bool, removed: bool) -> None:
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


def test_termination_protection_is_that_of_the_root_stack(stacks: Stacks, nested: Any) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-protect-stacks.html
    stacks.create("root", {"Child": nested({"A": parameter()})}, EnableTerminationProtection=True)
    child_id = stacks.resources("root")["Child"]
    for stack in ("root", child_id):
        assert stacks.describe(stack)["EnableTerminationProtection"] is True
        with pytest.raises(ClientError, match="cannot be deleted while TerminationProtection is enabled"):
            stacks.delete(stack)
    stacks.client.update_termination_protection(StackName="root", EnableTerminationProtection=False)
    assert stacks.describe(child_id)["EnableTerminationProtection"] is False
    stacks.delete("root")
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

    for resource, template, verb in (
        (parameter(Name="a2"), outputs, "update"),
        (parameter(Name="a"), {"Outputs": {}}, "delete"),
    ):
        stacks.update("producer", {"A": resource}, template=template)
        assert stacks.status("producer") == "UPDATE_ROLLBACK_COMPLETE"
        assert f"Cannot {verb} export shared as it is in use by consumer" in "".join(
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


def test_an_output_that_another_stack_reads_can_change_and_go(stacks: Stacks, aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-getstackoutput.html

    def output(value: str) -> dict[str, Any]:
        return {"Outputs": {"O": {"Value": value}}}

    def reference(stack: str, **more: str) -> dict[str, Any]:
        return {"Fn::GetStackOutput": {"StackName": stack, "OutputName": "O", **more}}

    stacks.create("near", {"A": parameter(Name="a")}, template=output("1"))
    Stacks(aws, "us-west-2").create("far", {"A": parameter()}, template=output("far"))
    readers = {
        "B": parameter(reference("near"), Name="b"),
        "C": parameter(reference("far", Region="us-west-2"), Name="c"),
    }
    stacks.create("reader", readers)
    stacks.update("near", {"A": parameter(Name="a")}, template=output("2"))
    assert stacks.values() == {"a": "v", "b": "1", "c": "far"}
    stacks.update("reader", readers)
    assert stacks.values()["b"] == "2"
    stacks.delete("near")
    stacks.create("lost", {"D": parameter(reference("near"))})
    assert stacks.status("lost") == "ROLLBACK_COMPLETE"
    assert "Stack with id near does not exist" in stacks.reasons("lost", "ROLLBACK_IN_PROGRESS")[0]


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
