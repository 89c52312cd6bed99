"""The tables of a review, on plain values; tests/end_to_end/test_review_page.py makes a whole one."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.review.deployment import nag_table, parallelcluster_table, permission_table, reach_table, resource_table
from scripts.review.templates import resources_of
from scripts.validation import Validation
from tests.scripts.test_drawing import stacks_of
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


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("trn1-16", ("head node", "SSH, TCP 22, from 127.0.0.1/32 (nobody)")),
        ("much", ("login nodes private", "SSH, TCP 22, from 10.0.0.0/8")),
        ("much", ("queue q4", "is also in much-storage/LustreSecurityGroupA46A9855")),
        (
            "much",
            (
                "much-network/NetworkVpcEndpointSecurityGroup468C37E7",
                "SecurityGroupIngress: TCP 443 from 10.0.0.0/16 (HTTPS from the VPC)",
            ),
        ),
    ],
)
def test_who_may_reach_what(name: str, row: tuple[str, str]) -> None:
    assert row in reach_table(list(resources_of(stacks_of(name)))).rows


def test_each_statement_is_said_once_with_all_who_have_it() -> None:
    rows = permission_table(resources_of(stacks_of("much"))).rows
    assert len({statement for _, statement in rows}) == len(rows)
    policy = "AdditionalIamPolicies: Policy much-cluster/ClusterScriptsComputeNodePolicy085A22527"
    assert ("queue q0, queue q1, ..., queue q4", policy) in rows
    role = "much-storage/HeadNodeSnapshotsRole26000FA4"
    assert (role, "Allow ec2:CreateSnapshot, ec2:CreateTags on arn:aws:ec2:us-west-2::snapshot/*") in rows
