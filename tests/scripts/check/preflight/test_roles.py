"""The boundary of roles, and roles of people for nodes: what they lack, by policies and boundary."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from emulator.aws import ACCOUNT, EmulatedAws
from scripts.account.deployment import Deployment
from scripts.check.preflight.roles import NEEDED, lacking, own_roles, permissions_boundary
from scripts.core.findings import FAIL, PASS
from tests.stacks.deployments import edited, raw_settings

GOLDEN = Path(__file__).parents[1] / "golden/permissions.txt"
PARTS = {"head node": "-RoleHeadNode-", "login nodes": "-LoginNodesNested-", "compute nodes": "-ComputeFleetQueu-"}
NOT_NEEDED = {"kms:Decrypt", "s3:Get*", "s3:List*"}
"""Of a customer's key; and of buckets, of which each node names what it reads."""
OF_AGENT = {
    *("cloudwatch:PutMetricData", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"),
}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/parallelcluster/nodes"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/boundary"


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*", **each} for each in statements]}


EVERYTHING = document({"Action": "*"})
S3 = {"s3:GetObject"}


@pytest.mark.parametrize(
    ("policies", "boundary", "lacks"),
    [
        ([], None, True),
        ([EVERYTHING], None, False),
        ([document({"Action": ["S3:get*"]})], None, False),
        ([document({"NotAction": "iam:*"})], None, False),
        ([document({"NotAction": ["s3:*"]})], None, True),
        ([document({"Action": "s3:GetObjects"})], None, True),
        ([EVERYTHING, document({"Effect": "Deny", "Action": "s3:*"})], None, True),
        ([EVERYTHING, document({"Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::a/*"})], None, False),
        ([EVERYTHING, document({"Effect": "Deny", "Action": "*", "Condition": {"Bool": {"a": "true"}}})], None, False),
        ([EVERYTHING], document({"Action": "ec2:*"}), True),
        ([document({"Action": "ec2:*"})], EVERYTHING, True),
        ([EVERYTHING], document({"Action": "*"}, {"Effect": "Deny", "Action": "s3:GetObject"}), True),
        ([{"Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}}], None, False),
    ],
)
def test_an_action_is_lacking_that_policies_or_boundary_do_not_allow(
    policies: list[Any], boundary: Any, lacks: bool
) -> None:
    assert lacking(S3, policies, boundary) == (sorted(S3) if lacks else [])


def test_the_actions_of_nodes_are_those_of_the_roles_that_are_made() -> None:
    roles = re.split(r"\n(?=arn:)", GOLDEN.read_text(encoding="utf-8"))
    for kind, part in PARTS.items():
        [role] = [each for each in roles if part in each.splitlines()[0]]
        made = set(re.findall(r"^ +allow (\S+)$", role, re.MULTILINE)) - NOT_NEEDED
        assert NEEDED[kind] == made | OF_AGENT, kind


def deployment(aws: EmulatedAws, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    return Deployment("trn1-16", settings)


def test_roles_and_boundary_are_looked_up_in_the_account(aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_roles(raw: dict[str, Any]) -> None:
        raw["roles"] = {"permissions_boundary_arn": BOUNDARY}
        raw["cluster"]["head_node"]["instance_role_arn"] = ROLE

    iam = aws.client("iam", "us-west-2")

    def found() -> list[tuple[Any, str]]:
        asked = deployment(aws, edited("trn1-16", with_roles), monkeypatch)
        [role] = list(own_roles.evaluate(asked))  # type: ignore[arg-type]
        boundary = permissions_boundary.evaluate(asked)
        return [(each.status, each.sentence) for each in (boundary, role)]  # type: ignore[union-attr]

    (boundary, _), (role, says) = found()
    assert (boundary, role) == (FAIL, FAIL)
    assert "there is no role" in says

    iam.create_policy(PolicyName="boundary", PolicyDocument=json.dumps(document({"NotAction": "iam:*"})))
    trust = document({"Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}})
    del trust["Statement"][0]["Resource"]
    made = {"RoleName": "nodes", "Path": "/parallelcluster/", "PermissionsBoundary": BOUNDARY}
    iam.create_role(**made, AssumeRolePolicyDocument=json.dumps(trust))
    some = document({"Action": sorted(NEEDED["head node"] - {"ec2:RunInstances"})})
    iam.put_role_policy(RoleName="nodes", PolicyName="p", PolicyDocument=json.dumps(some))
    (boundary, _), (role, says) = found()
    assert (boundary, role) == (PASS, FAIL)
    assert says.endswith(": ec2:RunInstances, iam:PassRole")

    iam.put_role_policy(RoleName="nodes", PolicyName="p", PolicyDocument=json.dumps(EVERYTHING))
    iam.delete_role_permissions_boundary(RoleName="nodes")
    assert [status for status, _ in found()] == [PASS, PASS]


def test_nothing_is_looked_up_without_roles(aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = deployment(aws, Settings.model_validate(raw_settings("trn1-16")), monkeypatch)
    assert permissions_boundary.evaluate(asked) is None
    assert list(own_roles.evaluate(asked)) == []  # type: ignore[arg-type]
