"""Runs as the report shows them: with a name, and as curves against their steps and against time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from pathlib import Path

from training.pretraining.summary import Attempt, Run, RunError, Step, Summary, blockers, read_run, summarize

MOST = 8  # more lines in a chart cannot be told apart

Point = tuple[float, float]


class Axis(Enum):
    """What a curve is drawn against."""

    STEP = "optimizer step"
    TIME = "time since the start"


class ReportError(ValueError):
    """The runs cannot be shown: one line for each fault."""


@dataclass(frozen=True)
class ShownRun:
    """A run of the report.

    Attributes:
        name: As short as tells it from the others.
        run: Its records.
        summary: What they come to; the scaling efficiency is against the first run on one node, of the same phase,
            sequence length and model, among those shown.
        parts: Its steps by the attempts that made them; an attempt that left none has no part.
    """

    name: str
    run: Run
    summary: Summary
    parts: Sequence[Sequence[Step]]

    def curve(self, axis: Axis, value: Callable[[Step], float]) -> list[list[Point]]:
        """Return the points of each part. Time is in seconds."""
        return [
            [(step.step if axis is Axis.STEP else step.time - self._start, value(step)) for step in part]
            for part in self.parts
        ]

    def resumptions(self, axis: Axis) -> list[tuple[float, Attempt]]:
        """Return where the run went on after its first start, and that attempt."""
        return [
            (attempt.resumed_step if axis is Axis.STEP else attempt.started - self._start, attempt)
            for attempt in self.run.attempts[1:]
        ]

    @property
    def _start(self) -> float:
        return self.run.attempts[0].started


def load(directories: Sequence[Path]) -> list[ShownRun]:
    """Return the runs of some directories.

    Raises:
        ReportError: There are too many, or one is missing or damaged.
    """
    if len(directories) > MOST:
        raise ReportError(f"RUN: got {len(directories)}; allowed: 1 to {MOST}")
    runs, faults = [], []
    for directory in directories:
        try:
            runs.append(read_run(directory))
        except RunError as error:
            faults.append(str(error))
    if faults:
        raise ReportError("\n".join(faults))
    named = zip(_names(directories), runs, strict=True)
    return [ShownRun(name, run, summarize(run, _reference(run, runs)), _parts(run)) for name, run in named]


def _reference(run: Run, runs: Sequence[Run]) -> Run | None:
    """Return the first run that this one can be compared with."""
    return next((each for each in runs if not blockers(run.options, each)), None)


def _names(directories: Sequence[Path]) -> list[str]:
    names = [directory.resolve().name for directory in directories]
    return names if len(set(names)) == len(names) else [str(directory) for directory in directories]


def _parts(run: Run) -> list[list[Step]]:
    def attempt(step: Step) -> int:
        """Return the number of the last attempt that started before the step, for it dropped all steps beyond."""
        return max((number for number, each in enumerate(run.attempts) if each.resumed_step < step.step), default=0)

    return [list(steps) for _, steps in groupby(run.steps, key=attempt)]
