"""Print jobs as Slurm knows them, or cancel them, on the head node as root; what is printed is JSON.

jobs.py ended SECONDS MOST [HOW] the newest jobs that ended in so many seconds before now; HOW is `controller`:
accounting is not asked
jobs.py chosen HOW JOB...       jobs by number; HOW is `tasks`, or `arrays`: the number of an array is all its tasks
jobs.py cancel HOW JOB...       the same, cancelled if each of them is one that could be
jobs.py job JOB NODES           a job by number, as 12_3 of an array, or the newest of a name; so many of its nodes
jobs.py of USER...              how many jobs of users wait and have nodes, and the first of them
jobs.py addresses NODE...       addresses of nodes by their names
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripts.account.remote.programs.asking import (
    ACTIVE,
    ENDED,
    ENVIRONMENT,
    WAITING,
    accounted,
    call,
    cut,
    dumped,
    moment,
    records,
)
from scripts.account.remote.programs.job_facts import (
    by_state,
    condensed,
    described,
    details,
    in_common,
    is_of,
    names_of,
    of_accounting,
)

JOBS_OF_USER = 10
SECONDS_TO_CANCEL = 10.0
"""How long Slurm may take to cancel what it has been told to."""
LARGEST_LIST = 20_000
"""Characters of what `ended` prints."""
_ENDED_FIELDS = ("JobIDRaw", "User", "Partition", "State", "NNodes", "Elapsed", "JobName", "JobID", "Timelimit",
                 "NodeList", "ExitCode", "Start", "End")  # fmt: skip
_ENDED_WIDTHS = (12, 64, 60, 40, 12, 20, 40, 80, 20, 60, 12, 20, 20)
_TASK_FIELDS = ("%A", "%F", "%K", "%T", "%u", "%40j", "%i")
_LIVE = {*ACTIVE, *WAITING} - {"COMPLETING"}
"""States of jobs that can be cancelled."""


def ended(seconds: int, most: int, how: str = "") -> dict[str, Any]:
    """Return the newest jobs that ended in so many seconds, by accounting or, without, as long as Slurm knows them.

    How ``controller``: accounting is not asked. Where it hangs, sacct waits for minutes.
    """
    window = (f"--starttime=now-{seconds}seconds", "--endtime=now", f"--state={','.join(ENDED)}")
    rows = None if how == "controller" else accounted(_ENDED_FIELDS, *window)
    is_whole = rows is not None
    if rows is None:
        rows = list(_remembered(most))
    rows.sort(key=lambda row: (row[-1], int(row[0])), reverse=True)
    shown = [cut(each, _ENDED_WIDTHS) for each in rows[:most]]
    while len(dumped(shown)) > LARGEST_LIST:
        shown.pop()
    return {"accounting": is_whole, "total": len(rows), "jobs": shown}


def _remembered(most: int) -> Iterator[list[str]]:
    """Yield the jobs that have ended and that the controller has not forgotten, as `accounted` has them."""
    states = f"--states={','.join(ENDED)}"
    for number in call(("squeue", "--noheader", states, "--sort=-e", "--format=%A")).split()[:most]:
        for known in [each for each in described(number) or () if str(each["job_id"]) == number][:1]:
            facts = details(known)
            yield [
                number, facts["user"], facts["queue"], facts["state"], str(facts["node_count"]), facts["elapsed"],
                facts["name"], facts["id"], facts["time_limit"], facts["nodes"], facts["exit_code"],
                moment(facts["started"]), moment(facts["ended"]),
            ]  # fmt: skip


def ranges(tasks: str) -> list[range]:
    """Return the numbers of an expression such as ``1-3,7,10-20:5``, as Slurm has them (sbatch --array)."""
    found = []
    for part in tasks.partition("%")[0].split(","):
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        found.append(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def tasks_of_all() -> dict[tuple[str, str], list[str]]:
    """Return the jobs that Slurm knows by their number, or that of the array, and that in the array or nothing."""
    rows = records(_TASK_FIELDS, "squeue", "--noheader", "--array", "--states=all")
    values = [[each.strip() for each in row] for row in rows]
    return {(row[1], row[2] if row[2].isdigit() else ""): row for row in values}


def choose(asked: str, known: Mapping[tuple[str, str], Sequence[str]], *, arrays: bool) -> dict[str, Any]:
    """Return which jobs are meant, and what there is of them.

    Args:
        asked: ``12``, ``12_3`` of an array, ``12_[3-5]``, or ``12+1`` of a heterogeneous job, of which 12 and 12+0 are
            the whole (https://slurm.schedmd.com/heterogeneous_jobs.html).
        known: The jobs that Slurm knows.
        arrays: Whether the number of an array is all its tasks; else it is refused.
    """
    number, _, tasks = asked.removesuffix("+0").partition("_")
    components = {row[6]: key for key, row in known.items() if row[6].partition("+")[0] == number and "+" in row[6]}
    by_own = {row[0]: key for key, row in known.items() if key[1] and row[0] != key[0]}
    of_array = [key for key in known if key[0] == number and key[1]]
    if tasks:
        wanted = ranges(tasks.strip("[]"))
        keys = [key for key in of_array if any(int(key[1]) in each for each in wanted)]
    elif of_array:
        keys = of_array
    elif components:
        keys = [*components.values()]
    elif "+" in number:
        keys = [key for key, row in known.items() if row[6] == number]
    else:  # a task has a number of its own, too
        keys = [(number, "")] if (number, "") in known else [by_own[number]] if number in by_own else []
    live = [key for key in keys if known[key][3] in _LIVE]
    array = keys[0][0] if keys else number
    words = []
    if live:
        is_part = live[0][1] and (tasks or not of_array)
        part = condensed(int(task) for _, task in live) if is_part else ""
        words = [f"{array}_{part if part.isdigit() else f'[{part}]'}" if is_part else number]
    return {
        "asked": asked,
        "problem": "unknown" if not keys else "array" if of_array and not tasks and not arrays and live else "",
        "user": known[keys[0]][4] if keys else "",
        "name": known[keys[0]][5] if keys else "",
        "tasks": {state: condensed(int(t) for t in found) for state, found in by_state(keys, known).items()}
        if keys and keys[0][1]
        else {},
        "before": Counter(known[key][3] for key in keys),
        "keys": live,
        "words": words,
    }


def chosen(how: str, asked: Sequence[str], *, cancel: bool, wait: Any = time.sleep) -> list[dict[str, Any]]:
    """Return the jobs that are meant; cancel them if each is one that could be, and see what Slurm has of them then.

    scancel is silent about jobs that do not exist, and ends with 0.
    """
    known = tasks_of_all()
    found = [choose(each, known, arrays=how == "arrays") for each in asked]
    words = [word for each in found for word in each["words"]]
    said = ""
    if cancel and words and not any(each["problem"] for each in found):
        done = subprocess.run(("scancel", "--", *words), env=ENVIRONMENT, capture_output=True, check=False)
        said = done.stderr.decode(errors="replace").strip()
        for attempt in range(int(SECONDS_TO_CANCEL) + 1):
            known = tasks_of_all()
            if not any(known[key][3] in _LIVE for each in found for key in each["keys"] if key in known):
                break
            wait(0.2 if attempt == 0 else 1.0)
    for each in found:
        keys = each.pop("keys")
        each["live"] = len(keys)
        each["left"] = (
            Counter(known[key][3] for key in keys if key in known and known[key][3] in _LIVE) if cancel else {}
        )
        each["said"] = said[:500]
        each["name"] = cut([each["name"]], [40])[0]
        each["tasks"] = {state: tasks[:200] for state, tasks in each["tasks"].items()}
        each["words"] = [word[:200] for word in each["words"]]
    return found


def job(asked: str, most: int) -> dict[str, Any] | None:
    """Return what is known of a job, and addresses of its nodes; None: neither Slurm nor its accounting knows it.

    Of the number of an array of jobs: its tasks by state, and what they have in common.
    https://slurm.schedmd.com/job_array.html

    Args:
        asked: ``12``, ``12_3`` of an array, or the name of the newest job that has it.
        most: How many nodes.
    """
    number = asked
    if not asked[0].isdigit():
        query = ("squeue", "--states=all", f"--name={asked}", "--sort=-i", "--noheader", "--format=%i")
        number = next(iter(call(query).split()), "")
        if not number:
            return None
        number = number if "[" not in number else number.partition("_")[0]
    jobs = described(number) or []
    known = next((each for each in jobs if number in names_of(each) and not is_of(each, number)), None)
    facts = None if known is None else details(known)
    if facts is None and (of_array := [each for each in jobs if is_of(each, number.partition("_")[0])]):
        waiting = next((each for each in of_array if each.get("array_task_string")), of_array[0])
        facts = details(waiting)
        if "_" not in number:
            facts |= in_common(number, tasks_of_all())
        else:  # a task that waits has no record of its own
            facts |= {"id": number, "tasks": number.partition("_")[2], "output": "", "nodes": {}}
    if facts is None:
        facts = of_accounting(number)
    if facts is None:
        return None
    list_of_nodes = facts.pop("nodes")
    names = call(("scontrol", "show", "hostnames", list_of_nodes)).split() if list_of_nodes and most else []
    if facts["source"] == "accounting":
        names = []  # their addresses are those of other instances by now
    texts = (
        "node_list",
        "name",
        "directory",
        "command",
        "comment",
        "dependency",
        "reason",
        "features",
        "account",
        "qos",
    )
    facts["node_list"] = list_of_nodes or ""
    facts |= dict(zip(texts, cut([facts.get(each, "") for each in texts], [500] * len(texts))))
    number = facts["id"] if re.fullmatch(r"\d+([_+]\d+)?", facts["id"]) else number
    return {**facts, "number": number, "nodes": addresses(names[:most]) if names else {}}


def of_users(names: Sequence[str]) -> dict[str, list[Any]]:
    """Return how many jobs of users wait, how many have nodes, and the first of both; of each task of an array."""
    jobs: dict[str, dict[bool, list[str]]] = {name: {True: [], False: []} for name in names}
    for number, user, written in records(("%i", "%u", "%T"), "squeue", "--noheader", "--array"):
        if user.strip() in jobs:
            jobs[user.strip()][written.strip() in WAITING].append(number.strip())
    return {
        name: [len(own[True]), len(own[False]), own[True][:JOBS_OF_USER], own[False][:JOBS_OF_USER]]
        for name, own in jobs.items()
        if own[True] or own[False]
    }


def addresses(names: Sequence[str]) -> dict[str, str]:
    """Return the addresses of nodes by their names."""
    text = call(("scontrol", "show", "node", ",".join(names), "--json"))
    return {each["name"]: each["address"] for each in json.loads(text)["nodes"]}


def main(what: str, *arguments: str) -> None:
    """Print what is asked for under its name, on one line."""
    if what == "job":
        answer: object = job(arguments[0], int(arguments[1]))
    elif what == "ended":
        answer = ended(int(arguments[0]), int(arguments[1]), *arguments[2:])
    elif what == "of":
        answer = of_users(arguments)
    elif what in ("chosen", "cancel"):
        answer = chosen(arguments[0], arguments[1:], cancel=what == "cancel")
    else:
        answer = addresses(arguments)
    print(dumped({what: answer}))


if __name__ == "__main__":
    main(*sys.argv[1:])
