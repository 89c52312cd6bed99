"""Print what Slurm knows, as JSON, on the head node as root.

    slurm.py state                  queues, nodes, jobs
    slurm.py ended SECONDS MOST [HOW] the newest jobs that ended in so many seconds before now; HOW is `controller`:
                                    accounting is not asked
    slurm.py chosen HOW JOB...      jobs by number; HOW is `tasks`, or `arrays`: the number of an array is all its tasks
    slurm.py cancel HOW JOB...      the same, cancelled if each of them is one that could be
    slurm.py job JOB NODES          a job by number, as 12_3 of an array, or the newest of a name; so many of its nodes
    slurm.py of USER...             how many jobs of users wait and have nodes, and the first of them
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

JOBS_LISTED = 40
PROBLEMS_LISTED = 25
JOBS_OF_USER = 10
LARGEST_STATE = 18_000
"""Characters of what `state` prints: an answer of Systems Manager has 24,000, with the software of jobs beside it."""
ACTIVE = ("COMPLETING", "CONFIGURING", "RESIZING", "RUNNING", "STAGE_OUT", "STOPPED", "SUSPENDED")
"""States of jobs that have nodes (https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES)."""
WAITING = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
"""States of jobs that wait for nodes (the same page)."""
ENDED = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
         "REVOKED", "TIMEOUT")  # fmt: skip
"""States of jobs that have ended (the same page)."""
SECONDS_TO_CANCEL = 10.0
"""How long Slurm may take to cancel what it has been told to."""
LARGEST_LIST = 20_000
"""Characters of what `ended` prints."""
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
COMING = ("power saving", "reserved off", "powering up", "powering down")
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
_JOB_FIELDS = ("%A", "%u", "%P", "%T", "%D", "%M", "%60r", "%40j", "%F", "%K", "%l", "%60N", "%i")
_JOB_WIDTHS = (12, 64, 60, 20, 12, 20, 60, 40, 12, 70, 20, 60, 80)
_ENDED_FIELDS = ("JobIDRaw", "User", "Partition", "State", "NNodes", "Elapsed", "JobName", "JobID", "Timelimit",
                 "NodeList", "ExitCode", "Start", "End")  # fmt: skip
_ENDED_WIDTHS = (12, 64, 60, 40, 12, 20, 40, 80, 20, 60, 12, 20, 20)
_TASK_FIELDS = ("%A", "%F", "%K", "%T", "%u", "%40j", "%i")
_PROBLEM_WIDTHS = (25, 120, 120)
_NODES = "--Format=PartitionName:256,NodeList:256,StateComplete:512"
_ACCOUNTING_SECONDS = 3
REASONS_LISTED = 10


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
        (is_off and "RESERVED" in flags and not has_jobs, "reserved off"),
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


def accounted(fields: Sequence[str], *options: str) -> list[list[str]] | None:
    """Return the fields of the records that sacct prints; None: there is no accounting, or it does not answer.

    The mark is in the arguments, which are public: who reads it there in time can make the record of an own job
    unreadable, and forge none, as the fields that users choose are too short for all marks of a record.
    """
    mark = secrets.token_hex(16)
    command = ("sacct", "--allusers", "--allocations", "--noheader", "--parsable", f"--delimiter={mark}", *options)
    try:
        done = subprocess.run(
            (*command, f"--format={','.join(fields)}"), env=_ENVIRONMENT, capture_output=True, check=False
        )
    except OSError:
        return None
    if done.returncode:
        return None
    values = done.stdout.decode(errors="replace").split(mark)
    if len(values) % len(fields) != 1:
        return None
    found = [values[start : start + len(fields)] for start in range(0, len(values) - 1, len(fields))]
    return [[_as_squeue(field, value.lstrip("\n")) for field, value in zip(fields, row)] for row in found]


def _as_squeue(field: str, value: str) -> str:
    """Return a value of sacct as squeue writes it."""
    if field in ("Elapsed", "Timelimit") and re.fullmatch(r"\d\d:\d\d:\d\d", value):
        hours, minutes, seconds = map(int, value.split(":"))
        return _clock(3600 * hours + 60 * minutes + seconds)
    return "" if value in ("None assigned", "Unknown", "None") else value


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
                _moment(facts["started"]), _moment(facts["ended"]),
            ]  # fmt: skip


# --- jobs that are cancelled ---


def ranges(tasks: str) -> list[range]:
    """Return the numbers of an expression such as ``1-3,7,10-20:5``, as Slurm has them (sbatch --array)."""
    found = []
    for part in tasks.partition("%")[0].split(","):
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        found.append(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def condensed(numbers: Iterable[int]) -> str:
    """Return the shortest such expression without steps."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, each)) for each in parts)


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
        "tasks": {state: condensed(int(t) for t in found) for state, found in _by_state(keys, known).items()}
        if keys and keys[0][1]
        else {},
        "before": Counter(known[key][3] for key in keys),
        "keys": live,
        "words": words,
    }


def _by_state(keys: Iterable[tuple[str, str]], known: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(known[key][3], []).append(key[1])
    return found


_LIVE = {*ACTIVE, *WAITING} - {"COMPLETING"}
"""States of jobs that can be cancelled."""


def chosen(how: str, asked: Sequence[str], *, cancel: bool, wait: Any = time.sleep) -> list[dict[str, Any]]:
    """Return the jobs that are meant; cancel them if each is one that could be, and see what Slurm has of them then.

    scancel is silent about jobs that do not exist, and ends with 0.
    """
    known = tasks_of_all()
    found = [choose(each, known, arrays=how == "arrays") for each in asked]
    words = [word for each in found for word in each["words"]]
    said = ""
    if cancel and words and not any(each["problem"] for each in found):
        done = subprocess.run(("scancel", "--", *words), env=_ENVIRONMENT, capture_output=True, check=False)
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


# --- one job ---


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
    known = next((each for each in jobs if number in _names(each) and not _is_of(each, number)), None)
    facts = None if known is None else details(known)
    if facts is None and (of_array := [each for each in jobs if _is_of(each, number.partition("_")[0])]):
        waiting = next((each for each in of_array if each.get("array_task_string")), of_array[0])
        facts = details(waiting)
        if "_" not in number:
            facts |= _in_common(number, tasks_of_all())
        else:  # a task that waits has no record of its own
            facts |= {"id": number, "tasks": number.partition("_")[2], "output": "", "nodes": {}}
    if facts is None:
        facts = _of_accounting(number)
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


def described(number: str) -> list[dict[str, Any]] | None:
    """Return what the controller knows of a job, or of all jobs of an array; None: it does not know it.

    It is asked for text first: for JSON, ``scontrol`` (24.11) prints no jobs and no error where the controller does not
    answer, as where there is no such job.

    Raises:
        SystemExit: It does not answer.
    """
    asked = ("scontrol", "show", "job", number)
    done = subprocess.run(asked, env=_ENVIRONMENT, capture_output=True, check=False)
    if not done.returncode:
        done = subprocess.run((*asked, "--json"), env=_ENVIRONMENT, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        if "Invalid job id" in said:
            return None
        sys.exit(said or f"scontrol: exit code {done.returncode}")
    jobs: list[dict[str, Any]] = json.loads(done.stdout.decode(errors="replace"))["jobs"]
    return jobs


def _number(value: Any) -> int:
    """Return a number of Slurm's JSON, where it may be one that is not set."""
    if isinstance(value, dict):
        return int(value.get("number") or 0) if value.get("set", True) else 0
    return int(value or 0)


def _is_of(described: Mapping[str, Any], array: str) -> bool:
    """Tell whether it is a job of an array, by the number of the array."""
    return str(_number(described.get("array_job_id"))) == array != "0"


def _names(described: Mapping[str, Any]) -> set[str]:
    """Return what a job is called, as a task of an array or a component of a heterogeneous job, too."""
    task = f"{_number(described['array_job_id'])}_{described['array_task_id']['number']}"
    return {str(described["job_id"]), task, _component(described)}


def _component(described: Mapping[str, Any]) -> str:
    """Return it as a component of a heterogeneous job; empty: it is none."""
    leader = _number(described.get("het_job_id"))
    return f"{leader}+{_number(described.get('het_job_offset'))}" if leader else ""


def details(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the controller knows of a job in words of this project."""
    array = _number(known.get("array_job_id"))
    task = known.get("array_task_id") or {}
    tasks = known.get("array_task_string") or (str(task.get("number")) if array and task.get("set", True) else "")
    written = f"[{tasks}]" if known.get("array_task_string") else tasks
    limit = known.get("time_limit") or {}
    exit_code = known.get("exit_code") or {}
    started, over = _number(known.get("start_time")), _number(known.get("end_time"))
    state = known["job_state"][0]
    now = int(time.time())
    until = over if state in ENDED else now
    runs = bool(started) and started <= now and state not in WAITING
    return {
        "id": f"{array}_{written}" if array else _component(known) or str(known["job_id"]),
        "job_id": int(known["job_id"]),
        "array": array or None,
        "tasks": tasks,
        "source": "controller",
        "state": state,
        "reason": known.get("state_description") or known.get("state_reason") or "",
        "user": known.get("user_name") or str(known["user_id"]),
        # From 25.05 on the other one has patterns such as %j.
        "output": known.get("stdout_expanded") or known.get("standard_output") or "",
        "nodes": known.get("nodes") or "",
        "node_count": _number(known.get("node_count")),
        "name": known.get("name") or "",
        "queue": known.get("partition") or "",
        "account": known.get("account") or "",
        "qos": known.get("qos") or "",
        "time_limit": "UNLIMITED" if limit.get("infinite") else _clock(60 * _number(limit)),
        "elapsed": _clock(max(0, until - started)) if runs else "0:00",
        "submitted": _number(known.get("submit_time")) or None,
        "started": started if started and (runs or state in ENDED) else None,
        "expected": started if started and state in WAITING else None,
        "ended": over if over and state in ENDED else None,
        "exit_code": f"{_number(exit_code.get('return_code'))}:{_number((exit_code.get('signal') or {}).get('id'))}"
        if state in ENDED
        else "",
        "directory": known.get("current_working_directory") or "",
        "command": known.get("command") or "",
        "comment": known.get("comment") or "",
        "dependency": known.get("dependency") or "",
        "features": known.get("features") or "",
        "restarts": _number(known.get("restart_cnt")),
    }


def _in_common(array: str, known: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, Any]:
    """Return what is to be said of an array instead of one of its tasks."""
    states = _by_state([key for key in known if key[0] == array and key[1]], known)
    return {
        "id": array, "array": int(array), "tasks": "", "output": "", "nodes": "", "exit_code": "", "elapsed": "",
        "started": None, "ended": None,
        "state": next((each for each in (*ACTIVE, *WAITING) if each in states), next(iter(states), "PENDING")),
        "of_array": {state: condensed(map(int, tasks))[:200] for state, tasks in states.items()},
    }  # fmt: skip


_ACCOUNTED = {
    "JobIDRaw": "job_id", "JobID": "id", "User": "user", "Partition": "queue", "State": "state", "NNodes": "node_count",
    "Elapsed": "elapsed", "JobName": "name", "Timelimit": "time_limit", "NodeList": "nodes",
    "ExitCode": "exit_code", "Start": "started", "End": "ended", "Submit": "submitted", "StdOut": "output",
    "WorkDir": "directory", "SubmitLine": "command", "Account": "account", "QOS": "qos", "Comment": "comment",
}  # fmt: skip
"""Fields of sacct by what they are called here."""


def _of_accounting(number: str) -> dict[str, Any] | None:
    """Return what accounting knows of a job, or of an array; None: nothing."""
    options = ("--array", "--expand-patterns", "--starttime=1970-01-01", f"--jobs={number}")
    found = accounted(tuple(_ACCOUNTED), *options) or []
    rows = [dict(zip(_ACCOUNTED.values(), row)) for row in found]
    rows = [each for each in rows if number in (each["id"], each["job_id"], each["id"].partition("_")[0])]
    if not rows:
        return None
    exact = next((each for each in rows if each["id"] == number), None) or (rows[0] if len(rows) == 1 else None)
    first = exact or rows[0]
    array, _, tasks = first["id"].partition("_")
    facts: dict[str, Any] = {
        **first,
        "source": "accounting",
        "job_id": int(first["job_id"]),
        "array": int(array) if tasks else None,
        "tasks": tasks,
        "state": first["state"].split()[0],
        "reason": first["state"].partition(" ")[2],  # CANCELLED by 1000
        "node_count": int(first["node_count"] or 0),
        "output": first["output"] if first["output"].startswith("/") else "",
        **{
            each: f"{first[each]}Z" if first[each][:1].isdigit() else None for each in ("started", "ended", "submitted")
        },
    }
    if exact is None:
        states = {each["id"]: each["state"].split()[0] for each in rows}
        known = {(array, id_.partition("_")[2]): ["", "", "", state] for id_, state in states.items()}
        facts |= _in_common(array, known)
    return facts


def _clock(seconds: int) -> str:
    """Return a time as squeue has it: minutes and seconds, and hours and days if there are some."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _moment(seconds: int | None) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) if seconds else ""


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
    if what == "state":
        answer: object = state()
    elif what == "job":
        answer = job(arguments[0], int(arguments[1]))
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
