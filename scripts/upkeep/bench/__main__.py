"""Measure what docs/explanation/performance.md shows, against its goals.

Synth, the largest cluster's templates, its Slurm controller, `status` and `costs`, and what training takes of a host.
Commands are measured as whole processes with all their children.

Exit code 0: every goal is met; 1: one is missed; 2: something could not be measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from scripts.upkeep.bench import controller, costs, status, synth, training
from scripts.upkeep.bench.common import BenchError

if TYPE_CHECKING:
    from scripts.upkeep.bench.common import BenchRow


def main() -> int:
    """Measure, print, and return the exit code."""
    parts: dict[str, Callable[[int], tuple[str, list[BenchRow]]]] = {
        "synth": synth.report,
        "controller": lambda _: controller.report(),
        "status": status.report,
        "costs": costs.report,
        "training": training.report,
        "trace": training.trace_report,
    }
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often a command is measured (default: 5)")
    parser.add_argument("--only", choices=parts, help="measure one part (default: all)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    codes = [0]
    for part in [options.only] if options.only else parts:
        try:
            report, rows = parts[part](options.rounds)
        except BenchError as error:
            print(error, file=sys.stderr)
            codes.append(2)
            continue
        print(report, end="\n\n")
        codes.append(1 if any(row.met is False for row in rows) else 0)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
