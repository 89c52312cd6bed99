"""The boundary of roles, and roles of people for nodes: what they lack, by policies and boundary."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from emulator.aws import ACCOUNT, EmulatedAws
from scripts.account.deployment import Account
from scripts.check.preflight.check import Check
from scripts.check.preflight.roles import NEEDED, lacking, own_roles, permissions_boundary
from scripts.core.findings import FAIL, PASS, CheckStatus
from tests.scripts.check.preflight.accounts import REGION, Case, Raw, new_network

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


def with_roles(raw: Raw) -> None:
    raw["account"] = ACCOUNT
    raw["roles"] = {"permissions_boundary_arn": BOUNDARY}
    raw["cluster"]["head_node"]["instance_role_arn"] = ROLE


def test_roles_and_boundary_are_looked_up_in_the_account(aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    iam = aws.client("iam", REGION)

    def verify(check: Check, status: CheckStatus, *says: str) -> None:
        Case(check, status, says, edit=with_roles, base=new_network).verify(Account(REGION))

    verify(permissions_boundary, FAIL, f"there is no policy {BOUNDARY}")
    verify(own_roles, FAIL, f"there is no role {ROLE}")

    iam.create_policy(PolicyName="boundary", PolicyDocument=json.dumps(document({"NotAction": "iam:*"})))
    trust = document({"Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}})
    del trust["Statement"][0]["Resource"]
    made = {"RoleName": "nodes", "Path": "/parallelcluster/", "PermissionsBoundary": BOUNDARY}
    iam.create_role(**made, AssumeRolePolicyDocument="{}")
    verify(own_roles, FAIL, "EC2 may not assume nodes")

    iam.update_assume_role_policy(RoleName="nodes", PolicyDocument=json.dumps(trust))
    some = document({"Action": sorted(NEEDED["head node"] - {"ec2:RunInstances"})})
    iam.put_role_policy(RoleName="nodes", PolicyName="p", PolicyDocument=json.dumps(some))
    iam.attach_role_policy(RoleName="nodes", PolicyArn="arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess")
    verify(permissions_boundary, PASS)
    verify(own_roles, FAIL, "nodes lacks 2 of the", ": ec2:RunInstances, iam:PassRole")

    iam.put_role_policy(RoleName="nodes", PolicyName="p", PolicyDocument=json.dumps(EVERYTHING))
    iam.delete_role_permissions_boundary(RoleName="nodes")
    verify(own_roles, PASS)
