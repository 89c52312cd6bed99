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
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

JOBS_LISTED = 40
PROBLEMS_LISTED = 25
LARGEST_STATE = 18_000
"""Characters of what `state` prints: an answer of Systems Manager has 24,000, with the software of jobs beside it."""
ACTIVE = ("COMPLETING", "CONFIGURING", "RESIZING", "RUNNING", "STAGE_OUT", "STOPPED", "SUSPENDED")
"""States of jobs that have nodes (https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES)."""
TAKES = {
    "idle": "IDLE",
    "planned": "PLANNED",
    "reserved": "RESERVED",
    "blocked": "BLOCKED",
    "completing": "COMPLETING",
    "allocated": "ALLOCATED",
    "mixed": "MIXED",
}
"""What a node is called that takes jobs or runs them, by the state or flag of Slurm's that says so."""
COMING = ("power saving", "powering up", "powering down")
"""What a node is called that is off and starts for a job, or is on its way on or off.

Every other name is that of a node that takes no jobs; `condition` gives them.
"""
_SAYS_NOTHING = {"CLOUD", "DYNAMIC_NORM", *TAKES.values()}
_OUT = {
    "INVALID_REG": "inval",
    "FUTURE": "future",
    "DYNAMIC_FUTURE": "future",
    "UNKNOWN": "unknown",
    "ERROR": "error",
    "EXTERNAL": "external",
}
_PATH = "/opt/slurm/bin:" + os.environ.get("PATH", "/usr/bin:/bin")
_ENVIRONMENT = {"PATH": _PATH, "LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
_JOB_FIELDS = ("%A", "%u", "%P", "%T", "%D", "%M", "%60r", "%40j")
_JOB_WIDTHS = (12, 64, 60, 20, 12, 20, 60, 40)
_PROBLEM_WIDTHS = (25, 120, 120)
_NODES = "--Format=PartitionName:256,NodeList:256,StateComplete:512"
_ACCOUNTING_SECONDS = 3


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


def condition(written: str) -> str:
    """Return what a node is called by its state with all flags, such as ``idle+cloud+powered_down``.

    It takes jobs only if each flag is one with which it does. That of `node_state_string`, which ``%T`` of sinfo
    prints, is not enough: there ``~`` hides that a node does not respond, which one that is off then never does again.
    A job gets a node that is neither down, drained nor failing, that responds, and that is not to be powered down
    (avail_node_bitmap). A node that powers up does not respond yet (power_save.c), and takes the job it starts for.

    https://github.com/SchedMD/slurm/blob/slurm-25-11-7-1/src/common/slurm_protocol_defs.c (node_state_flags),
    src/slurmctld/node_mgr.c (make_node_avail, _sync_bitmaps), src/slurmctld/read_config.c, src/slurmctld/power_save.c
    """
    base, *listed = written.upper().split("+")
    flags = {*listed}
    words = {base, *flags}
    has_jobs = base in {"ALLOCATED", "MIXED"}
    is_busy, is_off = has_jobs or "COMPLETING" in flags, "POWERED_DOWN" in flags
    known = {*_SAYS_NOTHING, "POWERED_DOWN", "REBOOT_REQUESTED", "REBOOT_ISSUED", "MAINTENANCE"}
    rules = (  # the first that holds
        *((word in words, name) for word, name in _OUT.items()),
        # power_down_asap is both, and ends the drain (power_save.c)
        ("DRAIN" in flags and "POWER_DOWN" not in flags, "draining" if is_busy else "drained"),
        ("FAIL" in flags, "failing" if is_busy else "fail"),
        (base == "DOWN", "down"),
        (bool({"POWER_DOWN", "POWERING_DOWN"} & flags), "powering down"),
        (bool({"POWER_UP", "POWERING_UP"} & flags), "powering up"),
        ("NOT_RESPONDING" in flags, "stuck off" if is_off and not has_jobs else "not responding"),
        (bool({"REBOOT_REQUESTED", "REBOOT_ISSUED"} & flags) and not has_jobs, "reboot"),
        ("MAINTENANCE" in flags and not has_jobs, "maint"),
        (base not in {"IDLE", "ALLOCATED", "MIXED"} or not flags <= known, "unknown"),
        (is_off, "powering up" if has_jobs else "power saving"),
        *((word in words, name) for name, word in reversed(TAKES.items())),
    )
    return next(name for holds, name in rules if holds)


def takes_jobs(name: str) -> bool:
    """Tell whether a node that is called so takes jobs, now or once it has started or stopped."""
    return name in TAKES or name in COMING


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


def _marked(called: str, written: str) -> str:
    """Return what a node is called that takes no jobs, with Slurm's mark of one that is off, or does not respond."""
    flags = written.upper().split("+")[1:]
    if called not in ("drained", "draining", "down", "fail", "failing"):
        return called
    return called + ("~" if "POWERED_DOWN" in flags else "*" if "NOT_RESPONDING" in flags else "")


def out(nodes: Sequence[Sequence[str]]) -> list[list[Any]]:
    """Return the nodes that take no jobs: how many, what they are, since when, which, why, queue; most first.

    Those of a queue that are out for one reason are together, since the first of them.
    """
    rows = [(queue, name, _marked(condition(written), written)) for queue, name, written in nodes]
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
        done = subprocess.run(query, env=_ENVIRONMENT, capture_output=True, check=False, timeout=_ACCOUNTING_SECONDS)
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
    jobs are left out, and then nodes that take no jobs. A job that waits in several queues counts in each.
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
    for queues, written, size in records(("%P", "%T", "%D"), *squeue, "--array", "--states=all"):
        counts[written.strip()] += 1
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
        "jobs": [cut(each, _JOB_WIDTHS) for each in list(chain(*listed))[:JOBS_LISTED]],
        "seconds": round(time.monotonic() - started, 1),
        "accounting": accounting(),
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
