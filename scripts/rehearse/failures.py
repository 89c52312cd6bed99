"""What failed, and why, in all stacks: a tool shows the events of the stacks that it knows, and these lose words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_CONSEQUENCES = ("Resource creation cancelled", "Resource update cancelled")
"""The reasons of what did not fail itself."""


@dataclass(frozen=True)
class Failure:
    """One event of a stack that tells of a failure.

    Attributes:
        stack_name: Name of the stack.
        logical_id: The resource in it.
        status: Such as CREATE_FAILED.
        reason: Why, in full.
        time: When.
    """

    stack_name: str
    logical_id: str
    status: str
    reason: str
    time: datetime


def failures(cloudformation: Any, since: datetime) -> list[Failure]:
    """Return all failures of a Region since a time, oldest first; of deleted stacks and of nested ones, too."""
    return sorted(_failures(cloudformation, since), key=lambda failure: failure.time)


def _failures(cloudformation: Any, since: datetime) -> Iterator[Failure]:
    for page in cloudformation.get_paginator("list_stacks").paginate():
        for stack in page["StackSummaries"]:
            for event in _events(cloudformation, stack["StackId"]):
                reason = event.get("ResourceStatusReason", "")
                status = event["ResourceStatus"]
                if event["Timestamp"] >= since and status.endswith("_FAILED") and reason not in _CONSEQUENCES:
                    yield Failure(stack["StackName"], event["LogicalResourceId"], status, reason, event["Timestamp"])


def _events(cloudformation: Any, stack_id: str) -> Iterator[dict[str, Any]]:
    for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id):
        yield from page["StackEvents"]
