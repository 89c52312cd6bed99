"""Change sets.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets.html
"""

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
    [detail] = by_id["Follower"]["Details"]
    assert (detail["Evaluation"], detail["Target"]["Name"]) == ("Dynamic", "Value")
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
