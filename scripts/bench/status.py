"""How soon `status` prints its first line, beside the AWS command line of the same machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scripts.bench.common import ROOT, BenchError, BenchRow, conditions, environment, table, verdict

MAX_SECONDS = 1.0
"""CPU seconds to the first output."""

_HEADER = ("Command", "CPU s to first output", "CPU s", "ratio to first output", "goal", "")
_STATUS, _AWS = "`python -m scripts status trn1-16`", "`aws --version`"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class StatusSample:
    """CPU seconds of a command until its first line was there, and in all."""

    first: float
    total: float


def report(rounds: int) -> tuple[str, list[BenchRow]]:
    """Measure against an emulated account that has nothing of the deployment, and return text and rows of a table.

    Raises:
        BenchError: It could not be measured.
    """
    from emulator.aws import EmulatedAws

    heading = conditions(f"Medians of {rounds} rounds")
    commands: dict[str, Sequence[str]] = {_STATUS: (sys.executable, "-m", "scripts", "status", "trn1-16")}
    if shutil.which("aws", path=environment()["PATH"]):
        commands[_AWS] = ("aws", "--version")
    samples: dict[str, list[StatusSample]] = {name: [] for name in commands}
    with EmulatedAws() as aws:
        for number in range(rounds + 1):
            print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
            for name, command in commands.items():
                samples[name].append(_run(command, {**environment(), **aws.settings}))
    lines = rows({name: counted for name, (_, *counted) in samples.items()})
    return f"{heading}\n\n{table(_HEADER, lines)}", lines


def rows(samples: Mapping[str, Sequence[StatusSample]]) -> list[BenchRow]:
    """Return a row for each command; the ratio is the median of the ratios within each round."""
    lines = []
    for name, taken in samples.items():
        first, total = median(each.first for each in taken), median(each.total for each in taken)
        ratio, goal, met = "", "", None
        if name == _STATUS:
            goal, met = f"under {MAX_SECONDS:g} s", first < MAX_SECONDS
            if others := samples.get(_AWS):
                times = median(each.first / other.first for each, other in zip(taken, others, strict=True))
                ratio = f"{times:.2f} x {_AWS}"
        lines.append(BenchRow((name, f"{first:.2f}", f"{total:.2f}", ratio, goal, verdict(met)), met))
    return lines


def _run(command: Sequence[str], variables: Mapping[str, str]) -> StatusSample:
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
    return StatusSample(first, used.ru_utime + used.ru_stime)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process that runs (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS
