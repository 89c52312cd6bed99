"""The events of a stack since the start of an operation, read page by page, and the operation that they show."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scripts.aws_errors import is_not_found
from scripts.stacks import CLUSTER, NESTED

CONTAINERS = (NESTED, CLUSTER)
"""Types of resources that are stacks themselves: they fail because a resource in them failed."""
STARTS = frozenset({"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "IMPORT_IN_PROGRESS"})
"""Statuses of a stack with which an operation on it starts; a roll-back belongs to the operation that it undoes.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""
SUCCESSES = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE", "IMPORT_COMPLETE"})
"""Statuses with which an operation on a stack ends as intended."""


@dataclass(frozen=True)
class StackEvent:
    """One event of a stack.

    Attributes:
        id: Its id.
        stack_id: ARN of the stack.
        stack: Its name.
        logical_id: The resource's name in the template; the stack's own name in events of the stack itself.
        physical_id: The resource's id; empty: it has none (yet).
        type: The resource's type.
        status: The resource's status.
        reason: Why it has this status; empty: CloudFormation gives none.
        time: When the resource got the status.
    """

    id: str
    stack_id: str
    stack: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str
    time: datetime

    @property
    def is_own(self) -> bool:
        """Whether it is about the stack itself, not one of its resources."""
        return self.physical_id == self.stack_id

    @property
    def is_start(self) -> bool:
        """Whether an operation on the stack starts with it."""
        return self.is_own and self.status in STARTS

    @property
    def is_failure(self) -> bool:
        """Whether a resource failed by itself, and was not cancelled because another one failed."""
        return self.status.endswith("_FAILED") and not self.is_own and not self.reason.endswith("cancelled")


class History:
    """The events of one stack since the start of the last operation on it.

    Each call fetches one page, the newest first. If pages are missing, as after a burst of events or at the start,
    their tokens are kept, and `read_gap` continues there.

    Attributes:
        key: Name or ARN of the stack.
        exists: Whether the stack exists; None: not known yet.
        events: By id.
        gaps: Tokens of pages that are not read yet, the oldest first.
    """

    def __init__(self, key: str, since: datetime | None = None) -> None:
        """Read nothing yet.

        Args:
            key: Name or ARN of the stack.
            since: Read what is not older than this; None: what belongs to the last operation on the stack.
        """
        self.key = key
        self.exists: bool | None = None
        self.events: dict[str, StackEvent] = {}
        self.gaps: list[str] = []
        self._since = since

    @property
    def is_complete(self) -> bool:
        """Whether everything was read that existed at the last call."""
        return self.exists is not None and not self.gaps

    def read_newest(self, client: Any) -> Any:
        """Fetch the newest page and return the answer; None: the stack does not exist.

        Needs cloudformation:DescribeStackEvents.
        """
        from botocore.exceptions import ClientError

        try:
            answer = client.describe_stack_events(StackName=self.key)
        except ClientError as error:
            if not is_not_found(error):
                raise
            self.exists = False
            return None
        self.exists = True
        self._take(answer)
        if self.events:  # from now on this very stack, even if another one gets its name
            self.key = next(iter(self.events.values())).stack_id
        return answer

    def read_gap(self, client: Any) -> Any:
        """Fetch the newest page that is missing, and return the answer. Needs cloudformation:DescribeStackEvents."""
        answer = client.describe_stack_events(StackName=self.key, NextToken=self.gaps[-1])
        self.gaps.pop()
        self._take(answer)
        return answer

    def _take(self, answer: Mapping[str, Any]) -> None:
        """Keep the events of a page that is newer than all gaps."""
        for event in map(_event, answer["StackEvents"]):
            if event.id in self.events:
                return
            if self._since and event.time < self._since:
                self.gaps.clear()
                return
            self.events[event.id] = event
            if self._since is None and event.is_start:
                self.events = {key: each for key, each in self.events.items() if each.time >= event.time}
                self.gaps.clear()
                return
        if answer.get("NextToken"):
            self.gaps.append(answer["NextToken"])


@dataclass(frozen=True)
class ResourceOperation:
    """What an operation has done to a resource so far.

    Attributes:
        logical_id: Its name in the template.
        physical_id: Its id; empty: there is none (yet).
        type: Its type.
        status: As the last event has it.
        began: When the current work on it started, such as its deletion.
        changed: When it got its status.
    """

    logical_id: str
    physical_id: str
    type: str
    status: str
    began: datetime
    changed: datetime

    @property
    def in_progress(self) -> bool:
        """Whether work on it is in progress."""
        return self.status.endswith("_IN_PROGRESS")

    def seconds(self, now: datetime) -> float:
        """Return how long the work on it has taken."""
        return ((now if self.in_progress else self.changed) - self.began).total_seconds()


@dataclass(frozen=True)
class StackOperation:
    """The last operation on a stack.

    Attributes:
        stack_id: ARN of the stack.
        stack: Its name.
        action: ``CREATE``, ``UPDATE``, ``DELETE`` or ``IMPORT``: what it started as.
        status: The stack's status.
        reason: Why it has this status; empty: CloudFormation gives none.
        began: When it started.
        newest: The time of its last event.
        ended: When it ended; None: it has not.
        resources: By logical id, in the order in which they started.
        failures: Events of resources that failed by themselves, the oldest first.
    """

    stack_id: str
    stack: str
    action: str
    status: str
    reason: str
    began: datetime
    newest: datetime
    ended: datetime | None
    resources: Mapping[str, ResourceOperation] = field(default_factory=dict)
    failures: Sequence[StackEvent] = ()

    @property
    def in_progress(self) -> bool:
        """Whether it is in progress."""
        return self.ended is None

    @property
    def rolls_back(self) -> bool:
        """Whether it is being, or was, rolled back."""
        return "ROLLBACK" in self.status

    @property
    def deletes(self) -> bool:
        """Whether resources are being deleted: it is a deletion, or a creation that is rolled back."""
        return self.action == "DELETE" or self.status.startswith(("DELETE", "ROLLBACK"))

    def seconds(self, now: datetime) -> float:
        """Return how long it has taken."""
        return ((self.ended or now) - self.began).total_seconds()


def operation(events: Collection[StackEvent]) -> StackOperation | None:
    """Return the operation that events of one stack start with; None: they do not include its start.

    For a nested stack, everything since the start of the operation on its parent is one operation, a roll-back
    included. Of events of one millisecond the first in CloudFormation's answer is the newest, as within a page.
    """
    oldest_first = [*events][::-1]
    ordered = sorted(oldest_first, key=lambda each: each.time)
    own = [each for each in ordered if each.is_own]
    first = next((each for each in own if each.is_start), None)
    if first is None:
        return None
    last = own[-1]
    resources: dict[str, ResourceOperation] = {}
    failures: list[StackEvent] = []
    for event in ordered:
        if event.is_own:
            continue
        resources[event.logical_id] = _after(resources.get(event.logical_id), event)
        failures += [event] if event.is_failure else []
    return StackOperation(
        stack_id=first.stack_id,
        stack=first.stack,
        action=first.status.split("_")[0],
        status=last.status,
        reason=last.reason,
        began=first.time,
        newest=ordered[-1].time,
        ended=None if last.status.endswith("_IN_PROGRESS") else last.time,
        resources=resources,
        failures=failures,
    )


def _after(before: ResourceOperation | None, event: StackEvent) -> ResourceOperation:
    """Return a resource after an event; its time starts again when another kind of work starts."""
    starts = before is None or (event.status.endswith("_IN_PROGRESS") and not before.in_progress)
    changes = before is not None and event.status.split("_")[0] != before.status.split("_")[0]
    return ResourceOperation(
        event.logical_id,
        event.physical_id or (before.physical_id if before else ""),
        event.type,
        event.status,
        event.time if before is None or starts or changes else before.began,
        event.time,
    )


def _event(described: Mapping[str, Any]) -> StackEvent:
    return StackEvent(
        described["EventId"],
        described["StackId"],
        described["StackName"],
        described["LogicalResourceId"],
        described.get("PhysicalResourceId", ""),
        described["ResourceType"],
        described["ResourceStatus"],
        described.get("ResourceStatusReason", ""),
        described["Timestamp"],
    )
