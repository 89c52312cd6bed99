"""The operation on a stack that its events show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import Field

from scripts.document import Document
from scripts.stacks import CLUSTER, NESTED, StackEvent

CONTAINERS = (NESTED, CLUSTER)
"""Types of resources that are stacks themselves: they fail because a resource in them failed."""
SUCCESSES = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE", "IMPORT_COMPLETE"})
"""Statuses with which an operation on a stack ends as intended."""


class ResourceOperation(Document):
    """What an operation has done to a resource so far."""

    logical_id: str = Field(description="Its name in the template.")
    physical_id: str | None = Field(description="Its id; None: it has none (yet).")
    type: str = Field(description="Its type.")
    status: str = Field(description="Its status.")
    started: datetime = Field(exclude=True, description="When the current work on it started, such as its deletion.")
    changed: datetime = Field(exclude=True, description="When it got its status.")

    @property
    def is_in_progress(self) -> bool:
        """Whether work on it is in progress."""
        return self.status.endswith("_IN_PROGRESS")

    def seconds_at(self, now: datetime) -> float:
        """Return how long the work on it has taken."""
        return ((now if self.is_in_progress else self.changed) - self.started).total_seconds()


class StackOperation(Document):
    """The last operation on a stack."""

    stack: str = Field(description="Its name.")
    stack_id: str = Field(description="Its ARN.")
    action: str = Field(description="What the operation started as: CREATE, UPDATE, DELETE or IMPORT.")
    status: str = Field(description="Its status.")
    reason: str | None = Field(description="Why it has this status; None: CloudFormation gives none.")
    started: datetime = Field(description="When the operation started.")
    newest: datetime = Field(exclude=True, description="The time of its last event.")
    ended: datetime | None = Field(description="When it ended; None: it is in progress.")
    by_id: Mapping[str, ResourceOperation] = Field(
        exclude=True, description="Its resources by logical id, in the order in which they started."
    )
    failures: Sequence[StackEvent] = Field(
        exclude=True, description="Events of resources that failed by themselves, the oldest first."
    )

    @property
    def rolls_back(self) -> bool:
        """Whether it is being, or was, rolled back."""
        return "ROLLBACK" in self.status

    @property
    def deletes(self) -> bool:
        """Whether resources are being deleted: it is a deletion, or a creation that is rolled back."""
        return self.action == "DELETE" or self.status.startswith(("DELETE", "ROLLBACK"))


def operation(events: Sequence[StackEvent]) -> StackOperation | None:
    """Return the operation that events of one stack show; None: they do not include its start.

    For a nested stack, everything since the start of the operation on its parent is one operation, a roll-back
    included.

    Args:
        events: The newest first.
    """
    own = [each for each in events if each.is_own]
    starts = [each for each in own if each.is_start]
    if not starts:
        return None
    first, last = starts[-1], own[0]
    by_id: dict[str, ResourceOperation] = {}
    failures = []
    for event in reversed(events):
        if not event.is_own:
            by_id[event.logical_id] = _after(by_id.get(event.logical_id), event)
            # What was cancelled because another resource failed is no failure.
            if event.status.endswith("_FAILED") and not event.reason.endswith("cancelled"):
                failures.append(event)
    return StackOperation(
        stack_id=first.stack_id,
        stack=first.stack,
        action=first.status.split("_")[0],
        status=last.status,
        reason=last.reason or None,
        started=first.time,
        newest=events[0].time,
        ended=None if last.status.endswith("_IN_PROGRESS") else last.time,
        by_id=by_id,
        failures=failures,
    )


def _after(before: ResourceOperation | None, event: StackEvent) -> ResourceOperation:
    """Return a resource after an event; its time starts again when another kind of work starts."""
    started = event.time
    if before and event.status.split("_")[0] == before.status.split("_")[0]:
        starts = event.status.endswith("_IN_PROGRESS") and not before.is_in_progress
        started = event.time if starts else before.started
    return ResourceOperation(
        logical_id=event.logical_id,
        physical_id=event.physical_id or (before and before.physical_id) or None,
        type=event.type,
        status=event.status,
        started=started,
        changed=event.time,
    )
