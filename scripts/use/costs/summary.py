"""Adds up Slurm's accounting on the head node, which gets this program as text: of the standard library, Python 3.9.

Arguments: since, until (seconds since 1970), what is added up (user, account, queue or job), characters of an answer,
and the clusters before this one in JSON: first and last number of their jobs, when their last nodes ended (or null).
It prints the length of its result, the file that has all of it if an answer has not, and the result or its start:
Base64 of gzip of JSON.

Where jobs need no account, users call theirs what they like. So a random mark follows each field of sacct, and a record
is so many marks, not a line. A record that cannot be read is counted.

Every run of a job counts: sacct shows only the newest of a requeued one without --duplicates. Times are cut to the
window by --truncate, which also corrects ElapsedRaw. https://slurm.schedmd.com/sacct.html
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

FIELDS = (
    "JobIDRaw",
    "User",
    "Account",
    "Partition",
    "Start",
    "AllocNodes",
    "AllocCPUS",
    "ElapsedRaw",
    "NodeList",
    "State",
)
ENVIRONMENT = {"PATH": "/opt/slurm/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
OPEN = ("RUNNING", "SUSPENDED")
"""States of a run that has no end in the accounting; of an earlier cluster, that of one whose head node was lost."""
LOST = "CANCELLED"
"""The state that such runs get when Slurm's controller starts without a state, as on a new head node, which is also
their end then; a person's "CANCELLED by 1000" differs (SchedMD/slurm, read_config.c _acct_restore_active_jobs)."""
BY = {"user": 1, "account": 2, "queue": 3}


class Run(NamedTuple):
    """A run of a job.

    Attributes:
        job: Number of the job.
        whose: That number, user, account and queue, each on one line.
        start: When it started, in seconds since 1970; None: it did not.
        nodes: How many nodes it had.
        cpus: How many CPUs.
        seconds: How long.
        kinds: How many nodes of each kind.
        state: In Slurm's words.
    """

    job: int
    whose: tuple[str, ...]
    start: int | None
    nodes: int
    cpus: int
    seconds: int
    kinds: Mapping[str, int]
    state: str


def run(*command: str) -> subprocess.Popen[str]:
    """Start one of Slurm's programs, and return it."""
    environment = {**ENVIRONMENT, "PATH": ENVIRONMENT["PATH"] + ":" + os.environ.get("PATH", "")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace", env=environment)


def accounting(since: int, until: int, mark: str) -> subprocess.Popen[str]:
    """Start sacct, and return it: for each run its fields, each with a mark behind it, and the end of a line.

    Arguments of a process are public. Who reads the mark there in time can make the record of an own job unreadable,
    and forge none: an account has 255 bytes in Slurm's database, fewer than the marks that would be missing.
    """
    start, end = (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(each)) for each in (since, until))
    options = (f"--delimiter={mark}", "-aXDpnT", "--noconvert", "-S", start, "-E", end, "-o", ",".join(FIELDS))
    return run("sacct", *options)


def records(lines: Iterable[str], mark: str) -> Iterator[list[str]]:
    """Yield the fields of each run that sacct printed, and what is left if it did not print all of the last one."""
    parts: list[str] = []
    marks = 0
    for line in lines:
        parts.append(line)
        marks += line.count(mark)
        if marks >= len(FIELDS):
            yield "".join(parts).split(mark)[:-1]
            parts, marks = [], 0
    if parts:
        yield parts


@lru_cache(maxsize=4096)
def kinds(nodes: str) -> dict[str, int]:
    """Return how many nodes of each kind a list such as ``a-dy-b-[1-3,7],a-st-b-1`` has, by name without number."""
    counts: dict[str, int] = defaultdict(int)
    for name, numbers in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?", nodes):
        if not numbers:
            counts[name.rpartition("-")[0]] += 1
            continue
        for first, _, last in (each.partition("-") for each in numbers.split(",")):
            counts[name.rstrip("-")] += int(last or first) - int(first) + 1
    return dict(counts)


@lru_cache(maxsize=4096)
def on_one_line(name: str) -> str:
    """Return a name without line ends, and without blanks at its ends."""
    return " ".join(name.split())


def read(fields: Sequence[str]) -> Run:
    """Return a run as sacct printed it.

    Raises:
        ValueError: These are not its fields.
    """
    job, user, account, queue, start, nodes, cpus, seconds, names, state = fields
    whose = (job, on_one_line(user), on_one_line(account), on_one_line(queue))
    started = int(start) if start.isdigit() else None
    return Run(int(job), whose, started, int(nodes), int(cpus), int(seconds), kinds(names), state)


def summarize(
    printed: Iterable[Sequence[str]],
    by: str,
    cpus: Mapping[str, int],
    shared: Container[str],
    before: Sequence[tuple[int, int, int | None]] = (),
) -> dict[str, Any]:
    """Return the sums. A run that was lost with its head node ends with the last nodes of its cluster.

    One without an end is not counted if it is not known when those ended.

    Args:
        printed: The fields of each run that sacct printed.
        by: Key of `BY`, or job.
        cpus: CPUs of a node, by its name without number.
        shared: Queues whose nodes several jobs may share: there a job has the share of its CPUs.
        before: The clusters before this one: first and last number of a job, when the last nodes ended.
    """
    sums: dict[tuple[tuple[str, ...], str], float] = defaultdict(int)
    runs: dict[tuple[str, ...], int] = defaultdict(int)
    jobs: dict[tuple[str, ...], set[int]] = defaultdict(set)
    queues: set[str] = set()
    first: int | None = None
    cut = unknown = unreadable = 0
    for fields in printed:
        try:
            run = read(fields)
        except ValueError:
            unreadable += 1
            continue
        seconds, queue = run.seconds, run.whose[BY["queue"]]
        if run.nodes and run.start is not None and run.state in (*OPEN, LOST):
            for lowest, highest, end in before:
                if not lowest <= run.job <= highest:
                    continue
                if end is None:
                    unknown += run.state in OPEN
                    seconds = 0 if run.state in OPEN else seconds
                elif seconds > end - run.start:
                    cut += 1
                    seconds = max(0, end - run.start)
        if not seconds or not run.nodes:
            continue
        key = run.whose if by == "job" else (run.whose[BY[by]],)
        of_kind = run.kinds if sum(run.kinds.values()) == run.nodes else {"": run.nodes}
        share: float = 1
        if queue in shared:
            total = sum(count * cpus.get(kind, 0) for kind, count in of_kind.items())
            share = min(1, run.cpus / total) if total else 1
        for kind, count in of_kind.items():
            sums[key, kind] += count * seconds * share
        queues.add(queue)
        runs[key] += 1
        jobs[key].add(run.job)
        if run.start is not None:
            first = min(first or run.start, run.start)
    return {
        "sums": [[*key, seconds] for key, seconds in sums.items()],
        "counts": [[key, len(jobs[key]), count] for key, count in runs.items()],
        "first": first,
        "queues": sorted(queues),
        "cut": cut,
        "unknown": unknown,
        "unreadable": unreadable,
    }


def shapes() -> tuple[dict[str, int], set[str]]:
    """Return the CPUs of nodes by name without number, and the queues whose nodes jobs may share."""
    cpus: dict[str, int] = {}
    shared: set[str] = set()
    for line in run("sinfo", "--all", "--Node", "--noheader", "--format=%N|%c").communicate()[0].splitlines():
        name, _, count = line.strip().partition("|")
        cpus[name.rpartition("-")[0]] = int(count)
    for line in run("scontrol", "--all", "--oneliner", "show", "partition").communicate()[0].splitlines():
        if "OverSubscribe=EXCLUSIVE" not in line:
            shared.update(re.findall(r"PartitionName=(\S+)", line))
    return cpus, shared


def main() -> None:
    """Print the result, or its start."""
    since, until, by, limit = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    before = json.loads(sys.argv[5])
    mark = secrets.token_hex(16)
    try:
        sacct = accounting(since, until, mark)
    except OSError as error:
        sys.exit(f"there is no sacct: {error}")
    result = summarize(records(sacct.stdout or (), mark), by, *shapes(), before)
    if sacct.wait():
        sys.exit(sacct.returncode)
    text = base64.b64encode(gzip.compress(json.dumps(result, separators=(",", ":")).encode(), 6)).decode()
    path = ""
    if len(text) > limit:
        file, path = tempfile.mkstemp(prefix="ultracluster-costs-", dir=os.environ.get("TMPDIR"))
        with os.fdopen(file, "w") as whole:
            whole.write(text)
    print(len(text), path)
    print(text[:limit])


if __name__ == "__main__":
    main()
