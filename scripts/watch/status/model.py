"""The parts of a deployment's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeVar

from pydantic import Field, model_serializer
from pydantic.dataclasses import dataclass

from scripts.account.slurm import Job, Problem, SlurmState, Wait
from scripts.account.stack_state import StackState
from scripts.core.document import Document
from scripts.core.figures import dollars, duration

USABLE_FILE_SYSTEM = frozenset({"AVAILABLE", "UPDATING"})
"""Lifecycles of a file system that can be used: https://docs.aws.amazon.com/fsx/latest/APIReference/API_FileSystem.html."""
T = TypeVar("T")


class Unavailable(Document):
    """Stands for what could not be collected. As JSON it is null, and `Status.unavailable` has the reason."""

    reason: str = Field(description="Why, with the permission that is missing if that is why.")
    is_problem: bool = Field(
        default=True,
        description="Whether that makes the deployment unhealthy; not where there is nothing to collect yet.",
    )
    is_denied: bool = Field(default=False, description="Whether permissions are missing.")

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
        """Whether an operation on it failed, or is being rolled back, and it is not (yet) again what it was before."""
        return self.state is not None and self.state.has_failed and not self.state.is_as_before

    @property
    def is_as_before(self) -> bool:
        """Whether its last operation failed, and it is again what it was before."""
        return self.state is not None and self.state.is_as_before

    @property
    def is_in_review(self) -> bool:
        """Whether it waits for a change set to be executed that creates it, and has no resources."""
        return self.state is not None and self.state.is_in_review

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
class LoginNodes:
    """Login nodes."""

    wanted: int = Field(description="How many the settings have.")
    running: int = Field(description="How many run, as EC2 has it.")
    others: Mapping[str, int] = Field(description="Numbers of the others that are not terminated, by state in EC2.")

    @property
    def sentence(self) -> str:
        """Return it for people."""
        others = "".join(f", {count:,} {state}" for state, count in sorted(self.others.items()))
        return f"{self.running:,} of {self.wanted:,} running{others} (EC2)"


@dataclass(frozen=True)
class QueueStatus:
    """A queue of Slurm."""

    availability: str = Field(description="Whether it takes jobs: `up`, `down`, `drain` or `inactive`.")
    nodes: Mapping[str, int] = Field(description="Numbers of nodes by state.")
    jobs: int = Field(description="Number of jobs that have nodes.")
    waiting: int = Field(description="Number of jobs that wait for nodes.")
    out: int = Field(default=0, description="Number of nodes that take no jobs.")
    largest_waiting: int = Field(default=0, description="Number of nodes that the largest job wants that waits.")


class SlurmStatus(Document):
    """What Slurm said of nodes and jobs."""

    seen: datetime = Field(description="When it said so.")
    queues: dict[str, QueueStatus] = Field(description="The queues by name.")
    problems: tuple[Problem, ...] = Field(description="The first groups of nodes that take no jobs.")
    jobs: tuple[Job, ...] = Field(description="The first jobs that have nodes or wait for some.")
    job_counts: dict[str, int] = Field(description="Numbers of jobs by state.")
    waits: tuple[Wait, ...] = Field(default=(), description="Why jobs wait: the reasons that most jobs have.")
    seconds: float = Field(default=0, description="How long Slurm took to say so.")
    accounting: str | None = Field(
        default=None, description="Why the accounting database cannot be asked; empty: it can; None: there is none."
    )
    state: SlurmState = Field(exclude=True)

    @classmethod
    def of(cls, state: SlurmState, seen: datetime) -> SlurmStatus:
        """Return what the head node's answer says."""
        queues = {
            name: QueueStatus(
                state.availability[name],
                counts,
                state.active_in(name),
                state.waiting_in(name),
                state.out_in(name),
                state.wanted.get(name, 0),
            )
            for name, counts in state.nodes.items()
        }
        return cls(
            seen=seen,
            queues=queues,
            problems=state.problems,
            jobs=state.jobs,
            job_counts=dict(state.counts),
            waits=state.waits,
            seconds=state.seconds,
            accounting=state.accounting,
            state=state,
        )


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
            return Unavailable(reason=f"these credentials lack {' or '.join(denied or actions)}", is_denied=True)
        return Unavailable(reason=str(error))
