"""What Slurm says of nodes and jobs, asked on the head node in one command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

JOBS_LISTED = 100
SCRIPT = f"""\
export PATH=/opt/slurm/bin:$PATH LC_ALL=C SLURM_TIME_FORMAT=standard
set -e
echo '# nodes'
sinfo --noheader --format='%R|%T|%D'
echo '# problems'
sinfo --noheader --list-reasons --format='%N|%T|%H|%E'
echo '# counts'
squeue --noheader --states=all --format='%T' | sort | uniq --count
echo '# jobs'
squeue --noheader --format='%A|%u|%P|%T|%D|%M|%r|%j' | head --lines={JOBS_LISTED}
echo '# end'
"""
"""For a shell on the head node; `parse` reads what it prints.

https://slurm.schedmd.com/sinfo.html, https://slurm.schedmd.com/squeue.html
"""
ACTIVE = frozenset({"COMPLETING", "CONFIGURING", "RESIZING", "RUNNING", "STAGE_OUT", "STOPPED", "SUSPENDED"})
"""States of jobs that have nodes (https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES)."""
_FLAGS = {"~": "power saving", "#": "powering up", "%": "powering down", "!": "powering down", "*": "not responding"}
"""What the character after a node's state means, for those that are more than the state."""


class SlurmError(ValueError):
    """What the head node printed is not what Slurm's programs print; the message is what it printed."""


@dataclass(frozen=True)
class Problem:
    """Nodes that take no jobs, for one reason.

    Attributes:
        nodes: Their names, as Slurm folds them: ``trn1-dy-trn1-32xl-[1-3,7]``.
        state: Their state, such as ``drained``.
        since: When it was set, ISO 8601 without a zone: the head node's clock.
        reason: Why.
    """

    nodes: str
    state: str
    since: str
    reason: str


@dataclass(frozen=True)
class Job:
    """A job that waits or runs.

    Attributes:
        number: Its number.
        user: Whose it is.
        queue: Where it waits or runs.
        state: As Slurm has it, such as RUNNING.
        nodes: How many it has or wants.
        elapsed: How long it has run, as Slurm writes it.
        reason: Why it waits; ``None``: it does not.
        name: Its name.
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
class SlurmState:
    """Nodes and jobs of a cluster.

    Attributes:
        nodes: Numbers of nodes by state, by queue. Nodes that are off or on their way are ``power saving``,
            ``powering up`` and ``powering down``; the other states are Slurm's, such as ``idle`` and ``drained``.
        problems: Nodes that take no jobs.
        counts: Numbers of jobs by state.
        jobs: The first `JOBS_LISTED` of them.
    """

    nodes: Mapping[str, Mapping[str, int]]
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    jobs: tuple[Job, ...]

    @property
    def active_jobs(self) -> int:
        """How many jobs have nodes."""
        return sum(count for state, count in self.counts.items() if state in ACTIVE)


def parse(text: str) -> SlurmState:
    """Return what `SCRIPT` printed.

    Raises:
        SlurmError: It did not come to its end, or something else was printed.
    """
    sections = dict(re.findall(r"^# (\w+)\n((?:(?!# ).*\n?)*)", text, re.MULTILINE))
    if "end" not in sections:
        raise SlurmError(text)
    lines = {name: body.splitlines() for name, body in sections.items()}
    try:
        nodes: dict[str, Counter[str]] = {}
        for line in lines["nodes"]:
            queue, state, count = line.split("|")
            nodes.setdefault(queue, Counter())[_state(state)] += int(count)
        return SlurmState(
            nodes,
            tuple(Problem(*line.split("|", 3)) for line in lines["problems"]),
            {state: int(count) for count, state in (line.split() for line in lines["counts"])},
            tuple(_job(line) for line in lines["jobs"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SlurmError(text) from error


def _state(written: str) -> str:
    state = written.rstrip("~#!%$@^*-+")
    return _FLAGS.get(written[len(state) : len(state) + 1], state) if state in ("idle", "allocated") else state


def _job(line: str) -> Job:
    number, user, queue, state, nodes, elapsed, reason, name = line.split("|", 7)
    return Job(int(number), user, queue, state, int(nodes), elapsed, reason, name)
