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
