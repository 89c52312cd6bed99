"""Change sets.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets.html
"""

import base64
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.emulator.stacks import Stacks, code_and_message, parameter

VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}


def changes(change_set: Any) -> dict[str, tuple[str, str | None]]:
    """Return action and replacement by logical id."""
    described = [each["ResourceChange"] for each in change_set["Changes"]]
    return {each["LogicalResourceId"]: (each["Action"], each.get("Replacement")) for each in described}


def test_a_new_stack_waits_for_review_until_its_change_set_is_executed(stacks: Stacks) -> None:
    change_set = stacks.change_set("s", {"A": parameter()}, ChangeSetType="CREATE")
    assert (change_set["Status"], change_set["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
    assert changes(change_set) == {"A": ("Add", None)}
    assert stacks.status("s") == "REVIEW_IN_PROGRESS"
    assert stacks.client.get_template(StackName="s")["TemplateBody"] == ""
    assert stacks.values() == {}
    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    assert stacks.status("s") == "CREATE_COMPLETE"
    executed = stacks.client.describe_change_set(ChangeSetName=change_set["ChangeSetId"])
    assert executed["ExecutionStatus"] == "EXECUTE_COMPLETE"


def test_the_name_of_a_change_set_is_free_once_it_is_executed(stacks: Stacks) -> None:
    # https://github.com/elias5000/clouds-aws/issues/9: executed, and made again under the same name, on AWS
    first = stacks.change_set("s", {"A": parameter()}, ChangeSetType="CREATE")
    with pytest.raises(ClientError) as refused:
        stacks.change_set("s", {"A": parameter("2")}, ChangeSetType="CREATE")
    assert code_and_message(refused.value)[0] == "AlreadyExistsException"
    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    second = stacks.change_set("s", {"A": parameter("2")})
    for name, expected in (("c", second), (first["ChangeSetId"], first), (second["ChangeSetId"], second)):
        described = stacks.client.describe_change_set(ChangeSetName=name, StackName="s")
        assert described["ChangeSetId"] == expected["ChangeSetId"]
    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    assert list(stacks.values().values()) == ["2"]


def test_change_sets_that_were_executed_are_not_listed(stacks: Stacks) -> None:
    """LocalStack's test_create_change_set_update_without_parameters recorded it."""
    stacks.change_set("s", {"A": parameter()}, ChangeSetType="CREATE")
    assert [each["ChangeSetName"] for each in stacks.client.list_change_sets(StackName="s")["Summaries"]] == ["c"]
    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    assert stacks.client.list_change_sets(StackName="s")["Summaries"] == []


def test_a_template_is_found_by_its_change_set(stacks: Stacks) -> None:
    made = stacks.change_set("s", {"A": parameter()}, ChangeSetType="CREATE")
    by_name = stacks.client.get_template(ChangeSetName="c", StackName="s")["TemplateBody"]
    by_id = stacks.client.get_template(ChangeSetName=made["ChangeSetId"])["TemplateBody"]
    assert by_name == by_id == {"Resources": {"A": parameter()}}


def test_a_new_stack_may_be_empty(stacks: Stacks) -> None:
    """LocalStack's test_simple_condition_evaluation_doesnt_deploy_resource recorded it."""
    never = {"Conditions": {"Never": {"Fn::Equals": ["a", "b"]}}}
    change_set = stacks.change_set("s", {"A": parameter(Condition="Never")}, template=never, ChangeSetType="CREATE")
    assert (change_set["Status"], change_set["Changes"]) == ("CREATE_COMPLETE", [])
    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    assert stacks.status("s") == "CREATE_COMPLETE"


def test_a_stack_in_review_is_created_without_its_change_set(stacks: Stacks) -> None:
    """LocalStack's test_create_while_in_review recorded it."""
    change_set = stacks.change_set("s", {"A": parameter()}, ChangeSetType="CREATE")
    assert stacks.create("s", {"B": parameter()}) == change_set["StackId"]
    assert stacks.resources("s").keys() == {"B"}
    described = stacks.client.describe_change_set(ChangeSetName=change_set["ChangeSetId"])
    assert described["ExecutionStatus"] == "OBSOLETE"
    assert "ChangeSetId" not in stacks.describe("s")


def test_a_stack_names_the_change_set_that_made_it_what_it_is(stacks: Stacks) -> None:
    """LocalStack's test_no_echo_parameter and test_handle_existing_log_group recorded when it names none."""
    stacks.change_set("s", {"A": parameter()}, ChangeSetType="CREATE")
    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    assert stacks.describe("s")["ChangeSetId"]
    stacks.update("s", {"A": parameter("2")})
    assert "ChangeSetId" not in stacks.describe("s")
    stacks.change_set("bad", {"A": parameter(Name="aws/refused")}, ChangeSetType="CREATE")
    stacks.client.execute_change_set(ChangeSetName="c", StackName="bad")
    assert stacks.status("bad") == "ROLLBACK_COMPLETE"
    assert "ChangeSetId" not in stacks.describe("bad")


def test_a_policy_that_is_no_more_written_out_is_a_change(stacks: Stacks) -> None:
    """LocalStack's test_update_with_previous_parameter_value passed on AWS."""
    stacks.create("s", {"A": parameter(UpdateReplacePolicy="Delete")})
    stacks.update("s", {"A": parameter()})
    assert stacks.status("s") == "UPDATE_COMPLETE"


def test_change_sets_that_are_not_there(stacks: Stacks) -> None:
    # recorded on AWS by LocalStack's test api/test_changesets.py; of the last, the CDK's command line says so
    stacks.create("s", {"A": parameter()})
    stackless = "StackName must be specified if ChangeSetName is not specified as an ARN."
    for action, arguments, code, message, status in (
        ("delete_change_set", {"StackName": "none"}, "ValidationError", "Stack [none] does not exist", 400),
        ("delete_change_set", {}, "ValidationError", stackless, 400),
        ("describe_change_set", {"StackName": "s"}, "ChangeSetNotFound", "ChangeSet [c] does not exist", 404),
    ):
        with pytest.raises(ClientError) as refused:
            getattr(stacks.client, action)(ChangeSetName="c", **arguments)
        assert code_and_message(refused.value) == (code, message)
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    stacks.client.delete_change_set(ChangeSetName="c", StackName="s")


def test_descriptions_have_the_members_that_aws_gives(stacks: Stacks) -> None:
    """Recorded on AWS by LocalStack's tests api/test_stacks.py and api/test_changesets.py."""
    always = {"CreationTime", "DisableRollback", "DriftInformation", "NotificationARNs", "RollbackConfiguration"}
    always |= {"StackId", "StackName", "StackStatus", "Tags"}
    of_change_set = {"Capabilities", "ChangeSetId", "ChangeSetName", "Changes", "CreationTime", "ExecutionStatus"}
    of_change_set |= {
        "IncludeNestedStacks",
        "NotificationARNs",
        "RollbackConfiguration",
        "StackId",
        "StackName",
        "Status",
    }
    change_set = stacks.change_set(
        "s",
        {"A": parameter()},
        template={"Description": "d"},
        ChangeSetType="CREATE",
        Tags=[{"Key": "k", "Value": "v"}],
    )
    assert change_set.keys() - {"ResponseMetadata"} == of_change_set | {"Tags"}
    added = change_set["Changes"][0]["ResourceChange"]
    assert added.keys() == {"Action", "Details", "LogicalResourceId", "ResourceType", "Scope"}
    described = stacks.describe("s")
    assert described.keys() == always | {"EnableTerminationProtection", "StackStatusReason"}
    assert described["Tags"] == []
    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    created = always | {"ChangeSetId", "Description", "EnableTerminationProtection", "LastUpdatedTime"}
    assert stacks.describe("s").keys() == created
    stacks.delete("s")
    gone = stacks.describe(described["StackId"])
    assert gone.keys() == always | {"DeletionTime", "Description", "LastUpdatedTime"}


def test_a_change_says_what_causes_it_and_on_demand_the_values(stacks: Stacks) -> None:
    """In AWS's forms: LocalStack's test_change_set_parameters.py and test_change_set_fn_get_attr.py recorded them."""

    def template(value: str) -> dict[str, Any]:
        return {
            "template": {"Parameters": {"P": {"Type": "String"}}},
            "Parameters": [{"ParameterKey": "P", "ParameterValue": value}],
        }

    follower = parameter({"Fn::GetAtt": ["Named", "Value"]}, Name="follower")
    resources = {"Changed": parameter({"Ref": "P"}, Name="changed"), "Named": parameter(Name="a"), "F": follower}
    stacks.create("s", {**resources, "Gone": parameter({"Ref": "Changed"})}, **template("1"))
    change_set = stacks.change_set(
        "s", {**resources, "Named": parameter(Name="b"), "New": parameter()}, **template("2")
    )
    plain = {each["ResourceChange"]["LogicalResourceId"]: each["ResourceChange"] for each in change_set["Changes"]}
    assert reasons(plain["Changed"]) == [
        ("Value", "DirectModification", "Dynamic", None),
        ("Value", "ParameterReference", "Static", "P"),
    ]
    assert reasons(plain["F"]) == [("Value", "ResourceAttribute", "Static", "Named.Value")]
    assert reasons(plain["Named"]) == [("Name", "DirectModification", "Static", None)]
    assert plain["Changed"].keys().isdisjoint({"BeforeContext", "AfterContext"})
    described = stacks.client.describe_change_set(ChangeSetName=change_set["ChangeSetId"], IncludePropertyValues=True)
    valued = {each["ResourceChange"]["LogicalResourceId"]: each["ResourceChange"] for each in described["Changes"]}
    assert reasons(valued["F"]) == [
        ("Value", "DirectModification", "Dynamic", None),
        ("Value", "ResourceAttribute", "Static", "Named.Value"),
    ]
    # What another resource gave to one that goes, is not told: LocalStack's test_stack_deletion_order.
    assert json.loads(valued["Gone"]["BeforeContext"])["Properties"]["Value"] == "{{changeSet:KNOWN_AFTER_APPLY}}"
    assert json.loads(valued["New"]["AfterContext"]) == {"Properties": {"Type": "String", "Value": "v"}}
    contexts = [json.loads(valued["F"][name])["Properties"] for name in ("BeforeContext", "AfterContext")]
    assert [each["Value"] for each in contexts] == ["v", "{{changeSet:KNOWN_AFTER_APPLY}}"]
    assert valued["Changed"]["Details"][0]["Target"] == {
        "Attribute": "Properties",
        "Name": "Value",
        "RequiresRecreation": "Never",
        "AttributeChangeType": "Modify",
        "Path": "/Properties/Value",
        "BeforeValue": "1",
        "AfterValue": "2",
    }


BY_EVERY_FUNCTION = {
    "Plain": {"Ref": "P"},
    "Sub": {"Fn::Sub": "a${P}z"},
    "SubOfVariable": {"Fn::Sub": ["a${V}z", {"V": {"Ref": "P"}}]},
    "Join": {"Fn::Join": ["", ["a", {"Ref": "P"}, "z"]]},
    "Base64": {"Fn::Base64": {"Fn::Sub": "${P}"}},
    "Split": {"Fn::Select": [1, {"Fn::Split": ["-", {"Fn::Sub": "a-${P}-z"}]}]},
    "If": {"Fn::If": ["IsSecret", {"Ref": "P"}, "another branch"]},
    "FindInMap": {"Fn::FindInMap": ["M", {"Ref": "P"}, "told"]},
    "List": {"Fn::Join": [",", {"Ref": "L"}]},
}
"""The value of a parameter without echo, taken by each function that can take it."""


def test_the_value_of_a_parameter_without_echo_is_in_no_change_set_and_no_event(stacks: Stacks) -> None:
    """Whatever function takes it; resources have it."""

    def template(secret: str) -> dict[str, Any]:
        hidden = {"P": {"Type": "String", "NoEcho": True}, "L": {"Type": "CommaDelimitedList", "NoEcho": "true"}}
        given = {"P": secret, "L": f"{secret},{secret}"}
        return {
            "template": {
                "Parameters": hidden,
                "Conditions": {"IsSecret": {"Fn::Equals": [{"Ref": "P"}, "secret1"]}},
                "Mappings": {"M": {each: {"told": f"by-{each}"} for each in ("secret1", "secret2")}},
            },
            "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
        }

    resources = {name: parameter(value, Name=name) for name, value in BY_EVERY_FUNCTION.items()}
    told = []
    for kind, secret, wanted in (
        ("CREATE", "secret1", resources),
        ("UPDATE", "secret2", resources),
        ("UPDATE", "secret2", {"Plain": resources["Plain"]}),
    ):
        change_set = stacks.change_set("s", wanted, ChangeSetType=kind, **template(secret))
        found = {"ChangeSetName": change_set["ChangeSetId"]}
        told.append(stacks.client.describe_change_set(**found, IncludePropertyValues=True)["Changes"])
        stacks.client.execute_change_set(**found)
        stacks.follow(change_set["StackId"])
        assert stacks.values()["Plain"] == secret
    told.append(stacks.client.describe_stack_events(StackName="s")["StackEvents"])
    for secret in ("secret1", "secret2"):
        assert secret not in str(told)
        assert base64.b64encode(secret.encode()).decode() not in str(told)
    assert "a****z" in str(told)
    assert stacks.status("s") == "UPDATE_COMPLETE"


def reasons(change: Any) -> list[tuple[str, str, str, str | None]]:
    return [
        (each["Target"]["Name"], each["ChangeSource"], each["Evaluation"], each.get("CausingEntity"))
        for each in change["Details"]
    ]


def test_what_an_update_would_do(stacks: Stacks) -> None:
    resources = {
        "Same": parameter(),
        "InPlace": parameter("1"),
        "Replaced": parameter(Name="old", UpdateReplacePolicy="Retain"),
        "Follower": parameter({"Ref": "Replaced"}),
        "Gone": parameter(DeletionPolicy="Retain"),
        "Described": parameter(Metadata={"a": 1}),
    }
    stacks.create("s", resources)
    before = stacks.resources("s"), stacks.values()
    del resources["Gone"]
    resources |= {
        "InPlace": parameter("2"),
        "Replaced": parameter(Name="new", UpdateReplacePolicy="Retain"),
        "Described": parameter(Metadata={"a": 2}),
        "New": parameter(),
    }
    change_set = stacks.change_set("s", resources)
    assert changes(change_set) == {
        "InPlace": ("Modify", "False"),
        "Replaced": ("Modify", "True"),
        "Follower": ("Modify", "False"),
        "Gone": ("Remove", None),
        "Described": ("Modify", "False"),
        "New": ("Add", None),
    }
    by_id = {each["ResourceChange"]["LogicalResourceId"]: each["ResourceChange"] for each in change_set["Changes"]}
    assert by_id["Replaced"]["PolicyAction"] == "ReplaceAndRetain"
    assert by_id["Gone"]["PolicyAction"] == "Retain"
    assert by_id["Described"]["Scope"] == ["Metadata"]
    [detail] = by_id["Replaced"]["Details"]
    assert detail["Target"] == {"Attribute": "Properties", "Name": "Name", "RequiresRecreation": "Always"}
    assert reasons(by_id["Follower"]) == [("Value", "ResourceReference", "Static", "Replaced")]
    assert (stacks.resources("s"), stacks.values()) == before

    stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    assert stacks.status("s") == "UPDATE_COMPLETE"
    assert stacks.values()[stacks.resources("s")["Follower"]] == "new"


def test_whether_a_follower_is_replaced_may_be_known_only_later(stacks: Stacks) -> None:
    def resources(cidr: str) -> dict[str, Any]:
        subnet = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": cidr}
        return {
            "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": cidr}},
            "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {**subnet, "CidrBlock": "10.0.0.0/24"}},
        }

    stacks.create("s", resources("10.0.0.0/16"))
    change_set = stacks.change_set("s", resources("10.0.0.0/20"))
    assert changes(change_set) == {"Vpc": ("Modify", "True"), "Subnet": ("Modify", "Conditional")}


def test_what_another_stack_gives_is_known_only_after_the_deployment(stacks: Stacks) -> None:
    # https://github.com/aws/aws-cdk/issues/38829,
    # https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2559
    stacks.create(
        "network", {"Vpc": VPC}, template={"Outputs": {"Vpc": {"Value": {"Ref": "Vpc"}, "Export": {"Name": "vpc"}}}}
    )

    def resources(vpc: Any, block: str | None = None) -> dict[str, Any]:
        rule = {"CidrIp": block, "IpProtocol": "-1"}
        properties = {"GroupDescription": "d", "VpcId": vpc, "SecurityGroupIngress": [rule] if block else []}
        return {
            "Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": properties},
            "Follower": parameter({"Fn::GetAtt": ["Group", "GroupId"]}),
        }

    strong, weak = {"Fn::ImportValue": "vpc"}, {"Fn::GetStackOutput": {"StackName": "network", "OutputName": "Vpc"}}
    planned = {"Group": ("Modify", "Conditional"), "Follower": ("Modify", "False")}
    for name, before, after, change in (
        ("rewritten", resources(strong), resources(weak), planned),
        ("weak", resources(weak), resources(weak, "10.0.0.0/8"), planned),
        ("same", resources(weak), resources(weak), {}),
        ("strong", resources(strong), resources(strong, "10.0.0.0/8"), {"Group": ("Modify", "False")}),
    ):
        stacks.create(name, before)
        assert changes(stacks.change_set(name, after)) == change, name


def test_a_change_set_without_changes_fails(stacks: Stacks) -> None:
    stacks.create("s", {"A": parameter()})
    change_set = stacks.change_set("s", {"A": parameter()})
    assert (change_set["Status"], change_set["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert change_set["StatusReason"] == (
        "The submitted information didn't contain changes. Submit different information to create a change set."
    )
    with pytest.raises(ClientError) as refused:
        stacks.client.execute_change_set(ChangeSetName="c", StackName="s")
    assert code_and_message(refused.value)[0] == "InvalidChangeSetStatus"
