"""Measure what docs/explanation/performance.md shows, against its goals.

By default synth, the largest cluster's templates, its Slurm controller, `status` and `costs`; on request the tests, and
the way from a clone to a rehearsed deployment. Commands are measured as whole processes with all their children.

Exit code 0: every goal is met; 1: one is missed; 2: something could not be measured.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from scripts.upkeep.bench import controller, costs, developer, status, synth
from scripts.upkeep.bench.common import ROOT, BenchError

if TYPE_CHECKING:
    from scripts.upkeep.bench.common import BenchRow

PAGE = ROOT / "docs/explanation/performance.md"
ON_REQUEST = ("tests", "clone", "rehearse")


def write(part: str, report: str) -> None:
    """Put a report between its markers on the page."""
    between = re.compile(rf"(?<=<!-- make bench: {part} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between.sub(lambda _: f"\n{report}\n\n", page), encoding="utf-8")


def main() -> int:
    """Measure, print, and return the exit code."""
    parts: dict[str, Callable[[int], tuple[str, list[BenchRow]]]] = {
        "synth": synth.report,
        "controller": lambda _: controller.report(),
        "status": status.report,
        "costs": costs.report,
        "tests": lambda _: developer.tests(),
        "clone": lambda _: developer.clone(),
        "rehearse": lambda _: developer.rehearsals(),
    }
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often a command is measured (default: 5)")
    parser.add_argument("--only", choices=parts, help=f"measure one part (default: all but {', '.join(ON_REQUEST)})")
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/explanation/performance.md")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    codes = [0]
    for part in [options.only] if options.only else [each for each in parts if each not in ON_REQUEST]:
        try:
            report, rows = parts[part](options.rounds)
        except BenchError as error:
            print(error, file=sys.stderr)
            codes.append(2)
            continue
        print(report, end="\n\n")
        codes.append(1 if any(row.met is False for row in rows) else 0)
        if options.write:
            write(part, report)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
