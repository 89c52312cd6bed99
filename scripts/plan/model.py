"""What a change plan consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from scripts.preflight.check import Finding, Status

SECURITY_TYPES = (
    "AWS::EC2::SecurityGroup",
    "AWS::IAM::",
    "AWS::KMS::Key",
    "AWS::Lambda::Permission",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::TopicPolicy",
)
"""Beginnings of the resource types that say who may do or reach what."""
_SECURITY_KEYS = frozenset({"AdditionalSecurityGroups", "AllowedIps", "Iam", "SecurityGroups"})
"""Keys of a ParallelCluster configuration of which the same is true."""


class Effect(StrEnum):
    """What happens to a resource."""

    ADDED = "added"
    CHANGED = "changed in place"
    MAY_BE_REPLACED = "may be replaced"
    """It depends on a value that nobody knows before the deployment: the new id of another resource, mostly."""
    REPLACED = "replaced"
    REMOVED = "removed"


REPLACING = (Effect.MAY_BE_REPLACED, Effect.REPLACED)


class Source(StrEnum):
    """How the changes of a stack are known."""

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


class PropertyChange(NamedTuple):
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
        stays: Whether what is removed or replaced stays behind, outside of the stack.
    """

    logical_id: str
    type: str
    effect: Effect
    physical_id: str = ""
    causes: tuple[str, ...] = ()
    properties: tuple[PropertyChange, ...] = ()
    stays: bool = False

    @property
    def security(self) -> bool:
        """Whether the resource says who may do or reach what."""
        return self.type.startswith(SECURITY_TYPES)

    @property
    def metadata_only(self) -> bool:
        """Whether nothing changes but metadata, of which AWS makes nothing."""
        return self.effect is Effect.CHANGED and self.causes == ("Metadata",)


@dataclass(frozen=True)
class StackPlan:
    """What happens to a stack.

    Attributes:
        name: Name of the stack.
        source: How that is known.
        reason: Why no better source was used; empty where there is none.
        changes: What happens to its resources.
        other: What else of it changes: outputs, tags, termination protection.
    """

    name: str
    source: Source
    reason: str = ""
    changes: tuple[ResourceChange, ...] = ()
    other: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterChange:
    """A change of the cluster's configuration.

    Attributes:
        path: Its place, such as ``Scheduling.SlurmQueues[a].ComputeResources[b].MaxCount``.
        before: The value that the cluster has; None: none.
        after: The value that it shall get; None: none.
        kind: What ParallelCluster does with it.
        passes_now: Whether it passes in the state in which the cluster is; None: that state is not known.
        reason: What ParallelCluster says against it, in its own words.
        ways: What helps.
        command: The command line that helps; empty where there is none.
    """

    path: str
    before: Any
    after: Any
    kind: Kind
    passes_now: bool | None
    reason: str = ""
    ways: tuple[str, ...] = ()
    command: str = ""

    @property
    def security(self) -> bool:
        """Whether it says who may do or reach what."""
        return not _SECURITY_KEYS.isdisjoint(self.path.split("."))


@dataclass(frozen=True)
class ClusterPlan:
    """What happens to the cluster.

    Attributes:
        name: ParallelCluster's name of it.
        exists: Whether there is one already.
        source: Where the configuration that it runs with is from.
        fleet_status: Status of its compute fleet, such as RUNNING; UNKNOWN: it was not, or could not be, asked.
        changes: What changes.
    """

    name: str
    exists: bool
    source: str
    fleet_status: str = "UNKNOWN"
    changes: tuple[ClusterChange, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a deployment would do.

    Attributes:
        environment: The configuration: a file name in config/ without .yaml.
        region: Region of the stacks.
        against: What it was compared with: the account, or a directory.
        stacks: In the order of their deployment.
        cluster: What happens to the cluster.
        findings: What stands against it (FAIL), and what somebody should know (WARN).
    """

    environment: str
    region: str
    against: str
    stacks: Sequence[StackPlan]
    cluster: ClusterPlan
    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Whether nothing stands against it."""
        return not any(finding.status is Status.FAIL for finding in self.findings)

    @property
    def empty(self) -> bool:
        """Whether the deployment would change nothing at all."""
        return not any(stack.changes or stack.other or stack.source is Source.NEW for stack in self.stacks)
