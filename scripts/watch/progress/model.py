"""The progress of an operation on a deployment; what `status --watch --output json` prints on each line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from scripts.account.stack_state import ResourceState, StackState
from scripts.account.stacks import StackEvent
from scripts.core.document import DeploymentName, Document


class ResourceProgress(Document):
    """What an operation does to a resource."""

    logical_id: str = Field(description="Its name in the template.")
    physical_id: str | None = Field(description="Its id; None: it has none (yet).")
    type: str = Field(description="Its type.")
    status: str = Field(description="Its status.")
    seconds: int = Field(description="How long that has taken.")

    @property
    def is_in_progress(self) -> bool:
        """Whether work on it is in progress."""
        return self.state.is_in_progress

    @property
    def state(self) -> ResourceState:
        """Its status, and what it means."""
        return ResourceState(self.status)


class StackProgress(Document):
    """The last operation on a stack."""

    name: str = Field(description="Its name; of a nested stack its logical id.")
    title: str = Field(exclude=True, description="Its name for people: of the cluster's own stack the name, too.")
    stack: str = Field(description="Its name.")
    stack_id: str = Field(description="Its ARN.")
    action: str = Field(description="What the operation started as: CREATE, UPDATE, DELETE or IMPORT.")
    status: str = Field(description="Its status.")
    reason: str | None = Field(description="Why it has this status; None: CloudFormation gives none.")
    started: datetime = Field(description="When the operation started.")
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
    events: tuple[StackEvent, ...] = Field(
        exclude=True, description="Its own events and those of resources that failed by themselves."
    )
    stacks: tuple[StackProgress, ...] = Field(description="The stacks nested in it.")

    @property
    def state(self) -> StackState:
        """Its status, and what it means."""
        return StackState(self.status)

    def all(self) -> Sequence[StackProgress]:
        """Return it and all stacks nested in it."""
        return [self, *(each for child in self.stacks for each in child.all())]


class Progress(Document):
    """All that is known of an operation on a deployment at one time."""

    kind: Literal["progress", "summary"] = Field(
        default="progress", description="`progress`; in the last line `summary`."
    )
    deployment: DeploymentName
    time: datetime = Field(description="The time.")
    outcome: Literal["in progress", "complete", "failed", "nothing"] = Field(
        description="`in progress`, `complete`, `failed` or, if no stack takes part, `nothing`."
    )
    started: datetime | None = Field(description="When the first of the stacks started; None: none has.")
    seconds: int = Field(description="How long it has taken, until now or its end.")
    left_seconds: int = Field(
        description="How long it typically takes yet: stacks in progress side by side, the others one after another."
    )
    complete: bool = Field(description="Whether it is of this time: not where `trouble` says why.")
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
    deployment: DeploymentName
    reason: str = Field(description="Why.")
