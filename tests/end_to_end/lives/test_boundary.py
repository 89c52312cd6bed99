"""A permissions boundary on live nodes: one that denies what they need, and one that allows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.lives.life import deployed
from tests.stacks.deployments import Raw

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NAME = "trn1-16"
ARN = "arn:aws:iam::123456789012:policy/boundary"


def with_a_boundary(raw: Raw) -> None:
    raw["roles"] = {"permissions_boundary_arn": ARN, "name_prefix": "lab-"}


def bound(iam: Any, *denied: str) -> None:
    """Let the boundary allow everything but some actions."""
    statements: list[dict[str, Any]] = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
    if denied:
        statements.append({"Effect": "Deny", "Action": list(denied), "Resource": "*"})
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.create_policy_version(PolicyArn=ARN, PolicyDocument=document, SetAsDefault=True)


def test_nodes_may_do_what_the_boundary_of_their_roles_allows(tmp_path: Path) -> None:
    with deployed(tmp_path, edit=with_a_boundary) as life:
        iam = life.aws.client("iam", "us-west-2")
        life.run("bootstrap", NAME)
        bound(iam, "s3:GetObject")

        life.run("deploy", NAME, "--yes", code=1)

        assert "the node's role may not read it" in life.run("diagnose", NAME, code=1)
        bound(iam)
        life.run("deploy", NAME, "--yes")
        assert "Healthy." in life.stage.ask("status", NAME)
        roles = [each["RoleName"] for each in iam.list_roles()["Roles"] if "aws-service-role" not in each["Path"]]
        described = [iam.get_role(RoleName=each)["Role"] for each in roles]
        unbounded = [each["RoleName"] for each in described if "PermissionsBoundary" not in each]
        assert unbounded == []
        assert {each for each in roles if not each.startswith(("lab-", "cdk-"))} == set()
