"""What a developer waits for: the tests, and the way from a clone to a rehearsed deployment."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from scripts.upkeep.bench.common import ROOT, BenchRow, Sample, conditions, run, table

TESTS = {"test": (180, 400), "test-all": (720, 1800)}
"""Seconds, and CPU seconds, that a target may take on 2 idle cores."""
SLOWEST = 10
REHEARSED, REHEARSAL = 180, 90
"""Seconds from clone to rehearsed, with the root directory of nodes made, and of a rehearsal once that is there."""
TRAINING = 240
"""Seconds of a rehearsal with a training run."""


def tests() -> tuple[str, list[BenchRow]]:
    """Run both test targets once, and return tables of their times and of their slowest tests.

    Raises:
        BenchError: A test failed.
    """
    heading, rows, slowest = conditions("One run each"), [], []
    for target, (wall, cpu) in TESTS.items():
        print(f"make {target}", file=sys.stderr, flush=True)
        sample = run(["make", target], variables={"PYTEST_ADDOPTS": f"--durations={SLOWEST} --color=no"})
        rows.append(_row(f"`make {target}`", sample, wall, cpu))
        slowest += [BenchRow((f"`make {target}`", *each), None) for each in slowest_tests(sample.output)]
    times = table(("Command", "CPU s", "wall s", "goal"), rows)
    return f"{heading}\n\n{times}\n\n{table(('Of', 'wall s', 'phase', 'test'), slowest)}", rows


def slowest_tests(output: str) -> list[tuple[str, str, str]]:
    """Return seconds, phase and name of the slowest tests that pytest's runs list, the slowest first."""
    listed = re.findall(r"^([\d.]+)s (call|setup|teardown) +(\S.*?) *$", output, re.MULTILINE)
    return sorted(listed, key=lambda each: -float(each[0]))[:SLOWEST]


def rehearsals() -> tuple[str, list[BenchRow]]:
    """Rehearse with two nodes and a job, without and with a training run, and return the times as a table.

    Raises:
        BenchError: A rehearsal failed.
    """
    heading, rows = conditions("One run each, set-up done"), []
    for words, goal in ((("rehearse",), REHEARSAL), (("rehearse", "--train"), TRAINING)):
        rows.append(_row(f"`./ultracluster {' '.join(words)}`", run(["./ultracluster", *words]), goal))
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
            "`./ultracluster version`": run(["./ultracluster", "version"], directory, variables),
            "`./ultracluster rehearse`": run(["./ultracluster", "rehearse"], directory, variables),
        }
    total = Sample(sum(each.cpu for each in steps.values()), sum(each.wall for each in steps.values()))
    rows = [_row(step, sample, None) for step, sample in steps.items()]
    rows.append(_row("from clone to rehearsed", total, REHEARSED))
    return f"{heading}\n\n{table(('Step', 'CPU s', 'wall s', 'goal'), rows)}", rows


def _row(name: str, sample: Sample, wall: float | None, cpu: float | None = None) -> BenchRow:
    """Return a row with the goals; None: there is none."""
    goals = [f"{wall:g} s"] if wall else []
    goals += [f"{cpu:,g} of CPU"] if cpu else []
    met = sample.wall <= wall and (cpu is None or sample.cpu <= cpu) if wall else None
    return BenchRow((name, f"{sample.cpu:.0f}", f"{sample.wall:.0f}", ", ".join(goals)), met)
