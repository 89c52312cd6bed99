"""How the programs that ask Slurm on the head node do so. It has no program of its own: it goes along with theirs.

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
from collections.abc import Sequence

ACTIVE = ("COMPLETING", "CONFIGURING", "RESIZING", "RUNNING", "STAGE_OUT", "STOPPED", "SUSPENDED")
"""States of jobs that have nodes (https://slurm.schedmd.com/squeue.html#SECTION_JOB-STATE-CODES)."""
WAITING = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
"""States of jobs that wait for nodes (the same page)."""
ENDED = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
         "REVOKED", "TIMEOUT")  # fmt: skip
"""States of jobs that have ended (the same page)."""
_PATH = "/opt/slurm/bin:" + os.environ.get("PATH", "/usr/bin:/bin")
ENVIRONMENT = {"PATH": _PATH, "LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}


def call(command: Sequence[str], **variables: str) -> str:
    """Return what a program of Slurm prints; end with its message if it fails."""
    try:
        done = subprocess.run(command, env={**ENVIRONMENT, **variables}, capture_output=True, check=False)
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


def accounted(fields: Sequence[str], *options: str) -> list[list[str]] | None:
    """Return the fields of the records that sacct prints; None: there is no accounting, or it does not answer.

    The mark is in the arguments, which are public: who reads it there in time can make the record of an own job
    unreadable, and forge none, as the fields that users choose are too short for all marks of a record.
    """
    mark = secrets.token_hex(16)
    command = ("sacct", "--allusers", "--allocations", "--noheader", "--parsable", f"--delimiter={mark}", *options)
    try:
        done = subprocess.run(
            (*command, f"--format={','.join(fields)}"), env=ENVIRONMENT, capture_output=True, check=False
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
        return clock(3600 * hours + 60 * minutes + seconds)
    return "" if value in ("None assigned", "Unknown", "None") else value


def clock(seconds: int) -> str:
    """Return a time as squeue has it: minutes and seconds, and hours and days if there are some."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(seconds: int | None) -> str:
    """Return a time in seconds since 1970 as sacct has it; empty: none."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) if seconds else ""


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
