"""The state of a deployment, as far as the credentials in use let one see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from decimal import Decimal

    from scripts.slurm import SlurmState
    from scripts.status.software import Software

READY = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE"})
"""Statuses of a stack that is as it was asked for.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""
PROTECTED = "PROTECTED"
"""Status of a fleet whose nodes kept failing: https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-protected-mode-v3.html."""
NO_FLEET = "UNKNOWN"
"""Status of the fleet where there is no cluster."""
USABLE_FILE_SYSTEM = frozenset({"AVAILABLE", "UPDATING"})
"""Lifecycles of a file system that can be worked with.

https://docs.aws.amazon.com/fsx/latest/APIReference/API_FileSystem.html
"""
T = TypeVar("T")


@dataclass(frozen=True)
class Unseen:
    """What could not be looked at.

    Attributes:
        reason: Why, in words, with the right that is missing if that is why.
        is_fault: Whether something is wrong with it; not where it was left out on purpose, or is yet to come.
    """

    reason: str
    is_fault: bool = True


@dataclass(frozen=True)
class Stack:
    """A stack of the deployment.

    Attributes:
        name: Its name.
        status: As CloudFormation has it; None: there is none of that name.
        changed: When its last operation began; None: there is none.
        reason: Why it has this status; empty: nothing to say.
    """

    name: str
    status: str | None = None
    changed: datetime | None = None
    reason: str = ""

    @property
    def failed(self) -> bool:
        """Whether an operation on it failed, or is being undone."""
        return self.status is not None and (self.status.endswith("_FAILED") or "ROLLBACK" in self.status)


@dataclass(frozen=True)
class HeadNode:
    """The head node's instance.

    Attributes:
        instance_id: Its id.
        state: As EC2 has it, such as ``running``.
        instance_type: Its type.
        private_address: Its address in the VPC.
        public_address: Its address on the internet; empty: none.
        launched: When it was launched.
    """

    instance_id: str
    state: str
    instance_type: str
    private_address: str
    public_address: str
    launched: datetime


@dataclass(frozen=True)
class Instances:
    """The instances of the cluster that are not terminated.

    Attributes:
        head_node: The head node; None: there is none.
        compute: Numbers of compute nodes by state, as EC2 has it.
        running: Numbers of compute nodes that run, by queue and compute resource.
    """

    head_node: HeadNode | None
    compute: Mapping[str, int]
    running: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class FileSystem:
    """The file system.

    Attributes:
        file_system_id: Its id.
        lifecycle: As FSx has it, such as ``AVAILABLE``.
        capacity_gib: Its storage.
        throughput_mbps: MB/s that it is made for.
    """

    file_system_id: str
    lifecycle: str
    capacity_gib: int
    throughput_mbps: float


@dataclass(frozen=True)
class Usage:
    """What CloudWatch has of the file system's last minutes.

    Attributes:
        free_bytes: Of all its storage; None: no value of late.
        used_mbps: MB/s read and written, over the last minute that has values; None: no value of late.
    """

    free_bytes: float | None
    used_mbps: float | None


@dataclass(frozen=True)
class Reservation:
    """A capacity reservation or Capacity Block that the settings name, itself or by its group.

    Attributes:
        reservation_id: Its id.
        state: As EC2 has it, such as ``active``; ``missing``: the account has none of that id.
        is_block: Whether it is a Capacity Block.
        instance_type: What it is for; empty: not known.
        total: How many instances.
        left: How many of them are free.
        begins: When it begins; None: it has begun, or that is not known.
        ends: When it ends; None: when it is cancelled.
    """

    reservation_id: str
    state: str
    is_block: bool = False
    instance_type: str = ""
    total: int = 0
    left: int = 0
    begins: datetime | None = None
    ends: datetime | None = None


@dataclass(frozen=True)
class CostNow:
    """What the deployment costs an hour, as it is now.

    Attributes:
        nodes: Dollars per hour of the compute nodes that run.
        standing: Dollars per hour of everything else, as if all stacks were there.
        unpriced: Names of parts that are not in the sums.
        source: Who says so, and of which day that is.
    """

    nodes: Decimal
    standing: Decimal
    unpriced: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Status:
    """A deployment at one time. What could not be seen is `Unseen`.

    Attributes:
        environment: File name in config/ without .yaml.
        name: Of the deployment.
        region: AWS Region.
        cluster: ParallelCluster's name of the cluster.
        now: The time.
        stacks: Those of the deployment in the order in which they are made; the cluster's own where it was asked for.
        others: Those of the deployment's other clusters: there is one while an upgrade is under way.
        instances: Head node and compute nodes.
        session_manager: Whether Session Manager reaches the head node; None: that is not known.
        fleet: Status of the compute fleet, as ParallelCluster has it.
        slurm: Nodes and jobs.
        slurm_seen: When Slurm said that; None: it did not.
        software: Python environment of jobs, and nodes that could not start; None: the head node did not tell.
        file_system: The file system.
        usage: Its use.
        reservations: Those that the settings name.
        alarms: Names of the deployment's alarms that are raised.
        cost: What it costs.
    """

    environment: str
    name: str
    region: str
    cluster: str
    now: datetime
    stacks: tuple[Stack | Unseen, ...]
    others: tuple[Stack, ...] | Unseen
    instances: Instances | Unseen
    session_manager: bool | None
    fleet: str | Unseen
    slurm: SlurmState | Unseen
    slurm_seen: datetime | None
    software: Software | None
    file_system: FileSystem | Unseen
    usage: Usage | Unseen
    reservations: tuple[Reservation, ...] | Unseen
    alarms: tuple[str, ...] | Unseen
    cost: CostNow | Unseen

    @property
    def exists(self) -> bool:
        """Whether there is anything of it, or could be."""
        return any(isinstance(each, Unseen) or each.status for each in self.stacks)

    @property
    def known_stacks(self) -> dict[str, Stack]:
        """The stacks that could be looked at and exist, by name."""
        return {each.name: each for each in self.stacks if isinstance(each, Stack) and each.status}

    @property
    def failed(self) -> bool:
        """Whether a stack, the head node or the fleet is in a state that asks for a diagnosis."""
        stacks = self.known_stacks.values()
        if any(each.failed for each in stacks):
            return True
        is_made = self.fleet != NO_FLEET and not any(str(each.status).endswith("_IN_PROGRESS") for each in stacks)
        return is_made and (self.fleet == PROTECTED or self.lacks_head_node)

    @property
    def lacks_head_node(self) -> bool:
        """Whether no head node runs, as far as that was seen."""
        if isinstance(self.instances, Unseen):
            return False
        return self.instances.head_node is None or self.instances.head_node.state != "running"


def seen(look: Callable[[], T], *actions: str) -> T | Unseen:
    """Return what a look finds, or why it finds nothing.

    Args:
        look: Asks AWS.
        actions: The IAM actions that it needs.

    Raises:
        botocore.exceptions.BotoCoreError: There are no credentials that can be used.
        botocore.exceptions.ClientError: They are not, or no longer, valid.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.aws_errors import credentials_hint, is_denied
    from scripts.command import OperationError

    try:
        return look()
    except OperationError as error:
        return Unseen(str(error))
    except ClientError as error:
        if is_denied(error) and not credentials_hint(error):
            refused = [each for each in actions if each.endswith(f":{error.operation_name}")]
            return Unseen(f"these credentials lack {' or '.join(refused or actions)}")
        if credentials_hint(error):
            raise
        return Unseen(str(error))
    except BotoCoreError as error:
        if credentials_hint(error):
            raise
        return Unseen(str(error))


def tags(resource: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of something that EC2 describes."""
    return {each["Key"]: each["Value"] for each in resource.get("Tags", [])}
