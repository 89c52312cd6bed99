"""What a developer waits for: the tests, and the way from a clone to a rehearsed deployment."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from scripts.bench.common import ROOT, BenchRow, Sample, conditions, run, table


class Goal(NamedTuple):
    """Seconds that something may take on 2 idle cores; None: no goal."""

    wall: float
    cpu: float | None = None

    @property
    def text(self) -> str:
        """The goal for people."""
        return f"{self.wall:g} s" + (f", {self.cpu:,g} of CPU" if self.cpu else "")

    def met(self, sample: Sample) -> bool:
        """Whether a command took no longer."""
        return sample.wall <= self.wall and (self.cpu is None or sample.cpu <= self.cpu)


TESTS = {"test": Goal(180, 400), "test-all": Goal(720, 1800)}
REHEARSED, REHEARSAL = Goal(75), Goal(45)


def tests() -> tuple[str, list[BenchRow]]:
    """Run both test targets once, and return their times as a table.

    Raises:
        BenchError: A test failed.
    """
    heading, rows = conditions("One run each"), []
    for target, goal in TESTS.items():
        print(f"make {target}", file=sys.stderr, flush=True)
        rows.append(_row(f"`make {target}`", run(["make", target]), goal))
    return f"{heading}\n\n{table(('Command', 'CPU s', 'wall s', 'goal'), rows)}", rows


def clone() -> tuple[str, list[BenchRow]]:
    """Clone the last commit, set it up and rehearse, and return the times as a table.

    Caches of downloads are those of this machine.

    Raises:
        BenchError: Something failed.
    """
    heading = conditions("One run")
    path = [each for each in os.environ["PATH"].split(os.pathsep) if not Path(each).is_relative_to(ROOT)]
    variables = {"PATH": os.pathsep.join(path)}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "clone"
        steps = {
            "clone": run(["git", "clone", "--quiet", str(ROOT), str(directory)]),
            "`make setup`": run(["make", "setup"], directory, variables),
            "`make rehearse`": run(["make", "rehearse"], directory, variables),
        }
    total = Sample(sum(each.cpu for each in steps.values()), sum(each.wall for each in steps.values()))
    goals = {"`make rehearse`": REHEARSAL}
    rows = [_row(step, sample, goals.get(step)) for step, sample in steps.items()]
    rows.append(_row("from clone to rehearsed", total, REHEARSED))
    return f"{heading}\n\n{table(('Step', 'CPU s', 'wall s', 'goal'), rows)}", rows


def _row(name: str, sample: Sample, goal: Goal | None) -> BenchRow:
    met = None if goal is None else goal.met(sample)
    return BenchRow((name, f"{sample.cpu:.0f}", f"{sample.wall:.0f}", goal.text if goal else ""), met)
