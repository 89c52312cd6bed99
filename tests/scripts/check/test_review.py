"""The tables of a review, on plain values; tests/end_to_end/test_review_page.py makes a whole one."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.check.review.deployment import nag_table, parallelcluster_table, resource_table
from scripts.check.review.permissions import permission_table, reach_table
from scripts.check.review.templates import Resource, resources_of
from scripts.check.validation import Validation
from tests.scripts.check.test_drawing import stacks_of
from toolchain.parallelcluster import Message
from ultracluster.domain.validator_warnings import Verdict


def finding(rule: str, path: str, **more: str) -> dict[str, Any]:
    return {
        "ruleName": rule,
        "description": "wide",
        "severity": "error",
        "violatingConstructs": [{"constructPath": path}],
    } | more


def test_open_findings_come_first_and_acknowledged_ones_have_their_reasons() -> None:
    plugin = {
        "violations": [finding("IAM5", "a/Role"), finding("Annotation", "a", severity="warning")],
        "suppressedViolations": [finding("IAM5", each, reason="as AWS has it") for each in ("b/Role", "c/Role")],
    }
    assert nag_table({"pluginReports": [{"violations": []}, plugin]}).rows == [
        ("ERROR", "IAM5", "wide", "a/Role"),
        ("WARNING", "Annotation", "wide", "a"),
        ("acknowledged", "IAM5", "as AWS has it", "b/Role, c/Role"),
    ]


def test_findings_of_parallelcluster_have_what_they_do() -> None:
    report = Validation(
        cluster_name="mine",
        queues=1,
        messages=(Message("WARNING", "KeyPairValidator", "no key"), Message("ERROR", "KeyPairValidator", "wrong")),
        verdicts={"KeyPairValidator": Verdict(False, "accepted: no SSH")},
        problems=("ERROR KeyPairValidator: wrong",),
    )
    table = parallelcluster_table(report)
    assert [row[3] for row in table.rows] == ["accepted: no SSH", ""]
    assert table.notes == ["It fails: ERROR KeyPairValidator: wrong"]


def test_resources_are_counted_in_words_and_what_stays_is_named() -> None:
    rows = {row[0]: row[1:] for row in resource_table(resources_of(stacks_of("trn1-16"))).rows}
    assert rows["trn1-16-storage"] == (
        "5",
        "security group, log group, file system, role, lifecycle policy",
        "security group, file system",
    )
    assert "subnet (2)" in rows["trn1-16-network"][1]


def one_rule(group: dict[str, Any], kind: str = "SecurityGroup") -> Resource:
    return Resource("s/G", f"AWS::EC2::{kind}", "s", group, retained=False)


def test_who_may_reach_whom() -> None:
    rows = reach_table(list(resources_of(stacks_of("much")))).rows
    assert ("nobody", "login nodes public", "TCP 22 (SSH)", "AllowedIps 127.0.0.1/32") in rows
    assert ("10.0.0.0/8", "login nodes private", "TCP 22 (SSH)", "AllowedIps 10.0.0.0/8") in rows
    inside = "file system LustreF8935BA0, head node, ..., queue q4"
    group = "much-storage/LustreSecurityGroupA46A9855"
    assert ("10.0.0.0/16", inside, "TCP 988, 1018-1023", group) in rows
    assert (inside, "anywhere", "everything", group) in rows
    assert [row[1] for row in rows if row[0].startswith("VPC endpoint")] == ["nobody"]
    assert any(row[0] == "login nodes" for row in rows)
    assert not any(row[0] == "login nodes" for row in reach_table(list(resources_of(stacks_of("trn1-16")))).rows)


@pytest.mark.parametrize(
    ("resource", "row"),
    [
        (
            one_rule({"SecurityGroupIngress": [{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}]}),
            ("⚠ everyone (0.0.0.0/0)", "whoever is in it", "everything", "s/G"),
        ),
        (
            one_rule({"GroupId": "sg-1", "IpProtocol": "-1", "SourceSecurityGroupId": "sg-2"}, "SecurityGroupIngress"),
            ("sg-2", "sg-1", "everything", "sg-1"),
        ),
        (
            one_rule(
                {"GroupId": "sg-1", "IpProtocol": "-1", "DestinationSecurityGroupId": "sg-2"}, "SecurityGroupEgress"
            ),
            ("sg-1", "sg-2", "everything", "sg-1"),
        ),
    ],
)
def test_rules_of_a_group(resource: Resource, row: tuple[str, ...]) -> None:
    assert reach_table([resource]).rows == [row]


def test_who_may_do_what_has_those_alike_together_and_each_policy_at_its_holder() -> None:
    rows = permission_table(list(resources_of(stacks_of("much")))).rows
    may = "writes: CreateControlChannel, CreateDataChannel, OpenControlChannel, OpenDataChannel"
    assert (
        "queue q0, queue q1, ..., queue q4",
        "ssmmessages",
        may,
        "* (actions that know no resources)",
        "",
    ) in rows
    assert {row[0] for row in rows if row[1] == "secretsmanager"} == {
        "role much-cluster/ClusterProviderAccessRoleDD68D199, which lambda.amazonaws.com may assume"
    }
    snapshots = "role much-storage/HeadNodeSnapshotsRole26000FA4, which dlm.amazonaws.com may assume"
    everywhere = "⚠ arn:aws:ec2:us-west-2::snapshot/*"
    assert (snapshots, "ec2", "writes: CreateSnapshot; tags: CreateTags", everywhere, "") in rows
    key = ("everything", "much-monitoring/MonitoringKey61F0DC42", "")
    assert ("account 123456789012, by its IAM policies", "kms", *key) in rows
    assert [row[2] for row in rows if row[0] == "everyone"] == ["may not: everything", "may not: Publish"]
    assert not any("PendingWindow" in cell for row in rows for cell in row)


def policy(**statement: Any) -> Resource:
    document = {"Statement": [{"Effect": "Allow", **statement}]}
    return Resource("s/P", "AWS::IAM::ManagedPolicy", "s", {"PolicyDocument": document}, retained=False)


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ({"Action": "*", "Resource": "*"}, ("*", "everything", "⚠ every resource (*)", "")),
        ({"NotAction": "iam:*", "Resource": "a"}, ("iam", "all but everything", "a", "")),
        (
            {"Action": ["iam:PutRolePolicy", "iam:PassRole", "iam:GetRole", "iam:ListRoles"], "Resource": "a"},
            ("iam", "administers: PutRolePolicy; writes: PassRole; reads: GetRole; lists: ListRoles", "a", ""),
        ),
        ({"NotAction": "iam:Get*", "Resource": "a", "Effect": "Deny"}, ("iam", "may not: all but Get*", "a", "")),
        ({"Action": "new:Thing", "NotResource": "a"}, ("new", "may: Thing", "⚠ all but a", "")),
        (
            {"Action": "s3:Put*", "Resource": f"a/{'0' * 64}", "Condition": {"StringLike": {"k": ["x", "y"]}}},
            ("s3", "administers: Put*", "a/00000000…", "k is like x or y"),
        ),
    ],
)
def test_statements_in_words(statement: dict[str, Any], row: tuple[str, ...]) -> None:
    assert permission_table([policy(**statement)]).rows == [("whoever has policy s/P", *row)]
