"""The stacks of a deployment and those nested in them, as CloudFormation describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from scripts.deployment import PARTS, Deployment

NESTED = "AWS::CloudFormation::Stack"
CLUSTER = "Custom::PclusterCluster"


@dataclass(frozen=True)
class StackResource:
    """A resource of a stack.

    Attributes:
        stack: Name of the stack.
        logical_id: Its name in the stack's template.
        physical_id: Its id or name; empty: it has none (yet).
        type: Its type, such as AWS::EC2::VPC.
        status: Its status.
        reason: Why it has this status; empty: CloudFormation gives none.
        changed: When it got this status.
    """

    stack: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str
    changed: datetime


def names(deployment: Deployment) -> list[str]:
    """Return the names of the stacks that a deployment may have, in the order of creation.

    The last but one is the cluster's own, which ParallelCluster creates during the creation of the stack before it.
    """
    stacks = [deployment.stack_name(part) for part in PARTS]
    return [*stacks[:-1], deployment.settings.cluster_spec.name, stacks[-1]]


def resources(deployment: Deployment, stack: str, *, deleted: bool = False) -> list[StackResource]:
    """Return the resources of a stack, given by name or id. 100 in each call; needs cloudformation:ListStackResources.

    Args:
        deployment: Whose stack.
        stack: Its name; of one that is deleted its id.
        deleted: Whether it is deleted, so that the answer never changes.

    Raises:
        botocore.exceptions.ClientError: It does not exist.
    """
    name = stack.split("/")[1] if stack.startswith("arn:") else stack
    return [
        StackResource(
            name,
            each["LogicalResourceId"],
            each.get("PhysicalResourceId", ""),
            each["ResourceType"],
            each["ResourceStatus"],
            each.get("ResourceStatusReason", ""),
            each["LastUpdatedTimestamp"],
        )
        for each in deployment.account.list("cloudformation", "list_stack_resources", lasting=deleted, StackName=stack)
    ]


def all_resources(deployment: Deployment, stack: str) -> Iterator[StackResource]:
    """Yield the resources of a stack and of those nested in it, the nested ones after the stack that has them."""
    for each in resources(deployment, stack):
        yield each
        if each.type == NESTED and each.physical_id and each.status != "DELETE_COMPLETE":
            yield from all_resources(deployment, each.physical_id)


def existing(deployment: Deployment, stack: str) -> list[StackResource]:
    """Return what exists of a stack, given by name, and of those nested in it; nothing: there is no such stack."""
    if deployment.stack(stack) is None:
        return []
    return [each for each in all_resources(deployment, stack) if each.physical_id and each.status != "DELETE_COMPLETE"]
