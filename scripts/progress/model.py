"""The progress of an operation on a deployment; what `status --watch --json` prints on each line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from scripts.document import Document
from scripts.progress.estimate import PART_SECONDS, count_done, remaining_seconds
from scripts.progress.events import CONTAINERS, SUCCESSES, ResourceOperation, StackEvent, StackOperation

if TYPE_CHECKING:
    from scripts.progress.tracker import TrackedStack, Tracker

GRACE_SECONDS = 60.0
"""How long nothing may be in progress: the CDK starts a stack some seconds after it has finished the one before."""
SLOWEST = 3
"""Resources of each stack that a summary names."""


class ResourceProgress(Document):
    """What an operation does to a resource."""

    logical_id: str = Field(description="Its name in the template.")
    physical_id: str | None = Field(description="Its id; None: it has none (yet).")
    type: str = Field(description="Its type.")
    status: str = Field(description="Its status.")
    seconds: int = Field(description="How long that has taken.")

    @classmethod
    def of(cls, resource: ResourceOperation, now: datetime) -> ResourceProgress:
        """Return it at a time."""
        return cls(
            logical_id=resource.logical_id,
            physical_id=resource.physical_id or None,
            type=resource.type,
            status=resource.status,
            seconds=round(resource.seconds(now)),
        )


class StackProgress(Document):
    """A stack in an operation."""

    name: str = Field(description="Its name; of a nested stack its logical id.")
    title: str = Field(exclude=True, description="Its name for people: of the cluster's own stack the name, too.")
    operation: StackOperation = Field(exclude=True, description="What happens to it.")
    stack: str = Field(description="Its name.")
    stack_id: str = Field(description="Its ARN.")
    action: str = Field(description="What the operation started as: CREATE, UPDATE, DELETE or IMPORT.")
    status: str = Field(description="Its status.")
    reason: str | None = Field(description="Why it has this status; None: CloudFormation gives none.")
    began: datetime = Field(description="When the operation started.")
    ended: datetime | None = Field(description="When it ended; None: it is in progress.")
    seconds: int = Field(description="How long it has taken.")
    left_seconds: int = Field(description="How long it typically takes yet.")
    resources_done: int = Field(description="How many of its resources are done.")
    resources: int = Field(description="How many there are to do, as far as it is known.")
    in_progress: tuple[ResourceProgress, ...] = Field(
        description="Its resources in progress, the oldest first, without the stacks below."
    )
    slowest: tuple[ResourceProgress, ...] = Field(
        description="Its resources that took longest, without the stacks among them."
    )
    stacks: tuple[StackProgress, ...] = Field(description="The stacks nested in it.")

    def all(self) -> Sequence[StackProgress]:
        """Return it and all stacks nested in it."""
        return [self, *(each for child in self.stacks for each in child.all())]


class Failure(Document):
    """A resource that failed by itself."""

    stack: str = Field(description="The name of its stack.")
    logical_id: str = Field(description="Its name in the template.")
    type: str = Field(description="Its type.")
    status: str = Field(description="Its status.")
    reason: str = Field(description="Why.")
    time: datetime = Field(description="When.")


class Progress(Document):
    """All that is known of an operation on a deployment at one time."""

    kind: Literal["progress", "summary"] = Field(
        default="progress", description="`progress`; in the last line `summary`."
    )
    environment: str = Field(description="File name in config/ without .yaml.")
    time: datetime = Field(description="The time.")
    outcome: Literal["in progress", "complete", "failed", "nothing"] = Field(
        description="`in progress`, `complete`, `failed` or, if no stack takes part, `nothing`."
    )
    began: datetime | None = Field(description="When the first of the stacks started; None: none has.")
    seconds: int = Field(description="How long it has taken, until now or its end.")
    left_seconds: int = Field(
        description="How long it typically takes yet: stacks in progress side by side, the others one after another."
    )
    complete: bool = Field(description="Whether all events have been read.")
    not_begun: tuple[str, ...] = Field(description="The stacks that a creation has not started yet.")
    existing: int = Field(exclude=True, description="How many of the deployment's own stacks exist.")
    denied: tuple[str, ...] = Field(description="IAM actions that are missing to know how much there is to do.")
    other_clusters: dict[str, str] = Field(
        description="Statuses of the stacks of the deployment's other clusters, by name."
    )
    failure: Failure | None = Field(
        description="The newest failure of a resource, preferably in a stack rather than of one; None: there is none."
    )
    stacks: tuple[StackProgress, ...] = Field(
        description="The deployment's own stacks that take part, in the order in which they started."
    )
    trouble: str | None = Field(default=None, description="Why AWS did not answer the last time; None: it did.")

    @property
    def in_progress(self) -> bool:
        """Whether an operation on any stack is in progress."""
        return self.outcome == "in progress"

    @property
    def successful(self) -> bool:
        """Whether everything that took part ended as intended, or nothing took part."""
        return self.outcome in ("complete", "nothing")

    def all(self) -> Sequence[StackProgress]:
        """Return the stacks that take part, each before those nested in it."""
        return [each for stack in self.stacks for each in stack.all()]


class Stopped(Document):
    """The last line of one who stops before the end."""

    kind: Literal["stopped"] = Field(default="stopped", description="`stopped`.")
    environment: str = Field(description="File name in config/ without .yaml.")
    reason: str = Field(description="Why.")


def progress(tracker: Tracker, now: datetime, grace: float = GRACE_SECONDS) -> Progress:
    """Return what a tracker knows.

    An operation consists of the newest one on a stack and all before it that ended at most the grace before the next
    started. Earlier operations on a stack are no part of it.
    """
    candidates = [each for root in tracker.roots.values() if (each := _stack_progress(root, now))]
    candidates.sort(key=lambda each: each.ended or now, reverse=True)
    stacks: list[StackProgress] = []
    for each in candidates:
        first = min((stack.began for stack in stacks), default=None)
        if first is None or (each.ended or now) >= first - timedelta(seconds=grace):
            stacks.append(each)
    stacks.sort(key=lambda each: each.began)
    creates = any(each.action == "CREATE" for each in stacks)
    failed = any(each.ended and each.status not in SUCCESSES for each in stacks)
    existing = [part for part, root in tracker.roots.items() if root.exists]
    missing = [part for part in tracker.roots if creates and not failed and part not in existing]
    running = max((each.left_seconds for each in stacks if not each.ended), default=0)
    began = min((each.began for each in stacks), default=None)
    end = max((each.ended or now for each in stacks), default=now)
    return Progress(
        environment=tracker.environment,
        time=now,
        outcome="nothing" if not stacks else _outcome(stacks),
        began=began,
        seconds=round((end - began).total_seconds()) if began else 0,
        left_seconds=round(running + sum(PART_SECONDS[part] for part in missing)),
        complete=tracker.is_complete,
        not_begun=tuple(tracker.roots[part].name for part in missing),
        existing=len(existing),
        denied=tuple(sorted(tracker.denied)),
        other_clusters=dict(tracker.others),
        failure=_newest_failure(stacks),
        stacks=tuple(stacks),
    )


def _outcome(stacks: Sequence[StackProgress]) -> Literal["in progress", "complete", "failed"]:
    if not all(each.ended for each in stacks):
        return "in progress"
    return "complete" if all(each.status in SUCCESSES for each in stacks) else "failed"


def _newest_failure(stacks: Sequence[StackProgress]) -> Failure | None:
    failures = [event for stack in stacks for each in stack.all() for event in each.operation.failures]
    causes: Sequence[StackEvent] = [event for event in failures if event.type not in CONTAINERS] or failures
    if not causes:
        return None
    newest = max(causes, key=lambda each: each.time)
    return Failure(
        stack=newest.stack,
        logical_id=newest.logical_id,
        type=newest.type,
        status=newest.status,
        reason=newest.reason,
        time=newest.time,
    )


def _stack_progress(tracked: TrackedStack, now: datetime) -> StackProgress | None:
    """Return what is known of a stack and those nested in it; None: nothing happened to it."""
    operation = tracked.operation
    if operation is None:
        return None
    children = tuple(each for child in tracked.children.values() if (each := _stack_progress(child, now)))
    nested = {each.name: each.left_seconds for each in children}
    done, total = count_done(tracked.graph, operation)
    resources = operation.resources.values()
    busy = [each for each in resources if each.in_progress and each.logical_id not in nested]
    slow = sorted(
        (each for each in resources if each.type not in CONTAINERS), key=lambda each: each.seconds(now), reverse=True
    )
    return StackProgress(
        name=tracked.name,
        title=tracked.title,
        operation=operation,
        stack=operation.stack,
        stack_id=operation.stack_id,
        action=operation.action,
        status=operation.status,
        reason=operation.reason or None,
        began=operation.began,
        ended=operation.ended,
        seconds=round(operation.seconds(now)),
        left_seconds=round(remaining_seconds(tracked.graph, operation, now, nested)),
        resources_done=done,
        resources=total,
        in_progress=tuple(ResourceProgress.of(each, now) for each in sorted(busy, key=lambda each: each.began)),
        slowest=tuple(ResourceProgress.of(each, now) for each in slow[:SLOWEST]),
        stacks=children,
    )
