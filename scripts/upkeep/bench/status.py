"""How soon the command line answers, beside that of AWS on the same machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from scripts.upkeep.bench.common import ROOT, BenchError, BenchRow, conditions, environment, table

LAUNCHER = str(ROOT / "ultracluster")
HELP, COMPLETION, STATUS = "`./ultracluster --help`", "completion of `status`", "`./ultracluster status trn1-16`"
AWS = "`aws --version`"
DIRECT, LAUNCHING = "`--help` without the launcher", "what the launcher adds"
GOALS: Mapping[str, tuple[float, float]] = {HELP: (0.15, 0.5), COMPLETION: (0.15, 0.5), STATUS: (1.0, 0.7)}
"""CPU seconds to the first output, and the most that they may be of those of `aws --version`."""
LAUNCHING_GOAL = 0.03
"""CPU seconds that the launcher may add when the environments are complete."""
_COMPLETE = {
    "_ULTRACLUSTER_COMPLETE": "bash_complete", "COMP_WORDS": "ultracluster status ", "COMP_CWORD": "2",
}  # fmt: skip


def report(rounds: int) -> tuple[str, list[BenchRow]]:
    """Measure against an emulated account that has nothing of the deployment, and return text and rows of a table.

    Raises:
        BenchError: It could not be measured, or there is no `aws` to compare with.
    """
    from scripts.emulated import EmulatedAws

    if not shutil.which("aws", path=environment()["PATH"]):
        raise BenchError("There is no `aws` on PATH, which the command line is compared with")
    heading = conditions(f"Medians of {rounds} rounds")
    commands: dict[str, Sequence[str]] = {
        HELP: (LAUNCHER, "--help"),
        COMPLETION: (LAUNCHER,),
        STATUS: (LAUNCHER, "status", "trn1-16"),
        DIRECT: (sys.executable, "-P", "-m", "scripts", "--help"),
        AWS: ("aws", "--version"),
    }
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with EmulatedAws() as aws:
        for number in range(rounds + 1):
            for name, command in commands.items():
                variables = _COMPLETE if name == COMPLETION else {}
                sample = _run(command, {**environment(), **aws.settings, **variables})
                if number:  # the first round fills caches
                    samples[name].append(sample)
    rows = rows_of(samples)
    columns = ("Command", "CPU s to first output", "CPU s", "times `aws --version`", "goal")
    return f"{heading}\n\n{table(columns, rows)}", rows


def rows_of(samples: Mapping[str, Sequence[tuple[float, float]]]) -> list[BenchRow]:
    """Return a row for each command, and one for the launcher; a ratio or difference is the median of the rounds'."""
    rows = []
    for name, taken in samples.items():
        first, total = (median(seconds) for seconds in zip(*taken, strict=True))
        ratio = median(own[0] / other[0] for own, other in zip(taken, samples[AWS], strict=True))
        goal, met = "", None
        if name in GOALS:
            seconds, times = GOALS[name]
            goal = f"{seconds:g} s, {times:g} times"
            met = first <= seconds and ratio <= times
        cells = (name, f"{first:.2f}", f"{total:.2f}", "" if name == AWS else f"{ratio:.2f}", goal)
        rows.append(BenchRow(cells, met))
        if name == DIRECT:
            added = median(own[1] - other[1] for own, other in zip(samples[HELP], taken, strict=True))
            cells = (LAUNCHING, "", f"{added:.3f}", "", f"{LAUNCHING_GOAL:g} s")
            rows.append(BenchRow(cells, added <= LAUNCHING_GOAL))
    return rows


def _run(command: Sequence[str], variables: Mapping[str, str]) -> tuple[float, float]:
    """Run a command, and return its CPU seconds until its first line was there, and in all."""
    with subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        line, first = process.stdout.readline(), _cpu_seconds(process.pid)
        process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not line or process.returncode not in (0, 1):
        raise BenchError(f"{' '.join(command)}: exit code {process.returncode}")
    return first, used.ru_utime + used.ru_stime


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process that runs (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
