"""Print queues, nodes and jobs as Slurm knows them, as JSON, on the head node as root."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from scripts.account.remote.programs.asking import ACTIVE, ENVIRONMENT, WAITING, call, cut, dumped, records
from scripts.account.remote.programs.node_states import condition, marked, takes_jobs

JOBS_LISTED = 40
PROBLEMS_LISTED = 25
REASONS_LISTED = 10
LARGEST_STATE = 18_000
"""Characters of what `state` prints: an answer of Systems Manager has 24,000, with the software of jobs beside it."""
_JOB_FIELDS = ("%A", "%u", "%P", "%T", "%D", "%M", "%60r", "%40j", "%F", "%K", "%l", "%60N", "%i")
_JOB_WIDTHS = (12, 64, 60, 20, 12, 20, 60, 40, 12, 70, 20, 60, 80)
_PROBLEM_WIDTHS = (25, 120, 120)
_NODES = "--Format=PartitionName:256,NodeList:256,StateComplete:512"
_ACCOUNTING_SECONDS = 3


def fold(names: Iterable[str]) -> str:
    """Return names of nodes as Slurm writes them, such as ``trn1-dy-trn1-32xl-[1-3,7],login``."""
    numbers: dict[str, list[int]] = {}
    others = []
    for name in names:
        start, _, number = name.rpartition("-")
        if re.fullmatch("0|[1-9][0-9]*", number):
            numbers.setdefault(start, []).append(int(number))
        else:
            others.append(name)
    folded = []
    for start, listed in numbers.items():
        ranges: list[list[int]] = []
        for each in sorted(listed):
            if ranges and each == ranges[-1][1] + 1:
                ranges[-1][1] = each
            else:
                ranges.append([each, each])
        text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
        folded.append(f"{start}-[{text}]" if len(listed) > 1 else f"{start}-{text}")
    return ",".join([*folded, *others])


def unfold(folded: str) -> list[str]:
    """Return the names that `fold` makes such text of."""
    names = []
    for start, listed, single in re.findall(r"([^,\[\]\s]+)\[([^\]]+)\]|([^,\[\]\s]+)", folded):
        for piece in listed.split(",") if listed else ():
            first, _, last = piece.partition("-")
            names += [f"{start}{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1)]
        names += [single] if single else []
    return names


def out(nodes: Sequence[Sequence[str]]) -> list[list[Any]]:
    """Return the nodes that take no jobs: how many, what they are, since when, which, why, queue; most first.

    Those of a queue that are out for one reason are together, since the first of them.
    """
    rows = [(queue, name, marked(condition(written), written)) for queue, name, written in nodes]
    names = {name for _, name, called in rows if not takes_jobs(called)}
    if not names:
        return []
    reasons = {
        name: (since.strip(), " ".join(reason.split()))
        for folded, since, reason in records(("%N", "%H", "%E"), "sinfo", "--noheader")
        for name in unfold(folded)
        if name in names
    }
    groups: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for queue, name, called in rows:
        if name in names:
            since, reason = reasons.get(name, ("Unknown", "none"))
            groups.setdefault((queue, called, reason), []).append((since, name))
    listed = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [
        [len(of_group), called, *cut((min(of_group)[0], fold(n for _, n in of_group), reason), _PROBLEM_WIDTHS), queue]
        for (queue, called, reason), of_group in listed
    ]


def accounting() -> str | None:
    """Return why the accounting database cannot be asked; empty: it can; None: there is none.

    A query says more than ``sacctmgr ping``, which slurmdbd answers without its database.
    """
    if not re.search(r"^AccountingStorageType\s*=.*slurmdbd$", call(("scontrol", "show", "config")), re.MULTILINE):
        return None
    query = ("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
    try:
        done = subprocess.run(query, env=ENVIRONMENT, capture_output=True, check=False, timeout=_ACCOUNTING_SECONDS)
    except subprocess.TimeoutExpired:
        return f"sacctmgr had no answer within {_ACCOUNTING_SECONDS} s"
    except OSError as error:
        return f"sacctmgr: {error.strerror}"
    if not done.returncode:
        return ""
    said = " ".join(done.stderr.decode(errors="replace").split())
    return cut((said or f"sacctmgr: exit code {done.returncode}",), (200,))[0]


def state() -> dict[str, Any]:
    """Return queues, nodes by kind and state, nodes that take no jobs, jobs, and whether accounting answers.

    Nodes of a kind have one name but for the number. Jobs that have nodes come first; where all would not fit, the last
    jobs are left out, and then nodes that take no jobs. A job that waits in several queues counts in each. Why jobs
    wait is told of all: each reason with how many jobs have it and the first of these, most first.
    """
    started = time.monotonic()
    squeue = ("squeue", "--noheader")
    nodes: dict[str, dict[str, Counter[str]]] = {}
    lines = call(("sinfo", "--noheader", "--Node", _NODES)).splitlines()  # none of these is chosen by users
    listed_nodes = [line.split() for line in lines if line.strip()]
    for queue, name, written in listed_nodes:
        kind = name.rpartition("-")[0]
        kind = kind[len(queue) + 1 :] if kind.startswith(f"{queue}-") else kind
        of_all = written.replace("+cloud", "")
        nodes.setdefault(queue, {}).setdefault(kind, Counter())[of_all] += 1
    counts: Counter[str] = Counter()
    queue_counts: dict[str, Counter[str]] = {}
    wanted: dict[str, int] = {}
    waits: dict[str, list[Any]] = {}
    fields = ("%P", "%T", "%D", "%60r", "%i")
    for queues, written, size, reason, number in records(fields, *squeue, "--array", "--states=all"):
        counts[written.strip()] += 1
        if written.strip() in WAITING:
            of_reason = waits.setdefault(cut((reason,), (60,))[0], [0, number.strip()])
            of_reason[0] += 1
        for queue in map(str.strip, queues.split(",")):
            queue_counts.setdefault(queue, Counter())[written.strip()] += 1
            if written.strip() == "PENDING" and size.strip().isdigit():
                wanted[queue] = max(wanted.get(queue, 0), int(size))
    listed = [
        records(_JOB_FIELDS, *squeue, f"--states={states}", "--sort=-p,i") for states in (",".join(ACTIVE), "PENDING")
    ]
    problems = out(listed_nodes)
    answer: dict[str, Any] = {
        "queues": {queue: written.strip() for queue, written in records(("%R", "%a"), "sinfo", "--noheader")},
        "nodes": nodes,
        "problems": problems[:PROBLEMS_LISTED],
        "counts": counts,
        "queue_counts": queue_counts,
        "wanted": wanted,
        "waits": sorted(([reason, *each] for reason, each in waits.items()), key=lambda w: -w[1])[:REASONS_LISTED],
        "jobs": [cut(each, _JOB_WIDTHS) for each in list(chain(*listed))[:JOBS_LISTED]],
        "seconds": round(time.monotonic() - started, 1),
        "accounting": accounting(),
    }
    while len(dumped(answer)) > LARGEST_STATE and (answer["jobs"] or answer["problems"]):
        (answer["jobs"] or answer["problems"]).pop()
    return answer


if __name__ == "__main__":
    print(dumped({"state": state()}))
