"""The events of stacks since an operation began, read a few pages at a time, and what they say of the operation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scripts.aws_errors import is_not_found
from scripts.stacks import CLUSTER, NESTED

CONTAINERS = (NESTED, CLUSTER)
"""Types of resources that are stacks themselves: they fail because something in them failed."""
BEGINNINGS = frozenset({"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "IMPORT_IN_PROGRESS"})
"""Statuses of a stack with which an operation on it begins; a roll-back belongs to the operation that it undoes.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""
WELL = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE", "IMPORT_COMPLETE"})
"""Statuses in which an operation on a stack ended as it was meant to."""


@dataclass(frozen=True)
class Event:
    """One event of a stack, as CloudFormation tells it.

    Attributes:
        id: Its id.
        stack_id: ARN of the stack.
        stack: Its name.
        logical_id: The resource's name in the template; the stack's own name in events of the stack itself.
        physical_id: The resource's id; empty: there is none (yet).
        type: The resource's type.
        status: The resource's status.
        reason: Why it has this status; empty: nothing to say.
        time: When it got it.
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
    def begins(self) -> bool:
        """Whether an operation on the stack begins with it."""
        return self.is_own and self.status in BEGINNINGS

    @property
    def is_failure(self) -> bool:
        """Whether a resource failed by itself, and was not given up because another one failed."""
        return self.status.endswith("_FAILED") and not self.is_own and not self.reason.endswith("cancelled")


class History:
    """The events of one stack since the last operation on it began.

    Each call asks for one page, the newest first. Where pages are left, as after a burst of events or at the start,
    their tokens are kept, and `read_gap` goes on there.

    Attributes:
        key: Name or ARN of the stack, by which to ask.
        exists: Whether there is such a stack; None: not asked yet.
        events: By id.
        gaps: Tokens of pages that are to be read yet, the oldest first.
    """

    def __init__(self, key: str, since: datetime | None = None) -> None:
        """Remember what to read.

        Args:
            key: Name or ARN of the stack.
            since: Read what is not older than this; None: what belongs to the last operation on the stack.
        """
        self.key = key
        self.exists: bool | None = None
        self.events: dict[str, Event] = {}
        self.gaps: list[str] = []
        self._since = since

    @property
    def is_complete(self) -> bool:
        """Whether everything was read that there was when it was last asked for."""
        return self.exists is not None and not self.gaps

    def read_newest(self, client: Any) -> Any:
        """Ask for the newest page and return the answer; None: there is no such stack.

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
        if self.events:  # from now on this very stack, whatever becomes of its name
            self.key = next(iter(self.events.values())).stack_id
        return answer

    def read_gap(self, client: Any) -> Any:
        """Ask for the newest page that is missing, and return the answer. Needs cloudformation:DescribeStackEvents."""
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
            if self._since is None and event.begins:
                self.events = {key: each for key, each in self.events.items() if each.time >= event.time}
                self.gaps.clear()
                return
        if answer.get("NextToken"):
            self.gaps.append(answer["NextToken"])


@dataclass(frozen=True)
class Resource:
    """What an operation has done to a resource so far.

    Attributes:
        logical_id: Its name in the template.
        physical_id: Its id; empty: there is none (yet).
        type: Its type.
        status: As the last event has it.
        began: When what is being done to it began, such as its deletion.
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
        """Whether something is being done to it."""
        return self.status.endswith("_IN_PROGRESS")

    def seconds(self, now: datetime) -> float:
        """Return how long what is or was done to it has taken."""
        return ((now if self.in_progress else self.changed) - self.began).total_seconds()


@dataclass(frozen=True)
class StackOperation:
    """The last operation on a stack.

    Attributes:
        stack_id: ARN of the stack.
        stack: Its name.
        action: ``CREATE``, ``UPDATE``, ``DELETE`` or ``IMPORT``: what it began as.
        status: The stack's status.
        reason: Why it has this status; empty: nothing to say.
        began: When it began.
        newest: The time of its last event.
        ended: When it ended; None: it has not.
        resources: By logical id, in the order in which they began.
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
    resources: Mapping[str, Resource] = field(default_factory=dict)
    failures: Sequence[Event] = ()

    @property
    def in_progress(self) -> bool:
        """Whether it goes on."""
        return self.ended is None

    @property
    def rolls_back(self) -> bool:
        """Whether what it has done is, or was, undone."""
        return "ROLLBACK" in self.status

    @property
    def deletes(self) -> bool:
        """Whether resources go at this time: it is a deletion, or a creation is undone."""
        return self.action == "DELETE" or self.status.startswith(("DELETE", "ROLLBACK"))

    def seconds(self, now: datetime) -> float:
        """Return how long it has taken."""
        return ((self.ended or now) - self.began).total_seconds()


def operation(events: Collection[Event]) -> StackOperation | None:
    """Return what events of one stack say of the operation with which they begin; None: they do not tell its beginning.

    What a nested stack was through since the operation on its parent began is one operation, a roll-back included. Of
    events of one millisecond those count as newer that CloudFormation told first, as it does within a page.
    """
    told_last_first = [*events][::-1]
    ordered = sorted(told_last_first, key=lambda each: each.time)
    own = [each for each in ordered if each.is_own]
    first = next((each for each in own if each.begins), None)
    if first is None:
        return None
    last = own[-1]
    resources: dict[str, Resource] = {}
    failures: list[Event] = []
    for event in ordered:
        if event.is_own:
            continue
        resources[event.logical_id] = _followed(resources.get(event.logical_id), event)
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


def _followed(before: Resource | None, event: Event) -> Resource:
    """Return a resource after an event; its time starts anew where another kind of work begins."""
    begins = before is None or (event.status.endswith("_IN_PROGRESS") and not before.in_progress)
    changes = before is not None and event.status.split("_")[0] != before.status.split("_")[0]
    return Resource(
        event.logical_id,
        event.physical_id or (before.physical_id if before else ""),
        event.type,
        event.status,
        event.time if before is None or begins or changes else before.began,
        event.time,
    )


def _event(told: Mapping[str, Any]) -> Event:
    return Event(
        told["EventId"],
        told["StackId"],
        told["StackName"],
        told["LogicalResourceId"],
        told.get("PhysicalResourceId", ""),
        told["ResourceType"],
        told["ResourceStatus"],
        told.get("ResourceStatusReason", ""),
        told["Timestamp"],
    )
