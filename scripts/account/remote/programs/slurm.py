"""Print what Slurm knows, as JSON, on the head node as root.

    slurm.py state                  queues, nodes, jobs
    slurm.py job JOB NODES          a job by number, as 12_3 of an array, or the newest of a name; so many of its nodes
    slurm.py addresses NODE...      addresses of nodes by their names

Names and reasons may hold any character, those that separate fields as well: users choose them. So fields of `squeue`
and `sinfo` are separated by a random mark, which no user can know: it travels in the environment, which only root can
read. Slurm's own JSON would be 43 kB for each job (24.11); of one job it is used. What is printed fits into an answer
of Systems Manager, whatever users write: each text is cut by its length in JSON.

https://slurm.schedmd.com/sinfo.html, https://slurm.schedmd.com/squeue.html, https://slurm.schedmd.com/scontrol.html
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

JOBS_LISTED = 40
PROBLEMS_LISTED = 25
LARGEST_STATE = 18_000
"""Characters of what `state` prints: an answer of Systems Manager has 24,000, with the software of jobs beside it."""
ACTIVE = ("COMPLETING", "CONFIGURING", "RESIZING", "RUNNING", "STAGE_OUT", "STOPPED", "SUSPENDED")
"""States of jobs that have nodes (https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES)."""
_PATH = "/opt/slurm/bin:" + os.environ.get("PATH", "/usr/bin:/bin")
_ENVIRONMENT = {"PATH": _PATH, "LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
_JOB_FIELDS = ("%A", "%u", "%P", "%T", "%D", "%M", "%60r", "%40j")
_JOB_WIDTHS = (12, 64, 60, 20, 12, 20, 60, 40)
_PROBLEM_FIELDS = ("%D", "%T", "%H", "%120N", "%120E")
_PROBLEM_WIDTHS = (12, 20, 25, 120, 120)


def call(command: Sequence[str], **variables: str) -> str:
    """Return what a program of Slurm prints; end with its message if it fails."""
    try:
        done = subprocess.run(command, env={**_ENVIRONMENT, **variables}, capture_output=True, check=False)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")
    if done.returncode:
        sys.exit(done.stderr.decode(errors="replace").strip() or f"{command[0]}: exit code {done.returncode}")
    return done.stdout.decode(errors="replace")


def records(fields: Sequence[str], *command: str) -> list[list[str]]:
    """Return the fields of the records that `sinfo` or `squeue` prints."""
    mark = secrets.token_hex(16)
    text = call(command, **{f"{command[0].upper()}_FORMAT": mark + mark.join(fields)})
    before, *values = text.split(mark)
    if before or len(values) % len(fields):
        sys.exit(f"{command[0]} prints no fields: {text[:200]}")
    return [values[start : start + len(fields)] for start in range(0, len(values), len(fields))]


def cut(values: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return texts on one line each, cut to lengths in JSON."""
    shown = []
    for value, width in zip(values, widths):
        text = " ".join(value.split())[:width]
        while len(json.dumps(text)) - 2 > width:
            text = text[:-1]
        shown.append(text)
    return shown


def dumped(value: object) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, separators=(",", ":"))


def state() -> dict[str, Any]:
    """Return queues, nodes by kind and state, nodes that take no jobs, and jobs.

    Nodes of a kind have one name but for the number. Jobs that have nodes come first; where all would not fit, the last
    jobs are left out, and then nodes that take no jobs. A job that waits in several queues counts in each.
    """
    squeue = ("squeue", "--noheader")
    nodes: dict[str, dict[str, Counter[str]]] = {}
    listed_nodes = call(("sinfo", "--noheader", "--Node", "--format=%R|%N|%T"))  # none of these is chosen by users
    for queue, name, written in (line.split("|") for line in listed_nodes.splitlines()):
        kind = name.rpartition("-")[0]
        kind = kind[len(queue) + 1 :] if kind.startswith(f"{queue}-") else kind
        nodes.setdefault(queue, {}).setdefault(kind, Counter())[written.strip()] += 1
    counts: Counter[str] = Counter()
    queue_counts: dict[str, Counter[str]] = {}
    for queues, written in records(("%P", "%T"), *squeue, "--array", "--states=all"):
        counts[written.strip()] += 1
        for queue in queues.split(","):
            queue_counts.setdefault(queue.strip(), Counter())[written.strip()] += 1
    listed = [
        records(_JOB_FIELDS, *squeue, f"--states={states}", "--sort=-p,i") for states in (",".join(ACTIVE), "PENDING")
    ]
    # Those of --list-reasons, which would not look at the environment.
    unusable = records(_PROBLEM_FIELDS, "sinfo", "--noheader", "--states=down,drain,fail")
    problems = [each for each in unusable if each[-1].strip() != "none"]
    answer: dict[str, Any] = {
        "queues": {queue: written.strip() for queue, written in records(("%R", "%a"), "sinfo", "--noheader")},
        "nodes": nodes,
        "problems": [cut(each, _PROBLEM_WIDTHS) for each in problems[:PROBLEMS_LISTED]],
        "counts": counts,
        "queue_counts": queue_counts,
        "jobs": [cut(each, _JOB_WIDTHS) for each in list(chain(*listed))[:JOBS_LISTED]],
    }
    while len(dumped(answer)) > LARGEST_STATE and (answer["jobs"] or answer["problems"]):
        (answer["jobs"] or answer["problems"]).pop()
    return answer


def job(asked: str, most: int) -> dict[str, Any] | None:
    """Return number, state, user, output file and nodes of a job; None: Slurm does not know it.

    Of an array Slurm shows all jobs (https://slurm.schedmd.com/job_array.html).
    """
    number = asked
    if not asked[0].isdigit():
        query = ("squeue", "--states=all", f"--name={asked}", "--sort=-i", "--noheader", "--format=%A")
        number = next(iter(call(query).split()), "")
        if not number:
            return None
    command = ["scontrol", "show", "job", number, "--json"]
    done = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, check=False)
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip()
        if "Invalid job id" in said:
            return None
        sys.exit(said or f"scontrol: exit code {done.returncode}")
    jobs = json.loads(done.stdout.decode(errors="replace"))["jobs"]
    known = next((each for each in jobs if number in (str(each["job_id"]), _task(each))), None)
    if known is None:
        return None
    names = call(("scontrol", "show", "hostnames", known["nodes"])).split()[:most] if known.get("nodes") else []
    return {
        "number": number,
        "state": known["job_state"][0],
        "user": known.get("user_name") or str(known["user_id"]),
        # From 25.05 on the other one has patterns such as %j.
        "output": known.get("stdout_expanded") or known.get("standard_output") or "",
        "nodes": addresses(names) if names else {},
    }


def _task(described: Mapping[str, Any]) -> str:
    return f"{described['array_job_id']['number']}_{described['array_task_id']['number']}"


def addresses(names: Sequence[str]) -> dict[str, str]:
    """Return the addresses of nodes by their names."""
    text = call(("scontrol", "show", "node", ",".join(names), "--json"))
    return {each["name"]: each["address"] for each in json.loads(text)["nodes"]}


def main(what: str, *arguments: str) -> None:
    """Print what is asked for under its name, on one line."""
    if what == "state":
        answer: object = state()
    elif what == "job":
        answer = job(arguments[0], int(arguments[1]))
    else:
        answer = addresses(arguments)
    print(dumped({what: answer}))


if __name__ == "__main__":
    main(*sys.argv[1:])
