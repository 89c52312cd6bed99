"""Show training runs, finished or not, on one page: throughput and loss, what they came to, and who kept them waiting.

RUN is the directory that a training job writes (its --output). Exit code 0: the page is written; 2: a run is missing or
damaged, or the page cannot be written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "report.html"


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(prog="python -m scripts report", description=__doc__)
    found.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="directory of a run")
    found.add_argument("--output", metavar="FILE", type=Path, default=OUTPUT, help="default: build/report.html")
    return found


def main() -> int:
    """Write the page that the command line asks for, and return the exit code."""
    arguments = parser().parse_args()

    from scripts.report.page import page
    from scripts.report.runs import ReportError, load

    try:
        text = page(load(arguments.runs))
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text, encoding="utf-8")
    except ReportError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"--output: got {arguments.output}; it cannot be written: {error}", file=sys.stderr)
        return 2
    print(arguments.output)
    return 0
