"""How soon `status` prints its first line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from scripts.bench.common import ROOT, BenchError, BenchRow, conditions, environment, table

MAX_SECONDS = 1.0
"""CPU seconds to the first output."""
COMMAND = (sys.executable, "-m", "scripts", "status", "trn1-16")


def report(rounds: int) -> tuple[str, list[BenchRow]]:
    """Measure against an emulated account that has nothing of the deployment, and return text and rows of a table.

    Raises:
        BenchError: It could not be measured.
    """
    from emulator.aws import EmulatedAws

    heading = conditions(f"Medians of {rounds} rounds")
    with EmulatedAws() as aws:
        _, *samples = [_run({**environment(), **aws.settings}) for _ in range(rounds + 1)]
    first, total = (median(seconds) for seconds in zip(*samples, strict=True))
    cells = ("`python -m scripts status trn1-16`", f"{first:.2f}", f"{total:.2f}", f"under {MAX_SECONDS:g} s")
    rows = [BenchRow(cells, first < MAX_SECONDS)]
    return f"{heading}\n\n{table(('Command', 'CPU s to first output', 'CPU s', 'goal'), rows)}", rows


def _run(variables: dict[str, str]) -> tuple[float, float]:
    """Run the command, and return its CPU seconds until its first line was there, and in all."""
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        line, first = process.stdout.readline(), _cpu_seconds(process.pid)
        process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not line or process.returncode not in (0, 1):
        raise BenchError(f"{' '.join(COMMAND)}: exit code {process.returncode}")
    return first, used.ru_utime + used.ru_stime


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process that runs (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
