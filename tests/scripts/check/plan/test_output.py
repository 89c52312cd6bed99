"""The findings of a plan, and how it looks."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scripts.account.slurm import parse
from scripts.check.plan import findings, plan
from scripts.check.plan.model import (
    ClusterChange,
    ClusterPlan,
    Effect,
    Kind,
    PropertyChange,
    ResourceChange,
    Source,
    StackPlan,
)
from scripts.check.plan.permissions import narrowed
from scripts.check.plan.report import Plan
from scripts.core.findings import CheckStatus
from scripts.core.report import Line, Table
from tests.properties import QUICK
from tests.scripts.reports import as_markdown
from tests.scripts.slurm_samples import answer

SUBNET = ResourceChange(
    "Subnet",
    "AWS::EC2::Subnet",
    Effect.REPLACED,
    "subnet-1",
    ("CidrBlock",),
    (PropertyChange("CidrBlock", "10.0.0.0/24", "10.0.1.0/24"),),
)
BACKUPS = "LustreConfiguration.AutomaticBackupRetentionDays"
CLUSTER = ClusterPlan("mine", exists=True, source="its template")


def planned(*changes: ResourceChange, cluster: ClusterPlan = CLUSTER, **stack: Any) -> Plan:
    stack_plan = StackPlan("mine-network", **{"source": Source.CHANGE_SET, **stack}, changes=changes)
    return Plan(
        deployment="mine",
        region="us-west-2",
        against="account 123456789012",
        stacks=(stack_plan,),
        cluster=cluster,
        findings=(*findings.of_stack(stack_plan, "mine", accepted=False), *findings.of_cluster(cluster, "mine")),
    )


def tables(plan: Plan) -> list[Table]:
    """Return the tables of the stack and the cluster."""
    return [each for each in plan.blocks() if isinstance(each, Table)]


def changed(kind: Kind, passes_now: bool | None, fleet_status: str = "UNKNOWN") -> ClusterPlan:
    change = ClusterChange("Scheduling.Key", 1, 2, kind, passes_now, "because", ("a way",), "a command")
    return ClusterPlan("mine", exists=True, source="its template", fleet_status=fleet_status, changes=(change,))


# --- permissions ---


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ({"Action": ["s3:GetObject", "s3:PutObject"], "Resource": "*"}, "Allow s3:GetObject, s3:PutObject on *"),
        ({"Action": "a", "Principal": {"AWS": "1"}}, "Allow a to AWS 1"),
        ({"Action": "a", "Condition": {"Bool": {"b": "c"}}}, "Allow a if Bool b c"),
    ],
)
def test_a_new_statement_of_a_policy_is_listed_in_words(statement: dict[str, Any], line: str) -> None:
    before = {"Statement": [{"Effect": "Allow", "Action": "a:B", "Resource": "*"}]}
    properties = (
        PropertyChange(
            "PolicyDocument", before, {"Statement": [*before["Statement"], {"Effect": "Allow", **statement}]}
        ),
        PropertyChange("Path", "/", "/other/"),
        PropertyChange("Roles", ["a"], ["b"]),
    )
    policy = ResourceChange("Policy", "AWS::IAM::ManagedPolicy", Effect.CHANGED, properties=properties)
    [permission] = planned(policy, SUBNET).permissions
    assert (permission.subject, permission.lost, permission.gained) == (
        "mine-network/Policy (changed in place)",
        [],
        [line],
    )


SOME = st.lists(st.sampled_from("abcd"), min_size=1, unique=True)
STATEMENTS = st.fixed_dictionaries({"Effect": st.just("Allow"), "Action": SOME, "Resource": SOME})


def granted(*statements: Any) -> set[tuple[str, str]]:
    return {pair for each in statements if each for pair in product(each["Action"], each["Resource"])}


@QUICK
@given(before=STATEMENTS, after=STATEMENTS, same=st.sampled_from(["Action", "Resource", ""]))
def test_of_a_statement_that_changes_only_what_is_lost_and_gained_is_shown(
    before: dict[str, Any], after: dict[str, Any], same: str
) -> None:
    after |= {same: before[same]} if same else {}
    lost, gained = narrowed(before, [after])
    assert granted(lost) >= granted(before) - granted(after)
    assert granted(*gained) >= granted(after) - granted(before)
    if same and before != after:
        assert granted(lost).isdisjoint(granted(*gained)), "nothing that stays is shown"


def test_a_value_that_is_no_statement_has_its_name() -> None:
    rotation = PropertyChange("EnableKeyRotation", None, True)
    key = ResourceChange("Key", "AWS::KMS::Key", Effect.CHANGED, properties=(rotation,))
    [permission] = planned(key).permissions
    assert (permission.lost, permission.gained) == ([], ["EnableKeyRotation: true"])


def test_rules_and_inline_policies_are_in_words() -> None:
    rules = [
        {"IpProtocol": "tcp", "FromPort": 1018, "ToPort": 1023, "CidrIp": "10.0.0.0/16", "Description": "Lustre"},
        {"IpProtocol": -1, "SourceSecurityGroupId": "sg-1"},
    ]
    policies = [{"PolicyName": "Inline", "PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "a:B"}]}}]
    properties = (PropertyChange("SecurityGroupIngress", None, rules), PropertyChange("Policies", None, policies))
    [permission] = planned(ResourceChange("Role", "AWS::IAM::Role", Effect.ADDED, properties=properties)).permissions
    assert permission.gained == [
        "SecurityGroupIngress: TCP 1018-1023 from 10.0.0.0/16 (Lustre)",
        "SecurityGroupIngress: everything from sg-1",
        "Allow a:B",
    ]


def test_permissions_of_the_cluster() -> None:
    changes = [
        ClusterChange(path, [{"Policy": "a"}], [{"Policy": "b"}], Kind.LIVE, True)
        for path in ("HeadNode.Iam.AdditionalIamPolicies", "Tags")
    ]
    [permission] = planned(cluster=ClusterPlan("mine", True, "", changes=tuple(changes))).permissions
    assert (permission.lost, permission.gained) == (
        ["AdditionalIamPolicies: Policy a"],
        ["AdditionalIamPolicies: Policy b"],
    )


# --- findings on resources ---


def test_what_is_replaced_or_removed_says_why_and_whether_the_old_one_stays() -> None:
    plan = planned(
        SUBNET,
        ResourceChange("Bucket", "AWS::S3::Bucket", Effect.REMOVED, "bucket", old_stays=True),
        ResourceChange("Link", "AWS::FSx::DataRepositoryAssociation", Effect.REPLACED, causes=("FileSystemPath",)),
        ResourceChange("Role", "AWS::IAM::Role", Effect.REPLACED, causes=("RoleName",)),
    )
    subnet, bucket, link = plan.findings
    assert subnet.sentence == (
        "Subnet (AWS::EC2::Subnet subnet-1) is replaced, because of CidrBlock from 10.0.0.0/24 to 10.0.1.0/24: "
        "file system and nodes are in it; the old one is deleted"
    )
    assert bucket.sentence.endswith(
        "is removed: it holds data; it is retained outside of the stack, and continues to cost"
    )
    assert link.hint.startswith("two deployments")
    assert {each.status for each in plan.findings} == {CheckStatus.FAIL}


@pytest.mark.parametrize(("before", "after", "ends"), [(7, 0, True), (7, None, True), (7, 1, False), (0, None, False)])
def test_backups_that_end_are_a_warning(before: int, after: int | None, ends: bool) -> None:
    properties = (PropertyChange("SubnetIds", ["a"], ["b"]), PropertyChange(BACKUPS, before, after))
    system = ResourceChange("Lustre", "AWS::FSx::FileSystem", Effect.REPLACED, "", ("SubnetIds",), properties)
    plan = planned(system)
    assert [each.status for each in plan.findings] == [CheckStatus.FAIL, *[CheckStatus.WARN] * ends]
    [row] = tables(plan)[0].rows
    assert row[-1].startswith(f"SubnetIds; also changed: {BACKUPS} from {before} to ")


# --- findings on the cluster ---


@pytest.mark.parametrize(
    ("cluster", "status", "answer", "sentence"),
    [
        (
            changed(Kind.REFUSED, False),
            CheckStatus.FAIL,
            "refused",
            "is refused as long as the cluster exists: because",
        ),
        (
            changed(Kind.FLEET_STOPPED, False, "RUNNING"),
            CheckStatus.FAIL,
            "needs the fleet stopped; not now",
            "needs the fleet STOPPED, and it is RUNNING",
        ),
        (
            changed(Kind.FLEET_STOPPED, None),
            CheckStatus.WARN,
            "needs the fleet stopped",
            "needs the fleet STOPPED, and its status could not be read",
        ),
        (
            changed(Kind.FLEET_STOPPED, True, "STOPPED"),
            CheckStatus.WARN,
            "needs the fleet stopped; passes now",
            "the fleet is STOPPED, as this deployment requires, and stays STOPPED",
        ),
    ],
)
def test_a_key_of_the_cluster(cluster: ClusterPlan, status: CheckStatus | None, answer: str, sentence: str) -> None:
    plan = planned(cluster=cluster)
    [row] = tables(plan)[1].rows
    assert row == ["Scheduling.Key", "1", "2", answer]
    assert [each.status for each in plan.findings] == ([status] if status else [])
    assert all(each.sentence.endswith(sentence) for each in plan.findings)
    assert plan.ok == (status is not CheckStatus.FAIL)


@pytest.mark.parametrize(("fleet_status", "warned"), [("RUNNING", True), ("STOPPED", False)])
def test_jobs_that_end_are_warned_of_once(fleet_status: str, warned: bool) -> None:
    changes = (ClusterChange("SlurmQueues[a].MaxCount", 2, 1, Kind.TERMINATES, True),) * 2
    plan = planned(cluster=ClusterPlan("mine", True, "its template", fleet_status, changes))
    assert [(each.status, "because of SlurmQueues[a].MaxCount" in each.sentence) for each in plan.findings] == [
        (CheckStatus.WARN, True)
    ] * warned


@pytest.mark.parametrize(
    ("own", "is_asked", "changes", "blocked"),
    [
        ("UPDATE_ROLLBACK_COMPLETE", True, (), True),
        ("UPDATE_ROLLBACK_COMPLETE", True, (ClusterChange("Key", 1, 2, Kind.LIVE, True),), False),
        ("UPDATE_ROLLBACK_COMPLETE", False, (), False),
        ("UPDATE_COMPLETE", True, (), False),
        ("", True, (), False),
    ],
)
def test_after_a_roll_back_only_a_change_of_the_configuration_passes(
    own: str, is_asked: bool, changes: tuple[ClusterChange, ...], blocked: bool
) -> None:
    cluster = ClusterPlan("mine", True, "its template", "RUNNING", changes, is_asked)
    found = list(findings.of_roll_back(cluster, {"StackStatus": own} if own else None))
    assert [each.status for each in found] == [CheckStatus.FAIL] * blocked


@pytest.mark.parametrize(
    ("path", "fleet", "named"),
    [
        ("Scheduling.SlurmQueues[a].Networking", "RUNNING", "3 of ann in a"),
        ("HeadNode.Iam", "RUNNING", "3 of ann in a, 4 of bob in b"),
        ("Scheduling.SlurmQueues[c].Networking", "RUNNING", ""),
        ("HeadNode.Iam", "STOPPED", ""),
    ],
)
def test_jobs_on_nodes_that_are_terminated_are_named(
    monkeypatch: pytest.MonkeyPatch, path: str, fleet: str, named: str
) -> None:
    rows = [(3, "ann", "a", "RUNNING"), (4, "bob", "b", "COMPLETING"), (5, "cai", "a", "PENDING")]
    jobs = [(*each, 1, "1:00", "None", "bert") for each in rows]
    monkeypatch.setattr(plan, "HeadNode", MagicMock())
    monkeypatch.setattr(plan, "slurm_state", lambda _: parse(answer({"a": "up", "b": "up"}, jobs=jobs)))
    cluster = replace(CLUSTER, fleet_status=fleet, changes=(ClusterChange(path, "1", "2", Kind.TERMINATES, True),))
    found = [each.sentence for each in plan.findings_of_jobs(MagicMock(), cluster)]
    assert found == ([f"these have nodes there now: {named}"] if named else [])
    assert list(plan.findings_of_jobs(MagicMock(), replace(cluster, changes=()))) == []


# --- how it looks ---


def test_the_remark_on_a_stack() -> None:
    def remark(*changes: ResourceChange, **stack: Any) -> str:
        lines = [each for each in planned(*changes, **stack).blocks() if isinstance(each, Line)]
        return lines[1].parts[1].removeprefix(": ")

    silent = ResourceChange("A", "AWS::EC2::VPC", Effect.CHANGED, causes=("Metadata",))
    new = ResourceChange("A", "AWS::EC2::VPC", Effect.ADDED)
    assert remark() == "no changes, from a CloudFormation change set"
    assert remark(silent, other=("outputs",)).endswith("; also changed: outputs, metadata of 1 resource")
    assert remark(source=Source.STORED_TEMPLATE, reason="why") == "no changes, from the stored template (why)"
    assert remark(new, new, source=Source.NEW) == "the stack does not exist yet: 2 resources are added"


LONG = st.builds(lambda count, end: "a" * count + end, st.integers(0, 80), st.text("ab.", max_size=3))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | LONG,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["Name", "a", "b"]), inner),
    max_leaves=8,
)


@QUICK
@given(before=VALUES, after=VALUES, longest=st.sampled_from([30, 60]))
@example(before="a" * 70 + "b", after="a" * 70 + "c", longest=60)
@example(before=["a" * 29], after=["a" * 30], longest=30)
def test_different_values_look_different_and_fit(before: Any, after: Any, longest: int) -> None:
    assume(before != after)
    first, second = findings.shown_difference(before, after, longest)
    assert first != second
    assert max(len(first), len(second)) <= longest


WORDS = st.lists(st.sampled_from([f"s3://bucket-{number}/long/key" for number in range(6)]), unique=True)


@QUICK
@given(before=WORDS, after=WORDS, depth=st.integers(0, 2))
def test_a_list_shows_the_items_that_come_and_go_and_no_others(before: list[str], after: list[str], depth: int) -> None:
    assume({*before} != {*after})
    deep: list[Any] = [before, after]
    for _ in range(depth):
        deep = [["first", {"Args": each, "Same": "other"}] for each in deep]
    shown = findings.shown_difference(deep[0], deep[1], 1000)
    for text, own, others in ((shown[0], before, after), (shown[1], after, before)):
        assert re.findall(r"s3://bucket-\d/long/key", text) == [each for each in own if each not in others]
        assert "other" not in text


def test_long_values_are_cut_and_lists_show_only_the_difference() -> None:
    assert findings.shown_difference(["a", "b"], ["a", "c"]) == ("[..., b]", "[..., c]")
    assert findings.shown_difference(["a"], ["a", "c"]) == ("[...]", "[..., c]")
    old, new = ([f"s3://cdk-hnb659fds-assets-1-us-west-2/{each}.json"] for each in ("old", "new"))
    assert findings.shown_difference(old, new, 30) == (
        "...ts-1-us-west-2/old.json]",
        "...ts-1-us-west-2/new.json]",
    )
    assert findings.shown_difference(None, {"Name": "second", "More": 1}) == ("none", "second")
    assert findings.shown_difference(True, "x" * 70) == ("true", "x" * 57 + "...")


def test_a_comment_shows_any_text_as_it_is() -> None:
    odd = ResourceChange("A", "AWS::EC2::VPC", Effect.CHANGED, causes=("a|b", "<img>", "_c_", "`d`"))
    assert "a\\|b, \\<img>, \\_c\\_, \\`d\\`" in as_markdown(planned(odd).page())
