"""Adds up Slurm's accounting on the head node, which gets this program as text: of the standard library, Python 3.9.

Arguments: since, until (seconds since 1970), what is added up (user, account, queue or job), characters of an answer,
and the clusters before this one in JSON: first and last number of their jobs, when their last nodes ended (or null).
It prints the length of its result, the file that has all of it if an answer has not, and the result or its start:
Base64 of gzip of JSON.

Every run of a job counts: sacct shows only the newest of a requeued one without --duplicates. Times are cut to the
window by --truncate, which also corrects ElapsedRaw. https://slurm.schedmd.com/sacct.html
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

FIELDS = "JobIDRaw,User,Account,Partition,Start,AllocNodes,AllocCPUS,ElapsedRaw,NodeList,State"
ENVIRONMENT = {"PATH": "/opt/slurm/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
OPEN = ("RUNNING", "SUSPENDED")
"""States of a run that has no end in the accounting; of an earlier cluster, that of one whose head node was lost."""
LOST = "CANCELLED"
"""The state that such runs get when Slurm's controller starts without a state, as on a new head node, which is also
their end then; a person's "CANCELLED by 1000" differs (SchedMD/slurm, read_config.c _acct_restore_active_jobs)."""
BY = {"user": 1, "account": 2, "queue": 3}


def run(*command: str) -> subprocess.Popen[str]:
    """Start one of Slurm's programs, and return it."""
    environment = {**ENVIRONMENT, "PATH": ENVIRONMENT["PATH"] + ":" + os.environ.get("PATH", "")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def accounting(since: int, until: int) -> subprocess.Popen[str]:
    """Start sacct, and return it: a line for each run."""
    start, end = (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(each)) for each in (since, until))
    return run("sacct", "-aXDPnT", "--noconvert", "-S", start, "-E", end, "-o", FIELDS)


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


def summarize(
    lines: Iterable[str],
    by: str,
    cpus: Mapping[str, int],
    shared: Container[str],
    before: Sequence[tuple[int, int, int | None]] = (),
) -> dict[str, Any]:
    """Return the sums. A run that was lost with its head node ends with the last nodes of its cluster.

    One without an end is not counted if it is not known when those ended.

    Args:
        lines: What sacct printed.
        by: Key of `BY`, or job.
        cpus: CPUs of a node, by its name without number.
        shared: Queues whose nodes several jobs may share: there a job has the share of its CPUs.
        before: The clusters before this one: first and last number of a job, when the last nodes ended.
    """
    sums: dict[tuple[str, str], float] = defaultdict(int)
    runs: dict[str, int] = defaultdict(int)
    jobs: dict[str, set[str]] = defaultdict(set)
    queues: set[str] = set()
    first: int | None = None
    cut = unknown = 0
    for line in lines:
        row = line.rstrip("\n").split("|")
        queue, start, names = row[3], row[4], row[8]
        nodes, used, seconds, state = int(row[5]), int(row[6]), int(row[7]), row[9]
        if nodes and start.isdigit() and state in (*OPEN, LOST):
            for lowest, highest, end in before:
                if not lowest <= int(row[0]) <= highest:
                    continue
                if end is None:
                    unknown += state in OPEN
                    seconds = 0 if state in OPEN else seconds
                elif seconds > end - int(start):
                    cut += 1
                    seconds = max(0, end - int(start))
        if not seconds or not nodes:
            continue
        key = "|".join(row[:4]) if by == "job" else row[BY[by]]
        of_kind = kinds(names)
        if sum(of_kind.values()) != nodes:
            of_kind = {"": nodes}
        share: float = 1
        if queue in shared:
            total = sum(count * cpus.get(kind, 0) for kind, count in of_kind.items())
            share = min(1, used / total) if total else 1
        for kind, count in of_kind.items():
            sums[key, kind] += count * seconds * share
        queues.add(queue)
        runs[key] += 1
        jobs[key].add(row[0])
        if start.isdigit():
            first = min(first or int(start), int(start))
    return {
        "sums": [[*key, seconds] for key, seconds in sums.items()],
        "counts": {key: [len(jobs[key]), count] for key, count in runs.items()},
        "first": first,
        "queues": sorted(queues),
        "cut": cut,
        "unknown": unknown,
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
    try:
        sacct = accounting(since, until)
    except OSError as error:
        sys.exit(f"there is no sacct: {error}")
    result = summarize(sacct.stdout or (), by, *shapes(), before)
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
