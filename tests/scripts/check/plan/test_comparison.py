"""Templates before and after: golden templates of trn1-16, one of them edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scripts.check.plan.comparison import NOT_YET_IN, Comparison, awaited
from scripts.check.plan.model import Effect, ResourceChange
from tests.scripts.check.plan.conftest import find, golden
from toolchain.assembly import Stack
from toolchain.deployed import NOT_YET

NETWORK, STORAGE, CLUSTER = (f"trn1-16-{part}" for part in ("network", "storage", "cluster"))

Stacks = dict[str, Stack]
Edit = Callable[[Stacks], object]


def compared(edit: Edit, **ids: dict[str, str]) -> Comparison:
    new = golden()
    edit(new)
    physical_ids = {f"trn1-16-{part}": each for part, each in ids.items()}
    return Comparison(golden(), new, physical_ids)


def effects(comparison: Comparison) -> dict[str, dict[str, str]]:
    """Return effects by part and resource type; of one of several of a type."""
    return {
        name.removeprefix("trn1-16-"): {change.type: change.effect for change in changes}
        for name, changes in comparison.changes.items()
        if changes
    }


def properties(stacks: Stacks, part: str, resource_type: str) -> Any:
    return find(stacks, part, resource_type)[1]["Properties"]


def file_system(stacks: Stacks) -> Any:
    return properties(stacks, "storage", "AWS::FSx::FileSystem")


def private_subnet(stacks: Stacks) -> Any:
    return next(
        resource["Properties"]
        for resource in stacks[NETWORK].resources.values()
        if resource["Properties"].get("CidrBlock") == "10.0.64.0/18"
    )


def move_private_subnet(stacks: Stacks) -> None:
    private_subnet(stacks)["CidrBlock"] = "10.0.128.0/18"


def touch(stacks: Stacks, *parts: str) -> None:
    """Change something that matters to no resource, so that the stacks are updated."""
    for part in parts:
        stacks[f"trn1-16-{part}"].template["Description"] = "changed"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        pytest.param(lambda s: None, {}, id="nothing"),
        pytest.param(
            lambda s: file_system(s).update(StorageCapacity=7200),
            {"storage": {"AWS::FSx::FileSystem": Effect.CHANGED}},
            id="bigger file system",
        ),
        pytest.param(
            lambda s: file_system(s)["LustreConfiguration"].update(PerUnitStorageThroughput=500),
            {"storage": {"AWS::FSx::FileSystem": Effect.REPLACED}},
            id="throughput, and the cluster is passed over",
        ),
        pytest.param(
            lambda s: properties(s, "storage", "AWS::EC2::SecurityGroup").update(SecurityGroupIngress=[]),
            {"storage": {"AWS::EC2::SecurityGroup": Effect.CHANGED}},
            id="what refers to an attribute of what is changed in place stays",
        ),
        pytest.param(
            lambda s: properties(s, "storage", "AWS::EC2::SecurityGroup").update(GroupDescription="other"),
            {
                "storage": {
                    "AWS::EC2::SecurityGroup": Effect.REPLACED,
                    "AWS::FSx::FileSystem": Effect.MAY_BE_REPLACED,
                }
            },
            id="what refers to an attribute of what is replaced may be replaced",
        ),
    ],
)
def test_what_happens_to_resources(edit: Edit, expected: dict[str, dict[str, str]]) -> None:
    assert effects(compared(edit)) == expected


def test_what_holds_a_policy_says_who_may_do_what() -> None:
    holders = {
        resource["Type"]
        for stack in golden().values()
        for resource in stack.resources.values()
        if any(key.endswith(("Policy", "PolicyDocument")) for key in resource.get("Properties", {}))
    }
    assert {"AWS::IAM::ManagedPolicy", "AWS::KMS::Key", "AWS::SNS::TopicPolicy"} <= holders
    assert [each for each in sorted(holders) if not ResourceChange("A", each, Effect.CHANGED).security] == []


def test_a_policy_and_a_type_are_properties_too() -> None:
    def edit(stacks: Stacks) -> None:
        find(stacks, "storage", "AWS::FSx::FileSystem")[1]["DeletionPolicy"] = "Delete"
        find(stacks, "storage", "AWS::Logs::LogGroup")[1]["Type"] = "AWS::SSM::Parameter"

    changes = {change.type: (change.effect, change.causes) for change in compared(edit).changes[STORAGE]}
    assert changes == {
        "AWS::FSx::FileSystem": (
            Effect.CHANGED,
            ("LustreConfiguration.LogConfiguration.Destination", "DeletionPolicy"),
        ),
        "AWS::SSM::Parameter": (Effect.REPLACED, ("Type",)),
    }


def test_what_depends_on_another_stack_follows_if_its_stack_is_updated() -> None:
    def edit(stacks: Stacks) -> None:
        move_private_subnet(stacks)
        touch(stacks, "storage", "cluster", "monitoring")

    comparison = compared(edit)
    [change] = comparison.changes[STORAGE]
    assert (change.type, change.effect, change.causes) == (
        "AWS::FSx::FileSystem",
        Effect.MAY_BE_REPLACED,
        ("SubnetIds",),
    )
    assert awaited(change) == (NETWORK,)
    assert change.properties[0].after == [NOT_YET_IN.format(NETWORK)]
    [cluster] = comparison.changes[CLUSTER]
    assert set(awaited(cluster)) == {NETWORK, STORAGE}
    assert comparison.left_behind() == {}


def test_a_stack_whose_template_stays_is_passed_over() -> None:
    comparison = compared(move_private_subnet)
    assert comparison.changes[STORAGE] == comparison.changes[CLUSTER] == ()
    left = comparison.left_behind()
    assert {name: [change.type for change in changes] for name, changes in left.items()} == {
        STORAGE: ["AWS::FSx::FileSystem"],
        CLUSTER: ["Custom::PclusterCluster"],
    }


def test_an_attribute_of_a_nested_stack_or_custom_resource_that_is_changed_may_change() -> None:
    def edit(stacks: Stacks) -> None:
        properties(stacks, "cluster", "AWS::CloudFormation::Stack")["TemplateURL"] = "https://other"

    comparison = compared(edit)
    [cluster] = [each for each in comparison.changes[CLUSTER] if each.type == "Custom::PclusterCluster"]
    assert (cluster.effect, cluster.causes) == (Effect.CHANGED, ("ServiceToken",))
    assert cluster.properties[0].after == NOT_YET


def test_tags_of_a_stack_are_those_of_its_resources() -> None:
    old, new = golden(), golden()
    new[STORAGE] = Stack(STORAGE, "us-west-2", "123456789012", new[STORAGE].template, {"team": "blue"})
    changes = Comparison(old, new).changes[STORAGE]
    assert {change.causes for change in changes} == {("Tags",)}
    assert {change.effect for change in changes} == {Effect.CHANGED}


def test_what_cannot_be_computed_counts_by_its_text() -> None:
    def select(stacks: Stacks) -> None:
        vpc, _ = find(stacks, "network", "AWS::EC2::VPC")
        blocks = {"Fn::GetAtt": [vpc, "CidrBlockAssociations"]}
        properties(stacks, "network", "AWS::Logs::LogGroup")["KmsKeyId"] = {"Fn::Select": [0, blocks]}

    old, new = golden(), golden()
    for stacks in (old, new):
        select(stacks)
    assert Comparison(old, new).changes[NETWORK] == ()
    properties(new, "network", "AWS::EC2::VPC")["CidrBlock"] = "10.1.0.0/16"
    changes = {change.type: change for change in Comparison(old, new).changes[NETWORK]}
    assert changes["AWS::EC2::VPC"].effect is Effect.REPLACED
    assert changes["AWS::Logs::LogGroup"].causes == ("KmsKeyId",)


def test_a_stack_that_is_added_or_removed() -> None:
    added = Comparison({}, {NETWORK: golden()[NETWORK]}).changes[NETWORK]
    assert [change.effect for change in added] == [Effect.ADDED] * len(golden()[NETWORK].resources)
    old = golden()
    removed = {change.type: change for change in Comparison(old, {}).changes[STORAGE]}
    assert {change.effect for change in removed.values()} == {Effect.REMOVED}
    assert {name: change.old_stays for name, change in removed.items() if "FSx" in name or "Logs" in name} == {
        "AWS::FSx::FileSystem": True,
        "AWS::Logs::LogGroup": False,
    }
    [policy, *_] = [each for each in Comparison(old, {}).changes[CLUSTER] if each.type == "AWS::IAM::ManagedPolicy"]
    assert "PolicyDocument" in {each.path for each in policy.properties}
    assert all(each.after is None for each in policy.properties)


def test_an_attribute_that_an_output_has_is_known_until_its_resource_is_replaced() -> None:
    logical_id, _ = find(golden(), "storage", "AWS::FSx::FileSystem")
    attribute = {"Fn::GetAtt": [logical_id, "DNSName"]}
    known = {(STORAGE, logical_id, "DNSName"): "fs-1.fsx.us-west-2.amazonaws.com"}
    same = Comparison(golden(), golden(), {}, known)
    assert same.before(STORAGE, attribute) == same.after(STORAGE, attribute) == "fs-1.fsx.us-west-2.amazonaws.com"
    new = golden()
    file_system(new)["LustreConfiguration"]["PerUnitStorageThroughput"] = 1000
    assert Comparison(golden(), new, {}, known).after(STORAGE, attribute) == NOT_YET
