"""What BERT takes of a node's host: its feed, its checkpoints, and what PyTorch/XLA does for each micro-batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from scripts.upkeep.bench.common import ROOT, BenchError, BenchRow, conditions, run, table

WORKERS = 32
"""Processes of a trn1.32xlarge, which has 64 cores."""
SPEEDS: Mapping[str, float] = {"1": 3_826.6, "2": 527.95}
"""Sequences/s of a trn1.32xlarge by phase, as AWS published (scripts/check/estimate/workloads.py)."""
TIMES_OF_CHIPS = 10
SHARE_OF_DISK = 0.8
SHARE_OF_ADDING = 0.1


def report(_: int) -> tuple[str, list[BenchRow]]:
    """Measure feed and checkpoint, and return text and the rows of its tables.

    Raises:
        BenchError: They cannot be measured.
    """
    heading = conditions("Best of some rounds")
    feed, checkpoint = feed_rows(_measured("training", "feed")), checkpoint_rows(_measured("training", "checkpoint"))
    parts = [
        heading,
        table((f"Feed of {WORKERS} processes, each with a core", "sequences/s", "times the chips'", "goal"), feed),
        table(("On the disk", "s", "of the disk's speed", "goal"), checkpoint),
    ]
    return "\n\n".join(parts), [*feed, *checkpoint]


def trace_report(_: int) -> tuple[str, list[BenchRow]]:
    """Measure the host's part of a micro-batch on PyTorch/XLA, and return text and the rows of its table.

    Raises:
        BenchError: It cannot be measured.
    """
    heading = conditions("Medians of 12 micro-batches of 24 layers")
    rows = trace_rows(_measured("xla", "trace"))
    return f"{heading}\n\n{table(('The host of a micro-batch', 'CPU ms', 'share', 'goal'), rows)}", rows


def feed_rows(speeds: Mapping[str, float]) -> list[BenchRow]:
    """Return a row for each phase, of the sequences that a process reads for a second of CPU time."""
    rows = []
    for phase, speed in speeds.items():
        times = WORKERS * speed / SPEEDS[phase]
        cells = (f"phase {phase}", f"{WORKERS * speed:,.0f}", f"{times:.0f}", f"at least {TIMES_OF_CHIPS}")
        rows.append(BenchRow(cells, times >= TIMES_OF_CHIPS))
    return rows


def checkpoint_rows(seconds: Mapping[str, float]) -> list[BenchRow]:
    """Return a row for 1 GB in a plain file, and one for it in a checkpoint."""
    plain, checkpoint = seconds["plain"], seconds["checkpoint"]
    share = plain / checkpoint
    return [
        BenchRow(("1 GB in a plain file", f"{plain:.2f}", "", "")),
        BenchRow(
            ("a checkpoint of 1 GB", f"{checkpoint:.2f}", f"{share:.2f}", f"at least {SHARE_OF_DISK}"),
            share >= SHARE_OF_DISK,
        ),
    ]


def trace_rows(seconds: Sequence[Sequence[float]]) -> list[BenchRow]:
    """Return a row for forward and backward, and one for adding up gradients."""
    both, adding = (median(each) * 1000 for each in zip(*seconds, strict=True))
    share = median(adding / both for both, adding in seconds)
    return [
        BenchRow(("forward and backward", f"{both:.1f}", "", "")),
        BenchRow(
            ("adding up gradients", f"{adding:.1f}", f"{share:.2f}", f"at most {SHARE_OF_ADDING}"),
            share <= SHARE_OF_ADDING,
        ),
    ]


def _measured(environment: str, what: str) -> Any:
    """Run the program that measures, in the environment that has PyTorch."""
    python = ROOT / f".venv-{environment}/bin/python"
    if not python.exists():
        target = {"training": "make setup-training", "xla": "make test-xla"}[environment]
        raise BenchError(f"{what} is not measured: there is no .venv-{environment}, which {target} builds")
    folders = ":".join(str(ROOT / folder) for folder in (".", "training", "training/programs"))
    command = [str(python), "-m", "tests.training.programs.bert.measure", what]
    variables = {"PYTHONPATH": folders, "OMP_NUM_THREADS": "1"}
    return json.loads(run(command, variables=variables).output.splitlines()[-1])
