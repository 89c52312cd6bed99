"""The boundary of all roles, and roles of yours that nodes have: what is not there, and what they may not do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from scripts.account.deployment import Deployment
from scripts.check.preflight.check import check
from scripts.core.findings import FAIL, PASS, Finding

_OF_ALL: Final = frozenset(
    {
        *(f"dynamodb:{each}" for each in ("GetItem", "PutItem", "UpdateItem")),
        *(f"logs:{each}" for each in ("CreateLogStream", "DescribeLogStreams", "PutLogEvents")),
        *(f"ssmmessages:{each}{kind}" for each in ("Create", "Open") for kind in ("ControlChannel", "DataChannel")),
        "cloudformation:DescribeStackResource",
        "cloudwatch:PutMetricData",
        "ec2:DescribeInstanceAttribute",
        "s3:GetObject",
        "ssm:UpdateInstanceInformation",
    }
)
NEEDED: Final[Mapping[str, frozenset[str]]] = {
    "compute nodes": _OF_ALL | {"dynamodb:Query"},
    "login nodes": _OF_ALL
    | {"autoscaling:CompleteLifecycleAction", "cloudformation:DescribeStacks", "ssm:GetParameter"},
    "head node": _OF_ALL
    | {
        *(f"cloudformation:{each}" for each in ("DescribeStacks", "SignalResource")),
        *(f"dynamodb:{each}" for each in ("BatchGetItem", "BatchWriteItem")),
        *(f"ec2:{each}" for each in ("AttachVolume", "CreateFleet", "CreateTags", "DetachVolume", "GetConsoleOutput")),
        *(f"ec2:Describe{each}" for each in ("CapacityReservations", "InstanceStatus", "Instances")),
        *(f"ec2:Describe{each}" for each in ("LaunchTemplateVersions", "Volumes")),
        *(f"ec2:{each}" for each in ("RunInstances", "TerminateInstances")),
        *(f"ec2messages:{each}" for each in ("AcknowledgeMessage", "DeleteMessage", "FailMessage", "GetEndpoint")),
        *(f"ec2messages:{each}" for each in ("GetMessages", "SendReply")),
        *(f"s3:{each}" for each in ("GetBucketLocation", "GetObjectVersion", "ListBucket")),
        "iam:PassRole",
        "route53:ChangeResourceRecordSets",
        "ssm:GetParameter",
    },
}
"""What roles of nodes may do that ParallelCluster and this project make, and of CloudWatchAgentServerPolicy what the
agent sends logs and metrics by. A test holds them to tests/scripts/check/golden/permissions.txt."""


def lacking(needed: Iterable[str], policies: Sequence[Any], boundary: Any = None) -> list[str]:
    """Return which actions policies do not allow, or a boundary does not.

    Resources and conditions are not looked at, so that a statement about certain ones counts as one about all; but for
    a Deny, which counts if it is about everything without a condition.

    Args:
        needed: Actions.
        policies: Documents.
        boundary: Document of the boundary; None: there is none.
    """
    allowed = [each for policy in policies for each in _statements(policy)]
    bounds = None if boundary is None else list(_statements(boundary))
    return sorted(
        action
        for action in needed
        if not _allow(allowed, action) or (bounds is not None and not _allow(bounds, action))
    )


def _allow(statements: Iterable[Mapping[str, Any]], action: str) -> bool:
    is_allowed = False
    for each in statements:
        if not _concerns(each, action):
            continue
        if each["Effect"] == "Allow":
            is_allowed = True
        elif not each.get("Condition") and "*" in _several(each.get("Resource", ())):
            return False
    return is_allowed


def _concerns(statement: Mapping[str, Any], action: str) -> bool:
    named = _several(statement.get("NotAction", statement.get("Action", ())))
    fits = any(re.fullmatch(_pattern(each), action, re.IGNORECASE) for each in named)
    return fits != ("NotAction" in statement)


def _pattern(text: str) -> str:
    return re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")


def _several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _statements(document: Any) -> Iterator[Mapping[str, Any]]:
    parsed = json.loads(document) if isinstance(document, str) else document
    found = parsed["Statement"]
    yield from [found] if isinstance(found, dict) else found


@check("permissions-boundary", "Boundary of all roles", calls=("iam:GetPolicy",))
def permissions_boundary(deployment: Deployment) -> Finding | None:
    """IAM would refuse to make the first role."""
    arn = deployment.settings.permissions_boundary_arn
    if arn is None:
        return None
    command = deployment.command("iam", "get-policy", "--policy-arn", arn)
    if deployment.account.find("iam", "get_policy", PolicyArn=arn) is None:
        hint = f"make it, or change `roles.permissions_boundary_arn` in {deployment.file}"
        return Finding(FAIL, f"there is no policy {arn}", hint, command)
    return Finding(PASS, f"{arn} exists", command=command)


@check(
    "own-roles",
    "Roles of yours for nodes",
    calls=(
        *(f"iam:{each}" for each in ("GetRole", "ListAttachedRolePolicies", "ListRolePolicies", "GetRolePolicy")),
        *(f"iam:{each}" for each in ("GetPolicy", "GetPolicyVersion")),
    ),
)
def own_roles(deployment: Deployment) -> Iterator[Finding]:
    """Nodes would not start, or fail later at what their role does not allow.

    Compare what policies and boundary of the role allow with what ParallelCluster and this project do on such nodes.
    """
    cluster = deployment.settings.cluster
    given = [
        ("cluster.head_node", "head node", cluster.head_node.instance_role_arn),
        *(
            (f"cluster.login_nodes[{i}]", "login nodes", each.instance_role_arn)
            for i, each in enumerate(cluster.login_nodes)
        ),
        *((f"cluster.queues[{i}]", "compute nodes", each.instance_role_arn) for i, each in enumerate(cluster.queues)),
    ]
    for place, kind, arn in given:
        if arn is not None:
            finding = _judge(deployment, kind, arn)
            yield finding.of(f"{place}.instance_role_arn", finding.command)


def _judge(deployment: Deployment, kind: str, arn: str) -> Finding:
    name = arn.rpartition("/")[2]
    command = deployment.command("iam", "get-role", "--role-name", name)
    found = deployment.account.find("iam", "get_role", RoleName=name)
    if found is None or found["Role"]["Arn"] != arn:
        hint = f"make it, or change the setting in {deployment.file}"
        return Finding(FAIL, f"there is no role {arn}", hint, command)
    role = found["Role"]
    if "ec2.amazonaws.com" not in json.dumps(role["AssumeRolePolicyDocument"]):
        hint = "let its trust policy have the principal `Service: ec2.amazonaws.com`"
        return Finding(FAIL, f"EC2 may not assume {name}", hint, command)
    bounded = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
    boundary = None if bounded is None else _document(deployment, bounded)
    missing = lacking(NEEDED[kind], list(_policies(deployment, name)), boundary)
    if missing:
        sentence = f"{name} lacks {len(missing)} of the {len(NEEDED[kind])} actions of a {kind.removesuffix('s')}: "
        hint = "allow them: tests/scripts/check/golden/permissions.txt has the roles that are made otherwise"
        return Finding(FAIL, sentence + ", ".join(missing), hint, command)
    return Finding(
        PASS, f"{name} allows the {len(NEEDED[kind])} actions of a {kind.removesuffix('s')}", command=command
    )


def _policies(deployment: Deployment, name: str) -> Iterator[Any]:
    account = deployment.account
    for policy in account.list("iam", "list_attached_role_policies", RoleName=name):
        yield _document(deployment, policy["PolicyArn"])
    for inline in account.list("iam", "list_role_policies", RoleName=name):
        yield account.ask("iam", "get_role_policy", RoleName=name, PolicyName=inline)["PolicyDocument"]


def _document(deployment: Deployment, arn: str) -> Any:
    version = deployment.account.ask("iam", "get_policy", PolicyArn=arn)["Policy"]["DefaultVersionId"]
    answer = deployment.account.ask("iam", "get_policy_version", PolicyArn=arn, VersionId=version)
    return answer["PolicyVersion"]["Document"]


CHECKS = (permissions_boundary, own_roles)
