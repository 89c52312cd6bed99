"""What `costs` takes on the head node: its program over a year of jobs, as sacct prints them."""

from __future__ import annotations

import sys
from calendar import timegm
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from scripts.upkeep.bench.common import BenchRow, conditions, run, table
from scripts.use.costs.costs import PART

MAX_SECONDS = 5.0
_JOBS = 100_000
_START = timegm((2026, 1, 1, 0, 0, 0))
_PROGRAM = Path(__file__).parents[2] / "use/costs/summary.py"


def report(rounds: int) -> tuple[str, list[BenchRow]]:
    """Measure, and return text and the rows of its table.

    Raises:
        BenchError: It cannot be measured.
    """
    rows = []
    with TemporaryDirectory() as directory:
        records = Path(directory) / "records"
        records.write_text("".join(generated()), encoding="ascii")
        for name, command in {
            "sacct": f'exec sed "s/|/${{1#--delimiter=}}/g" {records}',
            "sinfo": "",
            "scontrol": "",
        }.items():
            path = Path(directory) / name
            path.write_text(f"#!/bin/sh\n{command}\n", encoding="ascii")
            path.chmod(0o755)
        for by in ("user", "job"):
            words = [sys.executable, str(_PROGRAM), str(_START), str(_START + 365 * 86_400), by, str(PART), "[]"]
            variables = {"PATH": f"{directory}:/usr/bin:/bin", "TMPDIR": directory}
            samples = [run(words, variables=variables) for _ in range(rounds)]
            seconds = median(sample.cpu for sample in samples)
            length = int(samples[0].output.split()[0])
            answers = f"{-(-length // PART):,}"
            goal = f"at most {MAX_SECONDS:.0f} s"
            rows.append(BenchRow((f"--by {by}", f"{seconds:.2f}", answers, goal), seconds <= MAX_SECONDS))
    columns = ("100,000 jobs of a year", "CPU s", "answers of Systems Manager", "goal")
    return f"{conditions(f'Medians of {rounds} rounds')}\n\n{table(columns, rows)}", rows


def generated() -> Iterator[str]:
    """Yield what sacct prints of jobs of 50 users, a tenth of which are requeued once."""
    for job in range(1, _JOBS + 1):
        nodes = job % 64 + 1
        names = f"trn1-dy-trn1-32xl-[{job % 7 + 1}-{job % 7 + nodes}]"
        whose = f"user{job % 50}|account{job % 8}|trn1"
        line = f"{job}|{whose}|{_START + job * 300}|{nodes}|{nodes * 128}|{job % 9999}|{names}|COMPLETED|\n"
        yield line * (2 if job % 10 == 0 else 1)
