"""The Slurm controller of 1,875 nodes, with ParallelCluster's settings and with those that this stack adds."""

from __future__ import annotations

import json
import os
import shutil
import sys

from scripts.upkeep.bench.common import BenchError, BenchRow, conditions, run, table

MAX_TIMES = 1.1
"""Of the seconds that ParallelCluster's own settings take; the load is submitted by the clock, not by the CPU."""

_HEADER = ("Load", "settings", "accepted s", "allocated s", "all nodes asked for s", "calls", "CPU s", "", "goal")


def report() -> tuple[str, list[BenchRow]]:
    """Measure, and return text and the rows of its table. Nothing is installed on this machine.

    Raises:
        BenchError: It cannot be measured here.
    """
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        raise BenchError(
            "The Slurm controller is not measured: that takes root and mmdebstrap (apt install mmdebstrap)."
        )
    heading = conditions("Seconds from the first submission")
    measured = json.loads(run([sys.executable, "-m", "tests.end_to_end.slurm.controller"]).output)
    lines = rows(measured["loads"])
    return f"{heading} Slurm {measured['slurm']}.\n\n{table(_HEADER, lines)}", lines


def rows(loads: dict[str, dict[str, dict[str, float]]]) -> list[BenchRow]:
    """Return a row for each load and settings; the last settings of a load are compared with the first."""
    lines = []
    for name, by_settings in loads.items():
        first, *_ = by_settings.values()
        for whose, seconds in by_settings.items():
            figure, goal, met = "", "", None
            if seconds is not first:
                times = seconds["resumed"] / first["resumed"]
                figure, goal, met = f"{times:.2f} x", f"at most {MAX_TIMES} x", times <= MAX_TIMES
            cells = [f"{seconds[key]:.1f}" for key in ("submitted", "allocated", "resumed")]
            cells += [f"{seconds['calls']:.0f}", f"{seconds['cpu']:.1f}", figure, goal]
            lines.append(BenchRow((name, whose, *cells), met))
    return lines
