"""The progress of an operation on a deployment; what `status --watch --json` prints on each line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from scripts.document import Document
from scripts.progress.estimate import PART_SECONDS, count_done, remaining_seconds
from scripts.progress.operations import CONTAINERS, SUCCESSES, ResourceOperation, StackOperation
from scripts.stacks import StackEvent

if TYPE_CHECKING:
    from scripts.progress.tracker import TrackedStack, Tracker

GRACE_SECONDS = 60.0
"""How long nothing may be in progress: the CDK starts a stack some seconds after it has finished the one before."""
SLOWEST = 3
"""Resources of each stack that a summary names."""


class ResourceProgress(ResourceOperation):
    """What an operation does to a resource."""

    seconds: int = Field(description="How long that has taken.")


class StackProgress(StackOperation):
    """A stack in an operation."""

    name: str = Field(description="Its name; of a nested stack its logical id.")
    title: str = Field(exclude=True, description="Its name for people: of the cluster's own stack the name, too.")
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
    started: datetime | None = Field(description="When the first of the stacks started; None: none has.")
    seconds: int = Field(description="How long it has taken, until now or its end.")
    left_seconds: int = Field(
        description="How long it typically takes yet: stacks in progress side by side, the others one after another."
    )
    complete: bool = Field(description="Whether all events have been read: not where `trouble` says why.")
    not_started: tuple[str, ...] = Field(description="The stacks that a creation has not reached yet.")
    existing: int = Field(exclude=True, description="How many of the deployment's own stacks exist.")
    denied: tuple[str, ...] = Field(description="IAM actions that are missing to know how much there is to do.")
    other_clusters: dict[str, str] = Field(
        description="Statuses of the stacks of the deployment's other clusters, by name."
    )
    failure: StackEvent | None = Field(
        description="The newest failure of a resource, preferably in a stack rather than of one; None: there is none."
    )
    stacks: tuple[StackProgress, ...] = Field(
        description="The deployment's own stacks that take part, in the order in which they started."
    )
    trouble: str | None = Field(description="Why AWS did not answer the last time; None: it did.")

    def all(self) -> Sequence[StackProgress]:
        """Return the stacks that take part, each before those nested in it."""
        return [each for stack in self.stacks for each in stack.all()]


class Stopped(Document):
    """The last line of one who stops before the end."""

    kind: Literal["stopped"] = Field(default="stopped", description="`stopped`.")
    environment: str = Field(description="File name in config/ without .yaml.")
    reason: str = Field(description="Why.")


def progress(tracker: Tracker, now: datetime, grace: float = GRACE_SECONDS, trouble: str = "") -> Progress:
    """Return what a tracker knows.

    An operation consists of the newest one on a stack and all before it that ended at most the grace before the next
    started. Earlier operations on a stack are no part of it.
    """
    candidates = [each for root in tracker.roots.values() if (each := _stack_progress(root, now))]
    candidates.sort(key=lambda each: each.ended or now, reverse=True)
    stacks: list[StackProgress] = []
    for each in candidates:
        first = min((stack.started for stack in stacks), default=None)
        if first is None or (each.ended or now) >= first - timedelta(seconds=grace):
            stacks.append(each)
    stacks.sort(key=lambda each: each.started)
    creates = any(each.action == "CREATE" for each in stacks)
    failed = any(each.ended and each.status not in SUCCESSES for each in stacks)
    existing = [part for part, root in tracker.roots.items() if root.exists]
    missing = [part for part in tracker.roots if creates and not failed and part not in existing]
    running = max((each.left_seconds for each in stacks if not each.ended), default=0)
    started = min((each.started for each in stacks), default=None)
    end = max((each.ended or now for each in stacks), default=now)
    return Progress(
        environment=tracker.environment,
        time=now,
        outcome=_outcome(stacks),
        started=started,
        seconds=round((end - started).total_seconds()) if started else 0,
        left_seconds=round(running + sum(PART_SECONDS[part] for part in missing)),
        complete=not trouble,
        not_started=tuple(tracker.roots[part].name for part in missing),
        existing=len(existing),
        denied=tuple(sorted(tracker.denied)),
        other_clusters=dict(tracker.others),
        failure=_newest_failure(stacks),
        stacks=tuple(stacks),
        trouble=trouble or None,
    )


def _outcome(stacks: Sequence[StackProgress]) -> Literal["in progress", "complete", "failed", "nothing"]:
    if not stacks:
        return "nothing"
    if not all(each.ended for each in stacks):
        return "in progress"
    return "complete" if all(each.status in SUCCESSES for each in stacks) else "failed"


def _newest_failure(stacks: Sequence[StackProgress]) -> StackEvent | None:
    failures = [event for stack in stacks for each in stack.all() for event in each.failures]
    causes = [event for event in failures if event.type not in CONTAINERS] or failures
    return max(causes, key=lambda each: each.time, default=None)


def _stack_progress(tracked: TrackedStack, now: datetime) -> StackProgress | None:
    """Return what is known of a stack and those nested in it; None: nothing happened to it."""
    operation = tracked.operation
    if operation is None:
        return None
    children = tuple(each for child in tracked.children.values() if (each := _stack_progress(child, now)))
    nested = {each.name: each.left_seconds for each in children}
    done, total = count_done(tracked.graph, operation)
    resources = [
        ResourceProgress(**dict(each), seconds=round(each.seconds_at(now))) for each in operation.by_id.values()
    ]
    busy = [each for each in resources if each.is_in_progress and each.logical_id not in nested]
    slow = [each for each in resources if each.type not in CONTAINERS]
    return StackProgress(
        **dict(operation),
        name=tracked.name,
        title=tracked.title,
        seconds=round(((operation.ended or now) - operation.started).total_seconds()),
        left_seconds=round(remaining_seconds(tracked.graph, operation, now, nested)),
        resources_done=done,
        resources=total,
        in_progress=tuple(sorted(busy, key=lambda each: each.started)),
        slowest=tuple(sorted(slow, key=lambda each: each.seconds, reverse=True)[:SLOWEST]),
        stacks=children,
    )
