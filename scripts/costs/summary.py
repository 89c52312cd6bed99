"""Adds up Slurm's accounting on the head node, which gets this program as text: of the standard library, Python 3.9.

Arguments: since, until (seconds since 1970), what is added up (user, account, queue or job), characters of an answer.
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
from functools import lru_cache

FIELDS = "JobIDRaw,User,Account,Partition,Start,AllocNodes,AllocCPUS,ElapsedRaw,NodeList"
ENVIRONMENT = {"PATH": "/opt/slurm/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
BY = {"user": 1, "account": 2, "queue": 3}


def run(*command):
    """Start one of Slurm's programs, and return it."""
    environment = {**ENVIRONMENT, "PATH": ENVIRONMENT["PATH"] + ":" + os.environ.get("PATH", "")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def accounting(since, until):
    """Start sacct, and return it: a line for each run."""
    start, end = (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(each)) for each in (since, until))
    return run("sacct", "-aXDPnT", "--noconvert", "-S", start, "-E", end, "-o", FIELDS)


@lru_cache(maxsize=4096)
def kinds(nodes):
    """Return how many nodes of each kind a list such as ``a-dy-b-[1-3,7],a-st-b-1`` has, by name without number."""
    counts = defaultdict(int)
    for name, numbers in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?", nodes):
        if not numbers:
            counts[name.rpartition("-")[0]] += 1
            continue
        for first, _, last in (each.partition("-") for each in numbers.split(",")):
            counts[name.rstrip("-")] += int(last or first) - int(first) + 1
    return dict(counts)


def summarize(lines, by, cpus, shared):
    """Return the sums.

    Args:
        lines: What sacct printed.
        by: Key of `BY`, or job.
        cpus: CPUs of a node, by its name without number.
        shared: Queues whose nodes several jobs may share: there a job has the share of its CPUs.
    """
    sums, runs, jobs, first = defaultdict(int), defaultdict(int), defaultdict(set), None
    for line in lines:
        row = line.rstrip("\n").split("|")
        job, user, account, queue, start, nodes, used, elapsed, names = row
        seconds, nodes = int(elapsed), int(nodes)
        if not seconds or not nodes:
            continue
        key = "|".join(row[:4]) if by == "job" else row[BY[by]]
        of_kind = kinds(names)
        if sum(of_kind.values()) != nodes:
            of_kind = {"": nodes}
        share = 1
        if queue in shared:
            total = sum(count * cpus.get(kind, 0) for kind, count in of_kind.items())
            share = min(1, int(used) / total) if total else 1
        for kind, count in of_kind.items():
            sums[key, kind] += count * seconds * share
        runs[key] += 1
        jobs[key].add(job)
        if start.isdigit():
            first = min(first or int(start), int(start))
    counts = {key: [len(jobs[key]), count] for key, count in runs.items()}
    return {"sums": [[*key, seconds] for key, seconds in sums.items()], "counts": counts, "first": first}


def shapes():
    """Return the CPUs of nodes by name without number, and the queues whose nodes jobs may share."""
    cpus, shared = {}, set()
    for line in run("sinfo", "--all", "--Node", "--noheader", "--format=%N|%c").stdout:
        name, _, count = line.strip().partition("|")
        cpus[name.rpartition("-")[0]] = int(count)
    for line in run("scontrol", "--all", "--oneliner", "show", "partition").stdout:
        if "OverSubscribe=EXCLUSIVE" not in line:
            shared.update(re.findall(r"PartitionName=(\S+)", line))
    return cpus, shared


def main():
    """Print the result, or its start."""
    since, until, by, limit = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    try:
        sacct = accounting(since, until)
    except OSError as error:
        sys.exit(f"there is no sacct: {error}")
    result = summarize(sacct.stdout, by, *shapes())
    if sacct.wait():
        sys.exit(sacct.returncode)
    text = base64.b64encode(gzip.compress(json.dumps(result, separators=(",", ":")).encode(), 6)).decode()
    path = ""
    if len(text) > limit:
        file, path = tempfile.mkstemp(prefix="ultracluster-costs-", dir=os.environ.get("TMPDIR", "/var/tmp"))
        with os.fdopen(file, "w") as whole:
            whole.write(text)
    print(len(text), path)
    print(text[:limit])


if __name__ == "__main__":
    main()
