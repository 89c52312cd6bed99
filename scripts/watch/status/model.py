"""The state of a deployment, as far as the permissions in use show it; what `status --output json` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from pydantic import Field, computed_field, model_serializer
from pydantic.dataclasses import dataclass

from scripts.account.reservations import Reservation
from scripts.account.slurm import Job, Problem, SlurmState
from scripts.account.stack_state import StackState
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import dollars, duration
from scripts.core.report import Block
from scripts.watch.status.links import links
from scripts.watch.status.software import UNIT, Software

USABLE_FILE_SYSTEM = frozenset({"AVAILABLE", "UPDATING"})
"""Lifecycles of a file system that can be used: https://docs.aws.amazon.com/fsx/latest/APIReference/API_FileSystem.html."""
PROTECTED = "PROTECTED"
"""Status of a fleet whose nodes kept failing: https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-protected-mode-v3.html."""
NO_FLEET = "UNKNOWN"
"""Status of the fleet where there is no cluster."""
T = TypeVar("T")


class Unavailable(Document):
    """Stands for what could not be collected. As JSON it is null, and `Status.unavailable` has the reason."""

    reason: str = Field(description="Why, with the permission that is missing if that is why.")
    is_problem: bool = Field(
        default=True,
        description="Whether that makes the deployment unhealthy; not where there is nothing to collect yet.",
    )

    @model_serializer
    def _as_null(self) -> None:
        return None


@dataclass(frozen=True)
class StackStatus:
    """A stack of the deployment."""

    name: str = Field(description="Its name.")
    status: str | None = Field(
        default=None, description="As CloudFormation has it; None: there is no stack of that name."
    )
    changed: datetime | None = Field(
        default=None, description="When its last operation started; None: there is no stack of that name."
    )
    reason: str = Field(default="", description="Why it has this status; empty: CloudFormation gives none.")

    @property
    def state(self) -> StackState | None:
        """Its status, and what it means."""
        return None if self.status is None else StackState(self.status)

    @property
    def failed(self) -> bool:
        """Whether an operation on it failed, or is being rolled back."""
        return self.state is not None and self.state.has_failed

    @property
    def in_progress(self) -> bool:
        """Whether an operation on it is in progress."""
        return self.state is not None and self.state.is_in_progress


@dataclass(frozen=True)
class HeadNodeStatus:
    """The head node's instance."""

    instance_id: str = Field(description="Its id.")
    state: str = Field(description="As EC2 has it, such as `running`.")
    instance_type: str = Field(description="Its type.")
    private_address: str = Field(description="Its address in the VPC.")
    public_address: str = Field(description="Its address on the internet; empty: none.")
    launched: datetime = Field(description="When it was launched.")
    session_manager: bool | None = Field(
        default=None, description="Whether Session Manager reaches it; None: not known."
    )

    def sentence(self, now: datetime) -> str:
        """Return it for people."""
        reachable = {True: ["Session Manager reaches it"], False: ["Session Manager does not reach it"], None: []}
        facts = [
            self.instance_id,
            self.instance_type,
            self.state,
            *filter(None, (self.private_address, self.public_address)),
            f"launched {duration(now - self.launched)} ago",
            *reachable[self.session_manager],
        ]
        return ", ".join(facts)


@dataclass(frozen=True)
class QueueStatus:
    """A queue of Slurm."""

    availability: str = Field(description="Whether it takes jobs: `up`, `down`, `drain` or `inactive`.")
    nodes: Mapping[str, int] = Field(description="Numbers of nodes by state.")
    jobs: int = Field(description="Number of jobs that have nodes.")
    waiting: int = Field(description="Number of jobs that wait for nodes.")


class SlurmStatus(Document):
    """What Slurm said of nodes and jobs."""

    seen: datetime = Field(description="When it said so.")
    queues: dict[str, QueueStatus] = Field(description="The queues by name.")
    problems: tuple[Problem, ...] = Field(description="The first groups of nodes that take no jobs.")
    jobs: tuple[Job, ...] = Field(description="The first jobs that have nodes or wait for some.")
    job_counts: dict[str, int] = Field(description="Numbers of jobs by state.")

    @classmethod
    def of(cls, state: SlurmState, seen: datetime) -> SlurmStatus:
        """Return what the head node's answer says."""
        queues = {
            name: QueueStatus(state.availability[name], counts, state.active_in(name), state.waiting_in(name))
            for name, counts in state.nodes.items()
        }
        return cls(seen=seen, queues=queues, problems=state.problems, jobs=state.jobs, job_counts=dict(state.counts))


@dataclass(frozen=True)
class FileSystem:
    """The file system."""

    file_system_id: str = Field(description="Its id.")
    lifecycle: str = Field(description="As FSx has it, such as `AVAILABLE`.")
    capacity_gib: int = Field(description="Its storage capacity.")
    throughput_mbps: float = Field(description="Its provisioned throughput in MB/s.")

    def sentence(self, usage: Usage | Unavailable) -> str:
        """Return it for people, with its use."""
        size = f"{self.capacity_gib:,} GiB, {self.throughput_mbps:,.0f} MB/s"
        text = f"{self.file_system_id}, {self.lifecycle}, {size}"
        if isinstance(usage, Unavailable):
            return text
        parts = []
        if usage.free_bytes is not None:
            gib = usage.free_bytes / 1024**3
            parts.append(f"{gib:,.0f} GiB free ({gib / self.capacity_gib:.0%})")
        if usage.used_mbps is not None:
            parts.append(f"{usage.used_mbps:,.0f} MB/s used ({usage.used_mbps / self.throughput_mbps:.0%})")
        return f"{text}; {', '.join(parts) or 'no metrics of the last 10 minutes'}"


@dataclass(frozen=True)
class Homes:
    """The file system of /home, if it is one of its own."""

    file_system_id: str = Field(description="Its id.")
    lifecycle: str = Field(description="As FSx and EFS have it, in capitals, such as `AVAILABLE`.")
    used_bytes: float | None = Field(description="What files take; None: not known.")
    capacity_gib: int | None = Field(default=None, description="Its storage capacity; None: EFS grows by itself.")

    def sentence(self) -> str:
        """Return it for people."""
        parts = [self.file_system_id, self.lifecycle]
        if self.used_bytes is not None:
            parts.append(f"{self.used_bytes / 1024**3:,.1f} GiB used")
        if self.capacity_gib is not None:
            parts[-1] += f" of {self.capacity_gib:,}" if self.used_bytes is not None else f", {self.capacity_gib:,} GiB"
        return ", ".join(parts)


@dataclass(frozen=True)
class Usage:
    """What CloudWatch has of the file system's last minutes."""

    free_bytes: float | None = Field(description="Free storage; None: no recent value.")
    used_mbps: float | None = Field(
        description="MB/s read and written in the newest minute that has values; None: no recent value."
    )


@dataclass(frozen=True)
class Cost:
    """What the deployment costs an hour, as it is now."""

    hourly_usd: float = Field(description="All of it.")
    nodes_usd: float = Field(description="The running compute nodes.")
    standing_usd: float = Field(description="Everything else, as if all stacks existed.")
    unpriced: tuple[str, ...] = Field(description="Names of parts that are not in the sums.")
    source: str = Field(description="Where the prices come from, and of which day.")

    def sentence(self, others: Iterable[str], missing: Iterable[str]) -> str:
        """Return it for people, with the clusters that are not included, and the stacks that do not exist yet."""
        total, nodes, standing = map(dollars, (self.hourly_usd, self.nodes_usd, self.standing_usd))
        text = f"{total} an hour: {nodes} for compute nodes, {standing} for the rest ({self.source})"
        if unpriced := [*self.unpriced, *(f"{each} (./ultracluster inventory)" for each in others)]:
            text += f"; not included: {', '.join(unpriced)}"
        names = ", ".join(missing)
        return f"if {names} existed: {text}" if names else text


@dataclass(frozen=True)
class Spending:
    """What nodes have cost since the month began, and the limit of the budget."""

    limit_usd: float = Field(description="`budget.monthly_usd`, for everything of the deployment.")
    nodes_usd: float | None = Field(
        description="What nodes of all its clusters have cost this month, in UTC, as the head node counts; None: no "
        "value of the last minutes."
    )

    def sentence(self) -> str:
        """Return it for people."""
        limit = f"the budget's {dollars(self.limit_usd)}"
        if self.nodes_usd is None:
            return f"not known, of {limit}: the head node has reported nothing in the last 10 minutes"
        return f"{dollars(self.nodes_usd)} for nodes this month, {self.nodes_usd / self.limit_usd:.0%} of {limit}"


class Status(Result):
    """A deployment at one time."""

    deployment: DeploymentName
    name: str = Field(description="`name` in the settings, with which the names of the stacks start.")
    region: str = Field(description="AWS Region.")
    cluster: str = Field(description="ParallelCluster's name of the cluster.")
    time: datetime = Field(description="When it was collected.")
    stacks: tuple[StackStatus, ...] = Field(
        description="Those of the deployment in the order of creation, without those that could not be collected. "
        "The cluster's own, which ParallelCluster creates, is among them while the stack before it is not ready."
    )
    unavailable_stacks: Unavailable | None = Field(
        default=None, exclude=True, description="Why some are missing; None: none is."
    )
    other_clusters: tuple[StackStatus, ...] | Unavailable = Field(
        description="The stacks of the deployment's other clusters: there is one during an upgrade."
    )
    head_node: HeadNodeStatus | Unavailable | None = Field(description="The head node; None: there is none.")
    compute_nodes: dict[str, int] | Unavailable = Field(
        description="Numbers of compute nodes that are not terminated, by state in EC2."
    )
    fleet: str | Unavailable = Field(description="Status of the compute fleet, as ParallelCluster has it.")
    slurm: SlurmStatus | Unavailable = Field(description="Nodes and jobs.")
    software: Software | None = Field(
        description="Python environment of jobs, and nodes that failed to start; None: the head node did not answer."
    )
    file_system: FileSystem | Unavailable = Field(description="The file system.")
    usage: Usage | Unavailable = Field(description="Its use.")
    homes: Homes | Unavailable | None = Field(
        default=None, description="The file system of /home; None: it is on the head node, or on the cluster's EFS."
    )
    reservations: tuple[Reservation, ...] | Unavailable = Field(description="Those that the settings name.")
    alarms: tuple[str, ...] | Unavailable = Field(description="Names of the deployment's alarms in state ALARM.")
    cost: Cost | Unavailable = Field(description="What it costs.")
    spending: Spending | Unavailable | None = Field(
        default=None, description="What nodes have cost this month; None: there is no budget."
    )
    diagnosis: dict[str, Any] | Unavailable | None = Field(
        default=None, description="What `diagnose --output json` prints, where something failed."
    )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def problems(self) -> list[str]:
        """What failed, is missing or could not be collected, a sentence each."""
        if not self.exists:
            return [f"there is nothing of {self.name} in {self.region}: ./ultracluster deploy {self.deployment}"]
        return [
            *_problems_of_stacks(self),
            *_problems_of_cluster(self),
            *_other_problems(self),
            *_what_is_unavailable(self),
        ]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def healthy(self) -> bool:
        """Whether there is none of that."""
        return not self.problems

    @computed_field  # type: ignore[prop-decorator]
    @property
    def links(self) -> dict[str, str]:
        """Addresses of pages of the AWS console, by what they show."""
        return links(self.name, self.region, self.cluster)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def unavailable(self) -> dict[str, str]:
        """The reasons for what could not be collected, by what it is."""
        return {name: each.reason for name, each in self.unavailable_parts().items()}

    def with_diagnosis(self, diagnosis: Document | None) -> Status:
        """Return it with a diagnosis, or with why there is none."""
        if diagnosis is None or isinstance(diagnosis, Unavailable):
            return self.model_copy(update={"diagnosis": diagnosis})
        return self.model_copy(update={"diagnosis": diagnosis.model_dump(mode="json")})

    def unavailable_parts(self) -> dict[str, Unavailable]:
        """Return what could not be collected, by what it is."""
        parts = {
            "stacks": self.unavailable_stacks,
            "other_clusters": self.other_clusters,
            "instances": self.head_node,
            "fleet": self.fleet,
            "slurm": self.slurm,
            "file_system": self.file_system,
            "usage": self.usage,
            "homes": self.homes,
            "reservations": self.reservations,
            "alarms": self.alarms,
            "spending": self.spending,
            "diagnosis": self.diagnosis,
        }
        return {name: each for name, each in parts.items() if isinstance(each, Unavailable)}

    @property
    def exists(self) -> bool:
        """Whether any stack exists, or may exist."""
        return self.unavailable_stacks is not None or any(each.status for each in self.stacks)

    @property
    def existing_stacks(self) -> dict[str, StackStatus]:
        """The stacks that are known to exist, by name."""
        return {each.name: each for each in self.stacks if each.status}

    @property
    def failed(self) -> bool:
        """Whether a stack, the head node or the fleet is in a state that calls for a diagnosis."""
        stacks = self.existing_stacks.values()
        if any(each.failed for each in stacks):
            return True
        is_created = self.fleet != NO_FLEET and not any(each.in_progress for each in stacks)
        return is_created and (self.fleet == PROTECTED or self.lacks_head_node)

    @property
    def lacks_head_node(self) -> bool:
        """Whether it is known that no head node runs."""
        if isinstance(self.head_node, Unavailable):
            return False
        return self.head_node is None or self.head_node.state != "running"

    def blocks(self) -> Iterator[Block]:
        """Yield it for people; whether it is healthy is the conclusion."""
        from scripts.watch.status.report import report

        return report(self)


def _problems_of_stacks(status: Status) -> Iterator[str]:
    for each in status.stacks:
        if each.name == status.cluster:
            continue
        if each.status is None:
            yield f"there is no stack {each.name}"
        elif each.failed:
            yield f"stack {each.name} is {each.status}"
    if (own := status.existing_stacks.get(status.cluster)) and own.failed:
        yield f"ParallelCluster's stack {own.name} is {own.status}"


def _problems_of_cluster(status: Status) -> Iterator[str]:
    if status.head_node is None:
        yield f"the cluster {status.cluster} has no head node"
    elif isinstance(status.head_node, HeadNodeStatus) and status.head_node.state != "running":
        yield f"the head node {status.head_node.instance_id} is {status.head_node.state}"
    if status.fleet == PROTECTED:
        yield "the fleet is PROTECTED: queues are closed whose nodes kept failing"
    if status.software and (status.software.state == "failed" or status.software.is_interrupted):
        why = status.software.reason if status.software.state == "failed" else "nothing builds it now."
        retry = f"./ultracluster exec {status.deployment} -- sudo systemctl restart {UNIT}"
        yield f"the software of jobs is not ready: {why} To retry: {retry}"


def _other_problems(status: Status) -> Iterator[str]:
    if isinstance(status.file_system, FileSystem) and status.file_system.lifecycle not in USABLE_FILE_SYSTEM:
        yield f"the file system {status.file_system.file_system_id} is {status.file_system.lifecycle}"
    if isinstance(status.homes, Homes) and status.homes.lifecycle not in USABLE_FILE_SYSTEM:
        yield f"the homes {status.homes.file_system_id} are {status.homes.lifecycle}"
    if not isinstance(status.reservations, Unavailable):
        for each in status.reservations:
            if not (each.is_active or each.is_coming):
                yield f"the reservation {each.reservation_id} is {each.state}"
    if not isinstance(status.alarms, Unavailable):
        yield from (f"alarm {each} is raised" for each in status.alarms)


def _what_is_unavailable(status: Status) -> Iterator[str]:
    for name, each in status.unavailable_parts().items():
        if each.is_problem and name != "diagnosis" and not (name == "slurm" and status.lacks_head_node):
            yield f"{name.replace('_', ' ')}: {each.reason}"


def try_fetch(fetch: Callable[[], T], *actions: str) -> T | Unavailable:
    """Return what a function fetches from AWS, or why it cannot.

    Args:
        fetch: Calls AWS.
        actions: The IAM actions that it needs; none: AWS says which one is missing.

    Raises:
        botocore.exceptions.BotoCoreError: There are no usable credentials.
        botocore.exceptions.ClientError: The credentials are not, or no longer, valid.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.core.aws_errors import credentials_hint, is_denied
    from scripts.core.errors import OperationError

    try:
        return fetch()
    except OperationError as error:
        return Unavailable(reason=str(error))
    except (BotoCoreError, ClientError) as error:
        if credentials_hint(error):
            raise
        if actions and isinstance(error, ClientError) and is_denied(error):
            denied = [each for each in actions if each.endswith(f":{error.operation_name}")]
            return Unavailable(reason=f"these credentials lack {' or '.join(denied or actions)}")
        return Unavailable(reason=str(error))
