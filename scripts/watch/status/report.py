"""The state of a deployment, as far as the permissions in use show it, for people and programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, computed_field

from scripts.account.compute_fleet import PROTECTED, STOP_STATUSES
from scripts.account.compute_fleet import UNKNOWN as NO_FLEET
from scripts.account.job_reasons import passes
from scripts.account.reservations import Reservation
from scripts.account.troubles import Severity, Trouble, jobs_wait, troubles
from scripts.account.way_out import WayOut
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import duration
from scripts.core.report import Block, Conclusion, Facts, Gap, Line, Link, Table, Title, Tone, Toned, columns
from scripts.watch.status.links import links
from scripts.watch.status.model import (
    USABLE_FILE_SYSTEM,
    Cost,
    FileSystem,
    HeadNodeStatus,
    Homes,
    LoginNodes,
    SlurmStatus,
    Spending,
    StackStatus,
    Unavailable,
    Usage,
)
from scripts.watch.status.software import NONE, UNIT, Software

if TYPE_CHECKING:
    from scripts.watch.diagnose.diagnose import Diagnosis

T = TypeVar("T")
_STATES = {
    "idle": ("idle", "planned", "reserved", "blocked"),
    "running": ("allocated", "mixed", "completing"),
    "off": ("power saving", "reserved off"),
    "starting": ("powering up",),
    "stopping": ("powering down",),
    "drained": ("drained", "draining"),
}
"""Columns of the table of queues, and the states of nodes that count in each; others count in ``other``."""
_SOFTWARE: dict[str, Tone] = {"building": "warn", "failed": "bad", "interrupted": "bad"}
_REASONS_SHOWN = 4
_NAMES_WHAT_IS_NEXT = re.compile(r"\./ultracluster \w|\baws \w+ \w|docs/\w+/\w+\.md")
_Fact = tuple[str, str]


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
    ways_out: tuple[WayOut, ...] | Unavailable = Field(
        default=(), description="Of stacks that could not be rolled back: what is in force, and what leads out."
    )
    other_clusters: tuple[StackStatus, ...] | Unavailable = Field(
        description="The stacks of the deployment's other clusters: there is one during an upgrade."
    )
    head_node: HeadNodeStatus | Unavailable | None = Field(description="The head node; None: there is none.")
    compute_nodes: dict[str, int] | Unavailable = Field(
        description="Numbers of compute nodes that are not terminated, by state in EC2."
    )
    login_nodes: LoginNodes | Unavailable | None = Field(default=None, description="Login nodes; None: there are none.")
    fleet: str | Unavailable = Field(description="Status of the compute fleet, as ParallelCluster has it.")
    slurm: SlurmStatus | Unavailable = Field(description="Nodes and jobs.")
    disks: dict[str, int] | None = Field(
        default=None, description="How many percent of the head node's disks are full, by folder; None: not known."
    )
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
        found = [
            *((Severity.CLUSTER, each) for each in (*_problems_of_stacks(self), *_problems_of_cluster(self))),
            *((each.severity, f"{_lower(each.sentence)} ({each.command})") for each in self.troubles),
            *((Severity.NODES, each) for each in (*_other_problems(self), *_what_is_unavailable(self))),
        ]
        diagnose = f" (./ultracluster diagnose {self.deployment})"
        in_order = sorted(found, key=lambda each: each[0])
        return [each if _NAMES_WHAT_IS_NEXT.search(each) else f"{each}{diagnose}" for _, each in in_order]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def healthy(self) -> bool:
        """Whether there is none of that."""
        return not self.problems

    @computed_field  # type: ignore[prop-decorator]
    @property
    def notes(self) -> list[str]:
        """What is worth knowing though it is no problem, a sentence each."""
        notes = []
        if names := ", ".join(each.name for each in self.stacks if each.is_as_before):
            sentence = f"the last change of {names} failed and was rolled back: what was deployed before is in force"
            notes.append(f"{sentence} (./ultracluster diagnose {self.deployment})")
        if names := ", ".join(each.name for each in self.stacks if each.is_in_review):
            sentence = (
                f"of {names} there is only a change set that nobody has executed: a deployment was stopped, or waits"
            )
            notes.append(f"{sentence} for an answer (./ultracluster deploy {self.deployment} continues)")
        if self.fleet in STOP_STATUSES and not any(each.kind == "fleet" for each in self.troubles):
            sentence = f"the fleet is {self.fleet}: no node starts, and jobs would wait"
            notes.append(f"{sentence} (./ultracluster fleet start {self.deployment})")
        return [*notes, *_notes_of_cluster(self)]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def links(self) -> dict[str, str]:
        """Addresses of pages of the AWS console, by what they show; none where AWS_ENDPOINT_URL names another AWS."""
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
            "ways_out": self.ways_out,
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
    def troubles(self) -> tuple[Trouble, ...]:
        """What keeps jobs from running, as `diagnose` sees it, too; that Slurm does not answer is `unavailable`."""
        fleet = None if isinstance(self.fleet, Unavailable) else self.fleet
        slurm = None if isinstance(self.slurm, Unavailable) else self.slurm.state
        return tuple(troubles(self.deployment, fleet, slurm, self.disks or {}))

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
        is_created = self.fleet != NO_FLEET and not self.is_changing
        return is_created and (self.fleet == PROTECTED or self.lacks_head_node)

    @property
    def is_changing(self) -> bool:
        """Whether an operation on a stack is in progress."""
        return any(each.in_progress for each in self.existing_stacks.values())

    @property
    def lacks_head_node(self) -> bool:
        """Whether it is known that no head node runs."""
        if isinstance(self.head_node, Unavailable):
            return False
        return self.head_node is None or self.head_node.state != "running"

    def blocks(self) -> Iterator[Block]:
        """Yield it for people, with the pages of the console."""
        yield from self.state()
        if self.exists and self.links:
            yield Title("In the console")
            yield from (Link(title, address) for title, address in self.links.items())

    def state(self) -> Iterator[Block]:
        """Yield stacks, facts, queues and nodes; whether all is well is the conclusion."""
        yield _stacks(self)
        yield Gap()
        if self.exists:
            yield Facts(list(_facts(self)))
            yield from _nodes_and_jobs(self)
        problems = [Line(each, item=True) for each in self.problems]
        notes = [Line(Toned(f"Note: {each}", "warn")) for each in self.notes]
        verdict = Toned("Unhealthy:", "bad") if problems else Toned("Healthy.", "good")
        yield Conclusion([Gap(), Line(verdict), *problems, *notes])


def _lower(sentence: str) -> str:
    """Return a sentence as a part of a list; a name at its start stays."""
    return sentence[0].lower() + sentence[1:] if sentence.startswith("The ") else sentence


def _problems_of_stacks(status: Status) -> Iterator[str]:
    ways_out = {} if isinstance(status.ways_out, Unavailable) else {each.stack: each for each in status.ways_out}
    for each in status.stacks:
        if each.name == status.cluster:
            continue
        if each.status is None:
            yield f"there is no stack {each.name} (./ultracluster deploy {status.deployment})"
        elif each.failed:
            way = ways_out.get(each.name)
            yield f"stack {way.sentence}; {way.steps}" if way else f"stack {each.name} is {each.status}"
    if (own := status.existing_stacks.get(status.cluster)) and own.failed:
        yield f"ParallelCluster's stack {own.name} is {own.status}"


def _problems_of_cluster(status: Status) -> Iterator[str]:
    if status.head_node is None:
        yield f"the cluster {status.cluster} has no head node"
    elif isinstance(status.head_node, HeadNodeStatus) and status.head_node.state != "running":
        yield f"the head node {status.head_node.instance_id} is {status.head_node.state}"
    logins = status.login_nodes
    if isinstance(logins, LoginNodes) and logins.wanted and not logins.running and not status.is_changing:
        yield f"no login node runs of {logins.wanted:,} ({_launches(status)})"
    if status.software and (status.software.state == "failed" or status.software.is_interrupted):
        why = status.software.reason if status.software.state == "failed" else "nothing builds it now."
        retry = f"./ultracluster exec {status.deployment} -- sudo systemctl restart {UNIT}"
        yield f"the software of jobs is not ready: {why} To retry: {retry}"


def _launches(status: Status) -> str:
    """Return the command that shows why login nodes do not start: Auto Scaling launches those of each pool."""
    query = (
        f"Activities[?starts_with(AutoScalingGroupName, '{status.cluster}-')].[StartTime, StatusCode, StatusMessage]"
    )
    return f'aws autoscaling describe-scaling-activities --region {status.region} --query "{query}" --output table'


def _notes_of_cluster(status: Status) -> Iterator[str]:
    """Yield which login nodes are missing, and which jobs wait until somebody acts."""
    logins = status.login_nodes
    if isinstance(logins, LoginNodes) and 0 < logins.running < logins.wanted and not status.is_changing:
        is_are = "runs" if logins.running == 1 else "run"
        yield f"{logins.running:,} of {logins.wanted:,} login nodes {is_are} ({_launches(status)})"
    waits = () if isinstance(status.slurm, Unavailable) else status.slurm.waits
    if lasting := [each for each in waits if not passes(each.reason)]:
        jobs = sum(each.count for each in lasting)
        named = [f"{each.job}{f' and {each.count - 1:,} more' if each.count > 1 else ''}" for each in lasting]
        reasons = [f"{each.reason} ({job})" for each, job in zip(lasting, named, strict=True)]
        shown = ", ".join(reasons[:_REASONS_SHOWN])
        shown += f" and {len(reasons) - _REASONS_SHOWN} more reasons" if len(reasons) > _REASONS_SHOWN else ""
        what = f"jobs show {status.deployment} {lasting[0].job}" if jobs == 1 else f"jobs list {status.deployment}"
        yield f"{jobs_wait(jobs)} for more than free nodes: {shown} (./ultracluster {what})"


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
        describe = f"aws cloudwatch describe-alarms --region {status.region} --alarm-names"
        yield from (f"alarm {each} is raised ({describe} {each})" for each in status.alarms)


def _what_is_unavailable(status: Status) -> Iterator[str]:
    for name, each in status.unavailable_parts().items():
        if each.is_problem and name != "diagnosis" and not (name == "slurm" and status.lacks_head_node):
            needs = " (docs/reference/permissions.md)" if each.is_denied else ""
            yield f"{name.replace('_', ' ')}: {each.reason}{needs}"


def explained(diagnosis: Diagnosis | Unavailable) -> Iterator[Block]:
    """Yield why something failed, or why that is not available."""
    yield Gap()
    if isinstance(diagnosis, Unavailable):
        yield Line(f"The diagnosis is not available: {diagnosis.reason}")
    else:
        yield from diagnosis.blocks()


def _stacks(status: Status) -> Table:
    rows = []
    for each in status.stacks:
        tone: Tone = "bad" if each.failed else "warn" if each.is_as_before else "" if each.status else "dim"
        changed = f"{duration(status.time - each.changed)} ago" if each.changed else ""
        rows.append((each.name, Toned(each.status or "none", tone), changed))
    return Table("", columns("Stack", "Status", ">Changed"), rows)


def _facts(status: Status) -> Iterator[_Fact]:
    yield from _others(status)
    title = "Nodes" if isinstance(status.head_node, Unavailable) else "Head node"
    yield _fact(title, status.head_node, lambda each: each.sentence(status.time) if each else "none")
    if not isinstance(status.compute_nodes, Unavailable):
        compute = ", ".join(f"{count:,} {state}" for state, count in sorted(status.compute_nodes.items()))
        yield "Nodes", f"{compute} (EC2)" if compute else "none runs (EC2)"
    if status.login_nodes is not None and not isinstance(status.head_node, Unavailable):
        yield _fact("Login", status.login_nodes, lambda each: each.sentence)
    yield _fact("Fleet", status.fleet, lambda each: "there is no cluster" if each == NO_FLEET else each)
    if status.software:
        yield from _software(status.software, status.time)
    yield _fact("Storage", status.file_system, lambda each: each.sentence(status.usage))
    if isinstance(status.usage, Unavailable) and not isinstance(status.file_system, Unavailable):
        yield _unavailable("", status.usage)
    if status.homes is not None:
        yield _fact("Homes", status.homes, lambda each: each.sentence())
    if isinstance(status.reservations, Unavailable):
        yield _unavailable("Reserved", status.reservations)
    else:
        yield from (("Reserved", each.sentence(status.time)) for each in status.reservations)
    others = [] if isinstance(status.other_clusters, Unavailable) else [each.name for each in status.other_clusters]
    missing = [each.name for each in status.stacks if not each.status]
    yield _fact("Cost", status.cost, lambda each: each.sentence(others, missing))
    if status.spending is not None:
        yield _fact("Spending", status.spending, lambda each: each.sentence())
    if status.lacks_head_node:
        return
    yield "Connect", f"./ultracluster ssh {status.deployment}"
    yield "Jobs", f"./ultracluster jobs list {status.deployment} --all"
    if isinstance(status.slurm, Unavailable):
        yield _unavailable("Queues", status.slurm)


def _others(status: Status) -> Iterator[_Fact]:
    """Yield other clusters of the deployment, and why stacks are missing."""
    if isinstance(status.other_clusters, Unavailable):
        yield _unavailable("Others", status.other_clusters, "other clusters of this deployment: ")
    else:
        for other in status.other_clusters:
            yield "Others", Toned(f"{other.name} is {other.status}: another cluster of this deployment", "warn")
    if status.unavailable_stacks:
        yield _unavailable("Stacks", status.unavailable_stacks)


def _software(software: Software, now: datetime) -> Iterator[_Fact]:
    state = "interrupted" if software.is_interrupted else software.state or "starting"
    if state == NONE:
        state = "none: the cluster has no Neuron SDK"
    since = f" since {_age(software.since.removesuffix('Z'), now)}: {software.environment}" if software.since else ""
    yield "Software", Toned(f"{state}{since}", _SOFTWARE.get(state, ""))
    if state != "ready":
        yield from (("", Toned(each, "dim")) for each in software.log)
    if software.by_hand:
        yield "By hand", f"made with sacctmgr, kept: {'; '.join(software.by_hand)}"


def _nodes_and_jobs(status: Status) -> Iterator[Block]:
    """Yield the tables of queues, of nodes that take no jobs, and of those that failed to start."""
    if isinstance(status.slurm, SlurmStatus):
        yield Gap()
        yield _queues(status.slurm)
        for name, queue in status.slurm.queues.items():
            if queue.availability != "up":
                yield Line(Toned(f"Queue {name} takes no jobs: it is {queue.availability}.", "warn"))
        if status.slurm.problems:
            titles = columns("Nodes that take no jobs", "State", ">Since", "Reason")
            problems = status.slurm.problems
            yield Gap()
            yield Table("", titles, [(e.nodes, e.state, _age(e.since, status.time), e.reason) for e in problems])
    if status.software and status.software.failed_nodes:
        nodes = status.software.failed_nodes
        titles = columns("Nodes that failed to start", ">Ago", "Reason")
        yield Gap()
        yield Table("", titles, [(each.name, _age(each.time, status.time), each.reason) for each in nodes])


def _queues(slurm: SlurmStatus) -> Table:
    rows = []
    for name, queue in slurm.queues.items():
        shown = [sum(queue.nodes.get(each, 0) for each in states) for states in _STATES.values()]
        numbers = [*shown, sum(queue.nodes.values()) - sum(shown), queue.jobs, queue.waiting]
        rows.append([name, *(f"{each:,}" if each else "-" for each in numbers)])
    titles = columns("Queue", *(f">{column}" for column in (*_STATES, "other", "jobs", "waiting")))
    return Table("", titles, rows, narrow=True)


def _fact(title: str, what: T | Unavailable, text: Callable[[T], str]) -> _Fact:
    return _unavailable(title, what) if isinstance(what, Unavailable) else (title, text(what))


def _unavailable(title: str, what: Unavailable, start: str = "") -> _Fact:
    return title, Toned(f"{start}not available: {what.reason}" if what.is_problem else f"{start}{what.reason}", "warn")


def _age(text: str, now: datetime) -> str:
    try:
        return duration(now - datetime.fromisoformat(text).replace(tzinfo=UTC))
    except ValueError:
        return text
