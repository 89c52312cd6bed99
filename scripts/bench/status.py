"""How soon the command line answers, beside the command lines of AWS and ParallelCluster on the same machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from scripts.bench.common import ROOT, BenchError, BenchRow, conditions, environment, table

LAUNCHER = str(ROOT / "ultracluster")
HELP, COMPLETION, STATUS = "`./ultracluster --help`", "completion of `status`", "`./ultracluster status trn1-16`"
AWS, PCLUSTER = "`aws --version`", "`pcluster version`"
GOALS: Mapping[str, tuple[float, float]] = {HELP: (0.15, 0.5), COMPLETION: (0.15, 0.5), STATUS: (1.0, 0.7)}
"""CPU seconds to the first output, and the most that they may be of those of `aws --version`."""
_COMPLETE = {
    "_ULTRACLUSTER_COMPLETE": "bash_complete", "COMP_WORDS": "ultracluster status ", "COMP_CWORD": "2",
}  # fmt: skip


def report(rounds: int) -> tuple[str, list[BenchRow]]:
    """Measure against an emulated account that has nothing of the deployment, and return text and rows of a table.

    Raises:
        BenchError: It could not be measured.
    """
    from emulator.aws import EmulatedAws

    heading = conditions(f"Medians of {rounds} rounds")
    commands: dict[str, Sequence[str]] = {
        HELP: (LAUNCHER, "--help"),
        COMPLETION: (LAUNCHER,),
        STATUS: (LAUNCHER, "status", "trn1-16"),
        PCLUSTER: (str(ROOT / ".venv-pcluster/bin/pcluster"), "version"),
    }
    if shutil.which("aws", path=environment()["PATH"]):
        commands[AWS] = ("aws", "--version")
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
    """Return a row for each command; a ratio is the median of those within each round."""
    rows = []
    for name, taken in samples.items():
        first, total = (median(seconds) for seconds in zip(*taken, strict=True))
        ratio = None
        if name != AWS and AWS in samples:
            ratio = median(own[0] / other[0] for own, other in zip(taken, samples[AWS], strict=True))
        goal, met = "", None
        if name in GOALS:
            seconds, times = GOALS[name]
            goal = f"{seconds:g} s, {times:g} times"
            met = first <= seconds and (ratio is None or ratio <= times)
        cells = (name, f"{first:.2f}", f"{total:.2f}", "" if ratio is None else f"{ratio:.2f}", goal)
        rows.append(BenchRow(cells, met))
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
