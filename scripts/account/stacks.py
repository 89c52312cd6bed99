"""The stacks of a deployment and those nested in them, as CloudFormation describes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field

from config.settings import Settings
from scripts.account import generations
from scripts.account.deployment import Deployment
from scripts.account.stack_state import ResourceState, StackState
from scripts.core.aws_errors import if_found
from scripts.core.document import Document

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
    status: ResourceState
    reason: str
    changed: datetime


class StackEvent(Document):
    """An event of a stack; its JSON has what people need."""

    id: str = Field(exclude=True, description="Its id.")
    stack_id: str = Field(exclude=True, description="ARN of the stack.")
    stack: str = Field(description="The name of its stack.")
    logical_id: str = Field(description="Its name in the template; the stack's name in events of the stack itself.")
    physical_id: str = Field(exclude=True, description="The resource's id; empty: it has none (yet).")
    type: str = Field(description="Its type.")
    status: str = Field(description="Its status.")
    reason: str = Field(description="Why; empty: CloudFormation gives no reason.")
    time: datetime = Field(description="When.")
    properties: str = Field(exclude=True, description="The resource's properties as JSON; empty: not recorded.")
    token: str = Field(exclude=True, default="", description="The request's token; empty: the request had none.")

    @property
    def is_own(self) -> bool:
        """Whether it is about the stack itself, not one of its resources."""
        return self.physical_id == self.stack_id

    @property
    def is_start(self) -> bool:
        """Whether an operation on the stack starts with it."""
        return self.is_own and StackState(self.status).starts

    @property
    def has_failed(self) -> bool:
        """Whether what it is about failed: the resource, or the stack."""
        return ResourceState(self.status).has_failed


def other_clusters(settings: Settings, listed: Iterable[dict[str, Any]]) -> dict[str, StackState]:
    """Return the statuses of the stacks of a deployment's other clusters, by name: there is one during an upgrade.

    `listed` are the stacks of the Region, as CloudFormation describes them.
    """
    return {
        settings.of_generation(generation).stack_name("cluster"): status
        for generation, status in generations.among(settings, listed).items()
        if generation != settings.cluster.generation
    }


def names(deployment: Deployment) -> list[str]:
    """Return the names of the stacks that a deployment may have, in the order of creation.

    The last but one is the cluster's own, which ParallelCluster creates during the creation of the stack before it.
    """
    stacks = [deployment.stack_name(part) for part in deployment.settings.parts]
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
            ResourceState(each["ResourceStatus"]),
            each.get("ResourceStatusReason", ""),
            each["LastUpdatedTimestamp"],
        )
        for each in deployment.account.list("cloudformation", "list_stack_resources", lasting=deleted, StackName=stack)
    ]


def all_resources(deployment: Deployment, stack: str) -> Iterator[StackResource]:
    """Yield the resources of a stack and of those nested in it, the nested ones after the stack that has them."""
    for each in resources(deployment, stack):
        yield each
        if each.type == NESTED and each.physical_id and not each.status.is_gone:
            yield from all_resources(deployment, each.physical_id)


def existing(deployment: Deployment, stack: str) -> list[StackResource]:
    """Return what exists of a stack, given by name, and of those nested in it; nothing: there is no such stack."""
    if deployment.stack(stack) is None:
        return []
    listed = if_found(lambda: list(all_resources(deployment, stack))) or []  # none: deleted just now
    return [each for each in listed if each.physical_id and not each.status.is_gone]


def deletion_policies(deployment: Deployment, stack: str, resources: Iterable[StackResource]) -> dict[str, str]:
    """Return the deletion policies of those of some resources that are a stack's own, by id; empty: it has none.

    Needs cloudformation:GetTemplate.
    """
    own = {each.physical_id: each.logical_id for each in resources if each.stack == stack}
    if not own:
        return {}
    declared = deployment.template(stack)["Resources"]
    return {name: declared.get(logical_id, {}).get("DeletionPolicy", "") for name, logical_id in own.items()}


def deleted(deployment: Deployment) -> Iterator[dict[str, Any]]:
    """Yield the stacks deleted in the last 90 days, the newest first. 100 in each call.

    Needs cloudformation:ListStacks.
    """
    yield from deployment.account.list("cloudformation", "list_stacks", StackStatusFilter=[StackState.DELETE_COMPLETE])


def events(cloudformation: Any, stack: str, since: datetime | None = None) -> Iterator[StackEvent]:
    """Yield the events of a stack, newest first. 100 in each call; needs cloudformation:DescribeStackEvents.

    Args:
        cloudformation: A boto3 client.
        stack: Its name; of one that is deleted its id.
        since: The time back to which they are read; None: the start of the stack's last operation.

    Raises:
        botocore.exceptions.ClientError: It does not exist.
    """
    for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack):
        for described in page["StackEvents"]:
            event = StackEvent(
                id=described["EventId"],
                stack_id=described["StackId"],
                stack=described["StackName"],
                logical_id=described["LogicalResourceId"],
                physical_id=described.get("PhysicalResourceId", ""),
                type=described["ResourceType"],
                status=described["ResourceStatus"],
                reason=described.get("ResourceStatusReason", ""),
                time=described["Timestamp"],
                properties=described.get("ResourceProperties", ""),
                token=described.get("ClientRequestToken", ""),
            )
            if since and event.time < since:
                return
            yield event
            if since is None and event.is_start:
                return
