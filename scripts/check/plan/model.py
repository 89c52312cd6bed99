"""What a deployment would do to stacks and cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import computed_field
from pydantic.dataclasses import dataclass

from scripts.check.plan.permissions import CLUSTER_KEYS, RESOURCE_TYPES
from scripts.core.errors import UnusableError


class PlanError(UnusableError):
    """There is no plan; the message says why, and what would help."""


class Effect(StrEnum):
    """What happens to a resource."""

    ADDED = "added"
    CHANGED = "changed in place"
    MAY_BE_REPLACED = "may be replaced"
    """It depends on a value that is not known before the deployment, such as the new id of another resource."""
    REPLACED = "replaced"
    REMOVED = "removed"


REPLACING = (Effect.MAY_BE_REPLACED, Effect.REPLACED)


class Source(StrEnum):
    """Where the changes of a stack are read."""

    NEW = "the stack does not exist yet"
    SAME = "the stored template, which is the same"
    CHANGE_SET = "a CloudFormation change set"
    STORED_TEMPLATE = "the stored template"
    FILES = "two sets of templates"


class Kind(StrEnum):
    """What ParallelCluster does with a change of a cluster."""

    LIVE = "applied live"
    DRAINS = "drains nodes"
    """The nodes concerned are replaced as their jobs end (queue_update_strategy DRAIN)."""
    TERMINATES = "terminates nodes"
    """The nodes concerned are terminated, with the jobs on them (queue_update_strategy TERMINATE)."""
    FLEET_STOPPED = "needs the fleet stopped"
    LOGIN_NODES_STOPPED = "needs the login nodes stopped"
    ALL_STOPPED = "needs fleet and login nodes stopped"
    REFUSED = "refused"
    """As long as the cluster lives."""


@dataclass(frozen=True)
class PropertyChange:
    """A property that changes.

    Attributes:
        path: Such as ``LustreConfiguration.PerUnitStorageThroughput``, or ``DeletionPolicy``.
        before: Its value; None where there is none, or only CloudFormation knows it.
        after: The same after the deployment.
    """

    path: str
    before: Any = None
    after: Any = None


@dataclass(frozen=True)
class ResourceChange:
    """What happens to a resource, and why.

    Attributes:
        logical_id: Its name in the template.
        type: Such as ``AWS::EC2::Subnet``.
        effect: What happens.
        physical_id: Its id; empty where it has none yet, or none is known.
        causes: The properties that decide the effect; none for what is added or removed.
        properties: All that changes; of what is added or removed only where it says who may do what.
        old_stays: Whether what is removed or replaced is retained, outside of the stack.
    """

    logical_id: str
    type: str
    effect: Effect
    physical_id: str = ""
    causes: tuple[str, ...] = ()
    properties: tuple[PropertyChange, ...] = ()
    old_stays: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def security(self) -> bool:
        """Whether the resource says who may do or reach what."""
        return self.type.startswith(RESOURCE_TYPES)

    @property
    def metadata_only(self) -> bool:
        """Whether nothing changes but metadata, which AWS ignores."""
        return self.effect is Effect.CHANGED and self.causes == ("Metadata",)


@dataclass(frozen=True)
class StackPlan:
    """What happens to a stack.

    Attributes:
        name: Name of the stack.
        source: Where that is read.
        reason: Why no better source was used; empty where there is none.
        changes: What happens to its resources.
        other: What else changes: outputs, tags, termination protection.
    """

    name: str
    source: Source
    reason: str = ""
    changes: tuple[ResourceChange, ...] = ()
    other: tuple[str, ...] = ()


@dataclass(frozen=True)
class PeopleChange:
    """What happens to a person, or to what people have.

    Attributes:
        what: ``user``, ``group``, ``account`` or ``QoS``.
        name: Its name.
        effect: ``added``, ``changed`` or ``removed``.
        keys: What changes of it, such as ``ssh_keys``.
    """

    what: Literal["user", "group", "account", "QoS"]
    name: str
    effect: Literal["added", "changed", "removed"]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterChange:
    """A change of the cluster's configuration.

    Attributes:
        path: Such as ``Scheduling.SlurmQueues[a].ComputeResources[b].MaxCount``.
        before: The value that the cluster has; None: none.
        after: The value that it will get; None: none.
        kind: What ParallelCluster does with it.
        passes_now: Whether it passes in the cluster's present state; None: that state is not known.
        reason: Why ParallelCluster refuses it, in its own words.
        ways: What helps.
        command: The command line that helps; empty where there is none.
        needs: What a move to another version of ParallelCluster needs besides, a sentence each.
    """

    path: str
    before: Any
    after: Any
    kind: Kind
    passes_now: bool | None
    reason: str = ""
    ways: tuple[str, ...] = ()
    command: str = ""
    needs: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def security(self) -> bool:
        """Whether it says who may do or reach what."""
        return not CLUSTER_KEYS.isdisjoint(self.path.split("."))


@dataclass(frozen=True)
class ClusterPlan:
    """What happens to the cluster.

    Attributes:
        name: ParallelCluster's name for it.
        exists: Whether it exists already.
        source: Where the configuration that it runs with is from.
        fleet_status: Status of its compute fleet, such as RUNNING; UNKNOWN: it was not, or could not be, read.
        changes: What changes.
        is_asked: Whether ParallelCluster is asked to update it; it is not where the cluster's resource stays as it is.
    """

    name: str
    exists: bool
    source: str
    fleet_status: str = "UNKNOWN"
    changes: tuple[ClusterChange, ...] = ()
    is_asked: bool = False

    @property
    def kinds(self) -> set[Kind]:
        """What ParallelCluster does with the changes."""
        return {change.kind for change in self.changes}
