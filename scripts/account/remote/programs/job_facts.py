"""What the controller and accounting know of one job. No program of its own: it goes along."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scripts.account.remote.programs.asking import ACTIVE, ENDED, ENVIRONMENT, WAITING, accounted, clock


def described(number: str) -> list[dict[str, Any]] | None:
    """Return what the controller knows of a job, or of all jobs of an array; None: it does not know it.

    It is asked for text first: for JSON, ``scontrol`` (24.11) prints no jobs and no error where the controller does not
    answer, as where there is no such job.

    Raises:
        SystemExit: It does not answer.
    """
    asked = ("scontrol", "show", "job", number)
    done = subprocess.run(asked, env=ENVIRONMENT, capture_output=True, check=False)
    if not done.returncode:
        done = subprocess.run((*asked, "--json"), env=ENVIRONMENT, capture_output=True, check=False)
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


def is_of(described: Mapping[str, Any], array: str) -> bool:
    """Tell whether it is a job of an array, by the number of the array."""
    return str(_number(described.get("array_job_id"))) == array != "0"


def names_of(described: Mapping[str, Any]) -> set[str]:
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
        "time_limit": "UNLIMITED" if limit.get("infinite") else clock(60 * _number(limit)),
        "elapsed": clock(max(0, until - started)) if runs else "0:00",
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


def condensed(numbers: Iterable[int]) -> str:
    """Return the shortest such expression without steps."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, each)) for each in parts)


def by_state(keys: Iterable[tuple[str, str]], known: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, list[str]]:
    """Return the numbers of tasks in their array, by state."""
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(known[key][3], []).append(key[1])
    return found


def in_common(array: str, known: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, Any]:
    """Return what is to be said of an array instead of one of its tasks."""
    states = by_state([key for key in known if key[0] == array and key[1]], known)
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


def of_accounting(number: str) -> dict[str, Any] | None:
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
        facts |= in_common(array, known)
    return facts
