"""What keeps the jobs of a cluster from running, as its fleet, its Slurm and its head node say.

`status` and `diagnose` both read it here: one has sentences, the other causes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from scripts.account import compute_fleet
from scripts.account.remote.head_node import Answer
from scripts.account.slurm import COMMAND, Problem, SlurmError, SlurmState, parse
from scripts.core.figures import counted

KINDS = ("answer", "disk", "fleet", "accounting", "node")
"""Kinds of troubles, that which concerns most of the cluster first."""
FULL_PERCENT = 99
SECONDS_FOR_SLURM = 8
"""Slurm that has not answered by then is stuck: of 1,875 nodes it tells in less than a second."""
SLOW_SECONDS = 5
TRANSIENT = frozenset(
    {
        "Scheduler health check failed",
        "Static node maintenance: unhealthy node is being replaced",
        "inactive partition",
        "stopping cluster",
        "Node start up",
        "updating node state during cluster update",
    }
)
"""Reasons that ParallelCluster gives nodes which it replaces or starts; what led to that is in its logs.

Nothing but these words: a reason that somebody else gives a node may contain them.
clustermgtd.py and slurm_commands.py of aws-parallelcluster-node; finalize_compute.rb and update_head_node.rb of
aws-parallelcluster-cookbook.
"""
_DISK = re.compile(r"^ *(\d+)% (/\S*)$", re.MULTILINE)
_DF = re.compile(r"^(Use% .*| *\d+% /.*)$", re.MULTILINE)
_LOG = "/var/log/slurmctld.log"
"""ParallelCluster keeps the setting to itself (slurmctldlogfile)."""
_LAST_WORDS = (
    f"tail --lines=1000 {_LOG} | tac | sed '/Running as primary controller/q' | "
    r"sed --quiet 's/^.*\(\(error\|fatal\): .*\)$/\1/p' | sed 2q | tac | cut --characters=1-200 | "
    "paste --serial --delimiters=';' | sed 's/;/; /g'"
)
"""Prints the last two errors after the last start that succeeded."""


def script(seconds: int) -> str:
    """Return what the head node runs, as root, so that `read` reads what it prints; Slurm has so many seconds.

    Commands of Slurm keep trying for MessageTimeout, a minute, where nothing listens as where nothing answers. systemd
    knows which process is the controller's: anybody may have one of its name. One that fails at each start runs for a
    moment, again and again; one that hangs has run for as long as it was asked.
    """
    return f"""\
timeout 3 df --output=pcent,target / /home /tmp /var/log /var/spool/slurm.state 2>/dev/null
timeout --kill-after=1 {seconds} {shlex.join(COMMAND)}
case $? in
124 | 137)
    words=$({_LAST_WORDS})
    process=$(systemctl show --property=MainPID --value slurmctld)
    age=$(ps --format=etimes= --pid="$process" 2>/dev/null || echo 0)
    if [ "$age" -ge {seconds} ]; then
        echo "slurmctld runs, and gave no answer within {seconds} s" >&2
    elif [ -n "$words" ] || ! systemctl --quiet is-active slurmctld; then
        printf '%s\\n' "slurmctld does not run${{words:+. Its last words: $words}}" >&2
    else
        echo "slurmctld has just started, and gave no answer yet" >&2
    fi
    ;;
esac
"""


SCRIPT = script(SECONDS_FOR_SLURM)
"""`script` for one screen of everything."""
_REASONS_SHOWN = 2
_NEVER_STARTED = "off and not responding, so Slurm never starts it"


class Severity(IntEnum):
    """How much something keeps from running jobs, most first."""

    CLUSTER = 0
    QUEUE = 1
    JOBS = 2
    """A job that waits cannot start, smaller ones can."""
    NODES = 3


@dataclass(frozen=True)
class Trouble:
    """Something that keeps jobs from running.

    Attributes:
        kind: One of `KINDS`.
        severity: How much of the cluster it is about.
        sentence: What is so, with its share and its reasons.
        command: What says more, or helps.
        texts: The same by which causes are found, one for each reason.
    """

    kind: str
    severity: Severity
    sentence: str
    command: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """What the head node answers to `SCRIPT`.

    Attributes:
        slurm: What Slurm says; a text: the words in which it does not.
        disks: How many percent of its disks are full, by folder; empty: not known.
    """

    slurm: SlurmState | str
    disks: Mapping[str, int]


def read(answer: Answer) -> Told:
    """Return what an answer to `SCRIPT` says."""
    disks = {folder: int(percent) for percent, folder in _DISK.findall(answer.output)}
    try:
        return Told(parse(_DF.sub("", answer.output), answer.errors), disks)
    except SlurmError as error:
        return Told(str(error), disks)


def troubles(
    deployment: str, fleet: str | None, slurm: SlurmState | str | None, disks: Mapping[str, int]
) -> Iterator[Trouble]:
    """Yield what keeps jobs from running, by `KINDS`.

    Args:
        deployment: Its name, for commands.
        fleet: The fleet's status; None: not known.
        slurm: What Slurm says; a text: the words in which it does not; None: nobody could ask.
        disks: How many percent of the head node's disks are full, by folder.
    """
    diagnose = f"./ultracluster diagnose {deployment}"
    if isinstance(slurm, str):
        text = f"Slurm on the head node does not answer: {slurm}"
        yield Trouble("answer", Severity.CLUSTER, text, diagnose, (text,))
    elif slurm and slurm.seconds >= SLOW_SECONDS:
        text = f"Slurm on the head node took {slurm.seconds:.0f} s to answer"
        yield Trouble("answer", Severity.JOBS, text, diagnose, (text,))
    for folder, percent in disks.items():
        if percent >= FULL_PERCENT:
            text = f"The disk of {folder} on the head node is {percent} % full"
            yield Trouble("disk", Severity.CLUSTER, text, diagnose, (text,))
    state = slurm if isinstance(slurm, SlurmState) else None
    yield from _of_fleet(deployment, fleet, state)
    if state is None:
        return
    if state.accounting:
        text = f"Slurm's accounting does not answer: {state.accounting}"
        yield Trouble("accounting", Severity.JOBS, text, diagnose, (text,))
    is_nothing_left = all(sum(nodes.values()) == state.out_in(queue) for queue, nodes in state.nodes.items())
    for queue in dict.fromkeys([*state.nodes, *(each.queue for each in state.problems)]):
        yield from _of_nodes(queue, state, diagnose, is_nothing_left=is_nothing_left)
        yield from _of_reservations(queue, state, diagnose)


def _of_fleet(deployment: str, fleet: str | None, slurm: SlurmState | None) -> Iterator[Trouble]:
    diagnose = f"./ultracluster diagnose {deployment}"
    closed = {queue: each for queue, each in (slurm.availability if slurm else {}).items() if each != "up"}
    scope = Severity.CLUSTER if slurm and len(closed) == len(slurm.availability) else Severity.QUEUE
    if fleet == compute_fleet.PROTECTED:
        text = f"The compute fleet is {fleet}"
        which = f" ({', '.join(closed)})" if closed else ""
        sentence = f"the fleet is {fleet}: queues are closed whose nodes kept failing{which}"
        yield Trouble("fleet", scope, sentence, diagnose, (text,))
    elif fleet in compute_fleet.STOP_STATUSES and slurm and slurm.waiting_jobs:
        text = f"The compute fleet is {fleet}, and {jobs_wait(slurm.waiting_jobs)}"
        sentence = f"The compute fleet is {fleet}{_waiting(slurm.waiting_jobs)}"
        yield Trouble("fleet", Severity.CLUSTER, sentence, f"./ultracluster fleet start {deployment}", (text,))
    elif slurm and fleet in (compute_fleet.RUNNING, None):
        for queue, availability in closed.items():
            text = f"The queue {queue} takes no jobs: Slurm has it {availability}"
            sentence = f"{text}{_waiting(slurm.waiting_in(queue))}"
            yield Trouble("fleet", scope, sentence, diagnose, (text,))


def _of_nodes(queue: str, slurm: SlurmState, command: str, *, is_nothing_left: bool) -> Iterator[Trouble]:
    """Yield that nodes of a queue take no jobs, unless ParallelCluster is at it."""
    of_queue = [each for each in slurm.problems if each.queue == queue]
    is_starting = bool(slurm.queue_counts.get(queue, {}).get("CONFIGURING"))
    lasting = [each for each in of_queue if not _passes(each, is_starting=is_starting)]
    replaced = sum(each.count for each in of_queue if each not in lasting)
    out = max(slurm.out_in(queue) - replaced, sum(each.count for each in lasting))
    if out <= 0:
        return
    total = max(sum(slurm.nodes.get(queue, {}).values()), out)
    left, wanted = total - slurm.out_in(queue), slurm.wanted.get(queue, 0)
    if left <= 0:
        severity = Severity.CLUSTER if is_nothing_left else Severity.QUEUE
        sentence = f"no node of queue {queue} takes jobs{_waiting(slurm.waiting_in(queue))}"
    else:
        severity = Severity.JOBS if wanted > left else Severity.NODES
        sentence = f"{out:,} of {total:,} nodes of queue {queue} take{'s' if out == 1 else ''} no jobs"
        sentence += f" ({out / total:.0%})" if total > out else ""
        sentence += f", and a job that wants {wanted:,} waits" if wanted > left else ""
    if lasting:
        sentence += f": {_reasons(lasting)}"
    yield Trouble("node", severity, sentence, command, tuple(map(_text, lasting)))


def _passes(problem: Problem, *, is_starting: bool) -> bool:
    """Tell whether nodes are being replaced, or may be starting for a job of their queue.

    Those that start do not respond for a moment; to those that never do Slurm gives a reason after SlurmdTimeout.
    https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmdTimeout
    """
    is_silent = (problem.state, problem.reason) == ("not responding", "none")
    return problem.reason in TRANSIENT or (is_silent and is_starting)


def _of_reservations(queue: str, slurm: SlurmState, command: str) -> Iterator[Trouble]:
    """Yield that a job waits which only nodes could run that a reservation keeps; others are no trouble."""
    kept, wanted = slurm.reserved_in(queue), slurm.wanted.get(queue, 0)
    total = sum(slurm.nodes.get(queue, {}).values())
    left = total - slurm.out_in(queue) - kept
    if kept and left < wanted <= left + kept:
        text = f"{kept:,} of {total:,} nodes of queue {queue} are reserved, and a job that wants {wanted:,} waits"
        yield Trouble("node", Severity.JOBS, text, command, (text,))


def _waiting(jobs: int) -> str:
    return f", and {jobs_wait(jobs)}" if jobs else ""


def jobs_wait(jobs: int) -> str:
    """Return that so many jobs wait: ``1 job waits``, ``2 jobs wait``."""
    return f"{counted(jobs, 'jobs')} {'waits' if jobs == 1 else 'wait'}"


def _reasons(problems: Sequence[Problem]) -> str:
    shown = [f"{each.count:,} {each.state.rstrip('~*')} ({_reason(each)})" for each in problems[:_REASONS_SHOWN]]
    others = sum(each.count for each in problems[_REASONS_SHOWN:])
    return ", ".join(shown) + (f" and {others:,} for other reasons" if others else "")


def _reason(problem: Problem) -> str:
    if problem.state == "stuck off":
        return _NEVER_STARTED
    return "Slurm has no reason" if problem.reason == "none" else problem.reason


def _text(problem: Problem) -> str:
    since = f"{problem.count:,} {problem.state} since {problem.since}"
    return f"{since}: node {problem.nodes} reason set to: {_reason(problem)}"
