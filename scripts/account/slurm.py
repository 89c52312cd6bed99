"""What Slurm says of queues, nodes and jobs, asked on the head node in one command."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from typing_extensions import TypedDict

from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.programs.asking import ACTIVE as _ACTIVE
from scripts.account.remote.programs.asking import ENDED as _ENDED
from scripts.account.remote.programs.asking import WAITING as _WAITING
from scripts.account.remote.programs.node_states import TAKES, condition, takes_jobs
from scripts.account.remote.values import JobNumber, Line, Name, NodeState, State
from scripts.core.errors import HeadNodeError

ACTIVE = frozenset(_ACTIVE)
"""States of jobs that have nodes (https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES)."""
WAITING = frozenset(_WAITING)
"""States of jobs that wait for nodes (the same page)."""
FAILED = frozenset({*_ENDED} - {"COMPLETED", "CANCELLED", "PREEMPTED", "REVOKED"})
"""States of jobs that have ended as they should not have (the same page)."""
COMMAND = program.words("state")
"""For the head node, as root: users may not see jobs of others. `parse` reads what it prints."""
_TASKS = r"[0-9][0-9,:.-]*(%[0-9]+)?"
"""Such as 3, or 2-9%4 of tasks that wait; a long list ends with dots."""
_COMPONENT = r"[0-9]+\+[0-9]+"
"""Of a heterogeneous job."""


class SlurmError(ValueError):
    """The head node's answer is not that of `COMMAND`; the message is what it printed."""


@dataclass(frozen=True)
class Problem:
    """Nodes that take no jobs, for one reason.

    Attributes:
        count: How many they are.
        state: Such as ``drained``; then ``~``: the nodes are off, ``*``: they do not respond.
        since: Since when the first of them is, ISO 8601 in UTC without a zone, or a word of Slurm's for none.
        nodes: Such as ``trn1-dy-trn1-32xl-[1-3,7]``, truncated after 120 characters.
        reason: On one line, truncated after 120 bytes; the word ``none``: Slurm has none.
        queue: Theirs.
    """

    count: int
    state: str
    since: str
    nodes: str
    reason: str
    queue: str = ""


@dataclass(frozen=True)
class Job:
    """A job that waits or runs, in the words of squeue.

    Attributes:
        number: Its own number, which tasks of an array have, too; ``id`` is what people and Slurm's commands call it.
        user: Whose it is.
        queue: Several with commas.
        state: Such as RUNNING.
        nodes: How many it has or wants.
        elapsed: How long it has run.
        reason: Why it waits; the word ``None``: it does not.
        name: On one line, truncated after 40 bytes.
        id: ``12``; ``17_1`` of an array, or ``17_[2-9]``, its tasks that wait; ``12+1`` of a heterogeneous job.
        array: The number of its array; None: it is in none.
        tasks: Its number in the array, or those that wait, such as ``2-9``.
        time_limit: How long it may run, as squeue has it.
        node_list: Its nodes, such as ``trn1-dy-trn1-32xl-[1-3]``, truncated after 60 characters.
    """

    number: int
    user: str
    queue: str
    state: str
    nodes: int
    elapsed: str
    reason: str
    name: str
    id: str
    array: int | None = None
    tasks: str = ""
    time_limit: str = ""
    node_list: str = ""


@dataclass(frozen=True)
class Wait:
    """A reason why jobs wait, as squeue has it.

    Attributes:
        reason: On one line, truncated after 60 bytes; the word ``None``: Slurm has not looked at them yet.
        count: How many have it; each task of an array is one.
        job: One of them, as Slurm's commands take it.
    """

    reason: str
    count: int
    job: str


@dataclass(frozen=True)
class NodeKind:
    """The static nodes of a compute resource (min_count), or its dynamic ones.

    Attributes:
        queue: Its queue.
        compute_resource: Its name.
        static: Whether they are the static ones.
        count: How many Slurm knows, running or not.
        ready: How many take jobs or run them.
    """

    queue: str
    compute_resource: str
    static: bool
    count: int
    ready: int


@dataclass(frozen=True)
class SlurmState:
    """Queues, nodes and jobs of a cluster.

    Attributes:
        nodes: Numbers of nodes by state, by queue. Nodes that could be used but are off or on their way are
            ``power saving``, ``powering up`` and ``powering down``; those that a reservation of Slurm's keeps for its
            own jobs are ``reserved`` or, if they are off, ``reserved off``; those that do not respond are ``not
            responding`` or, if they are off, so that Slurm never starts them, ``stuck off``; the other states are
            Slurm's, such as ``idle`` and ``drained``. `programs.node_states.condition` says which is which.
        availability: Whether a queue takes jobs: ``up``, ``down``, ``drain`` or ``inactive``, by queue. ParallelCluster
            makes those inactive that it protects, and all while the fleet is stopped.
        kinds: The nodes by queue, compute resource and whether they are static.
        problems: The first `PROBLEMS_LISTED` groups of nodes that take no jobs.
        counts: Numbers of jobs by state; each task of an array is one.
        queue_counts: The same by queue; a job that waits in several counts in each.
        jobs: The first `JOBS_LISTED` of those that wait or run; an array that waits is one.
        wanted: How many nodes the largest job wants that waits, by queue.
        waits: Why jobs wait, the first `REASONS_LISTED` reasons, that of most jobs first.
        seconds: How long Slurm took to tell all this.
        accounting: Why the accounting database cannot be asked; empty: it can; None: there is none.
    """

    nodes: Mapping[str, Mapping[str, int]]
    availability: Mapping[str, str]
    kinds: tuple[NodeKind, ...]
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    queue_counts: Mapping[str, Mapping[str, int]]
    jobs: tuple[Job, ...]
    wanted: Mapping[str, int] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()
    seconds: float = 0
    accounting: str | None = None

    @property
    def active_jobs(self) -> int:
        """How many jobs have nodes."""
        return _among(self.counts, ACTIVE)

    @property
    def waiting_jobs(self) -> int:
        """How many jobs wait for nodes."""
        return _among(self.counts, WAITING)

    @property
    def missing_static(self) -> int:
        """How many static nodes are not ready."""
        return sum(each.count - each.ready for each in self.kinds if each.static)

    def node_count(self, queue: str, compute_resource: str, *, static: bool) -> int:
        """Return how many nodes of a kind Slurm knows."""
        wanted = (queue, compute_resource, static)
        return sum(each.count for each in self.kinds if (each.queue, each.compute_resource, each.static) == wanted)

    def out_in(self, queue: str) -> int:
        """Return how many nodes of a queue take no jobs, whatever happens to them."""
        return sum(count for state, count in self.nodes.get(queue, {}).items() if not takes_jobs(state))

    def reserved_in(self, queue: str) -> int:
        """Return how many nodes of a queue take only jobs of a reservation of Slurm's."""
        return sum(self.nodes.get(queue, {}).get(state, 0) for state in ("reserved", "reserved off"))

    def active_in(self, queue: str) -> int:
        """Return how many jobs have nodes in a queue."""
        return _among(self.queue_counts.get(queue, {}), ACTIVE)

    def waiting_in(self, queue: str) -> int:
        """Return how many jobs wait for nodes in a queue."""
        return _among(self.queue_counts.get(queue, {}), WAITING)


class _Problem(NamedTuple):
    size: int
    state: Line
    since: Line
    nodes: Line
    reason: Line
    queue: Name


class _Job(NamedTuple):
    number: int
    user: Line
    queue: Line
    state: State
    nodes: int
    elapsed: Line
    reason: Line
    name: Line
    array: Line = "0"
    tasks: Line = ""
    time_limit: Line = ""
    node_list: Line = ""
    id: Line = ""

    def read(self) -> Job:
        own = self.id if re.fullmatch(_COMPONENT, self.id) else str(self.number)
        values = self._asdict() | {"id": own, "array": None, "tasks": ""}
        if re.fullmatch(_TASKS, self.tasks):
            written = self.tasks if self.tasks.isdigit() else f"[{self.tasks}]"
            values |= {"id": f"{self.array}_{written}", "array": int(self.array), "tasks": self.tasks}
        return Job(**values)


class _Wait(NamedTuple):
    reason: Line
    size: int
    job: JobNumber


class _Answer(TypedDict):
    """What the head node answers; nodes by queue, kind and state. What goes into no command is text."""

    queues: dict[Name, State]
    nodes: dict[Name, dict[Name, dict[NodeState, int]]]
    problems: list[_Problem]
    counts: dict[State, int]
    queue_counts: dict[Name, dict[State, int]]
    jobs: list[_Job]
    wanted: dict[Name, int]
    waits: list[_Wait]
    seconds: float
    accounting: Line | None


def parse(text: str, errors: str = "") -> SlurmState:
    """Return what `COMMAND` printed.

    Raises:
        SlurmError: It did not come to its end, or something else was printed.
    """
    try:
        answer = program.read(text, "state", _Answer, errors)
    except ValueError as error:
        raise SlurmError(str(error)) from None
    nodes: dict[str, Counter[str]] = {queue: Counter() for queue in answer["queues"]}
    kinds: dict[tuple[str, str, bool], Counter[str]] = {}
    for queue, of_queue in answer["nodes"].items():
        for kind, written in of_queue.items():
            life, _, compute_resource = kind.partition("-")
            states = kinds.setdefault((queue, compute_resource, life == "st"), Counter())
            for state, count in written.items():
                nodes.setdefault(queue, Counter())[condition(state)] += count
                states[condition(state)] += count
    return SlurmState(
        nodes,
        answer["queues"],
        tuple(
            NodeKind(*key, states.total(), _among(states, frozenset(TAKES))) for key, states in sorted(kinds.items())
        ),
        tuple(Problem(*each) for each in answer["problems"]),
        answer["counts"],
        answer["queue_counts"],
        tuple(each.read() for each in answer["jobs"]),
        answer["wanted"],
        tuple(Wait(*each) for each in answer["waits"]),
        answer["seconds"],
        answer["accounting"],
    )


def _among(counts: Mapping[str, int], states: frozenset[str]) -> int:
    return sum(count for state, count in counts.items() if state in states)


def slurm_state(head_node: HeadNode) -> SlurmState:
    """Ask the head node for queues, nodes and jobs.

    Raises:
        HeadNodeError: It could not be asked, or Slurm did not answer.
    """
    answer = head_node.run(shlex.join(COMMAND))
    try:
        return parse(answer.output, answer.errors)
    except SlurmError as error:
        raise HeadNodeError(f"Slurm on the head node did not answer: {error}") from error
