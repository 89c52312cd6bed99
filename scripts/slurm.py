"""What Slurm says of queues, nodes and jobs, asked on the head node in one command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

JOBS_LISTED = 40
PROBLEMS_LISTED = 25
_WIDTH = 120
"""Characters of names of nodes, and of a reason. The two numbers above and this one keep the answer below what Systems
Manager returns of a command's output (`head_node.OUTPUT_LIMIT`)."""
ACTIVE = frozenset({"COMPLETING", "CONFIGURING", "RESIZING", "RUNNING", "STAGE_OUT", "STOPPED", "SUSPENDED"})
"""States of jobs that have nodes (https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES)."""
WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
"""States of jobs that wait for nodes (the same page)."""
SCRIPT = f"""\
export PATH=/opt/slurm/bin:$PATH LC_ALL=C TZ=UTC SLURM_TIME_FORMAT=standard
set -e
jobs_in() {{
    squeue --noheader --states="$1" --sort=-p,i --format='%A|%20u|%25P|%T|%D|%M|%60r|%40j'
}}
section() {{
    echo "# $1"
    sed 's/^/ /'
}}
queues=$(sinfo --noheader --format='%R|%a')
nodes=$(sinfo --noheader --Node --format='%R|%N|%T')
problems=$(sinfo --noheader --list-reasons --format='%D|%T|%H|%{_WIDTH}N|%{_WIDTH}E')
states=$(squeue --noheader --array --states=all --format='%P|%T')
active=$(jobs_in {",".join(sorted(ACTIVE))})
waiting=$(jobs_in PENDING)
printf '%s\\n' "$queues" | section queues
printf '%s' "$nodes" | sed -E 's/-[0-9]+\\|([^|]*)$/|\\1/' | sort | uniq --count | sed 's/^ *//' | section nodes
printf '%s\\n' "$problems" | head --lines={PROBLEMS_LISTED} | section problems
printf '%s' "$states" | sort | uniq --count | section counts
printf '%s\\n%s\\n' "$active" "$waiting" | head --lines={JOBS_LISTED} | section jobs
echo '# end'
"""
"""For a shell on the head node; `parse` reads what it prints.

One line for each kind and state of node, not for each node. Reasons and names of jobs may hold any character, line ends
as well, so each line within a section starts with a space. Jobs that have nodes come first.
https://slurm.schedmd.com/sinfo.html, https://slurm.schedmd.com/squeue.html
"""
_USABLE = frozenset({"allocated", "completing", "idle", "mixed", "planned", "reserved"})
_FLAGS = {"~": "power saving", "#": "powering up", "%": "powering down", "!": "powering down", "*": "not responding"}
"""What the character after such a state means, for those that are more than the state.

Not ``$@^-+``: in a maintenance reservation, to be rebooted, being rebooted, planned for a job, ending a job
(https://slurm.schedmd.com/sinfo.html#SECTION_NODE-STATE-CODES).
"""
_QUEUE = re.compile(r"([^|]+)\|([^|]+)")
_NODES = re.compile(r"(\d+) ([^|]+)\|([^|]+)\|([^|]+)")
_COUNT = re.compile(r"\s*(\d+) ([^|]+)\|(\w+)")
_PROBLEM = re.compile(r"^(\d+)\|([a-z]\w*\W?)\|([^|\n]*)\|([^|\n]*)\|", re.MULTILINE)
_JOB = re.compile(r"^(\d+)\|([^|\n]*)\|([^|\n]*)\|([A-Z_]+)\|(\d+)\|([^|\n]*)\|([^|\n]*)\|", re.MULTILINE)
"""How these start; what comes last, up to the next of them, may hold any character."""


class SlurmError(ValueError):
    """What the head node printed is not what Slurm's programs print; the message is what it printed."""


@dataclass(frozen=True)
class Problem:
    """Nodes that take no jobs, for one reason.

    Attributes:
        count: How many they are.
        state: Such as ``drained``.
        since: ISO 8601 in UTC without a zone, or a word of Slurm's for none.
        nodes: Such as ``trn1-dy-trn1-32xl-[1-3,7]``, truncated after 120 characters.
        reason: On one line, truncated after 120 bytes.
    """

    count: int
    state: str
    since: str
    nodes: str
    reason: str


@dataclass(frozen=True)
class Job:
    """A job that waits or runs, in the words of squeue.

    Attributes:
        number: Its number.
        user: Whose it is.
        queue: Several with commas.
        state: Such as RUNNING.
        nodes: How many it has or wants.
        elapsed: How long it has run.
        reason: Why it waits; the word ``None``: it does not.
        name: On one line, truncated after 40 bytes.
    """

    number: int
    user: str
    queue: str
    state: str
    nodes: int
    elapsed: str
    reason: str
    name: str


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
        nodes: Numbers of nodes by state, by queue. Nodes that could be used but are off, on their way or silent are
            ``power saving``, ``powering up``, ``powering down`` and ``not responding``; the other states are Slurm's,
            such as ``idle`` and ``drained``.
        availability: Whether a queue takes jobs: ``up``, ``down``, ``drain`` or ``inactive``, by queue. ParallelCluster
            makes those inactive that it protects, and all while the fleet is stopped.
        kinds: The nodes by queue, compute resource and whether they are static.
        problems: The first `PROBLEMS_LISTED` groups of nodes that take no jobs.
        counts: Numbers of jobs by state; each task of an array is one.
        queue_counts: The same by queue; a job that waits in several counts in each.
        jobs: The first `JOBS_LISTED` of those that wait or run; an array that waits is one.
    """

    nodes: Mapping[str, Mapping[str, int]]
    availability: Mapping[str, str]
    kinds: tuple[NodeKind, ...]
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    queue_counts: Mapping[str, Mapping[str, int]]
    jobs: tuple[Job, ...]

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

    def active_in(self, queue: str) -> int:
        """Return how many jobs have nodes in a queue."""
        return _among(self.queue_counts.get(queue, {}), ACTIVE)

    def waiting_in(self, queue: str) -> int:
        """Return how many jobs wait for nodes in a queue."""
        return _among(self.queue_counts.get(queue, {}), WAITING)


def parse(text: str) -> SlurmState:
    """Return what `SCRIPT` printed.

    Raises:
        SlurmError: It did not come to its end, or something else was printed.
    """
    sections = dict(re.findall(r"^# (\w+)\n((?: .*\n?)*)", text, re.MULTILINE))
    if sections.keys() != {"queues", "nodes", "problems", "counts", "jobs", "end"}:
        raise SlurmError(text)
    lines = {name: re.sub(r"^ ", "", body, flags=re.MULTILINE) for name, body in sections.items()}
    availability = {row[0]: row[1] for row in _matches(_QUEUE, lines["queues"])}
    nodes: dict[str, Counter[str]] = {queue: Counter() for queue in availability}
    kinds: dict[tuple[str, str, bool], Counter[str]] = {}
    for count, queue, name, written in _matches(_NODES, lines["nodes"]):
        state = _state(written)
        nodes.setdefault(queue, Counter())[state] += int(count)
        life, _, compute_resource = name.removeprefix(f"{queue}-").partition("-")
        kinds.setdefault((queue, compute_resource, life == "st"), Counter())[state] += int(count)
    counts: Counter[str] = Counter()
    queue_counts: dict[str, Counter[str]] = {}
    for count, queues, state in _matches(_COUNT, lines["counts"]):
        counts[state] += int(count)
        for queue in queues.split(","):
            queue_counts.setdefault(queue, Counter())[state] += int(count)
    return SlurmState(
        nodes,
        availability,
        tuple(NodeKind(*key, states.total(), _among(states, _USABLE)) for key, states in sorted(kinds.items())),
        tuple(Problem(int(count), *rest) for count, *rest in _records(_PROBLEM, lines["problems"])),
        counts,
        queue_counts,
        tuple(
            Job(int(number), user, queue, state, int(count), *rest)
            for number, user, queue, state, count, *rest in _records(_JOB, lines["jobs"])
        ),
    )


def _matches(pattern: re.Pattern[str], lines: str) -> list[tuple[str, ...]]:
    matches = [pattern.fullmatch(line) for line in lines.splitlines() if line]
    if None in matches:
        raise SlurmError(lines)
    return [match.groups() for match in matches if match]


def _records(start: re.Pattern[str], lines: str) -> list[list[str]]:
    """Return the fields of records, with single spaces for all white space."""
    matches = list(start.finditer(lines))
    ends = [*(match.start() for match in matches), len(lines)][1:]
    rows = [[*match.groups(), lines[match.end() : end]] for match, end in zip(matches, ends, strict=True)]
    return [[" ".join(field.split()) for field in row] for row in rows]


def _state(written: str) -> str:
    """Return a state without flags, or what they say; a node that is off and that a job has is to be switched on."""
    state = written.rstrip("~#!%$@^*-+")
    flag = written[len(state) : len(state) + 1]
    if state not in _USABLE or flag not in _FLAGS:
        return state
    return "powering up" if flag == "~" and state != "idle" else _FLAGS[flag]


def _among(counts: Mapping[str, int], states: frozenset[str]) -> int:
    return sum(count for state, count in counts.items() if state in states)
