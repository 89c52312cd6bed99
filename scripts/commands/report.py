"""Compare training runs, finished or not: throughput, loss, attempts, and ranks that kept the others waiting.

RUN is the directory that a training job writes (its --output). TensorBoard shows the curves: the last line has its
command. Exit code 0: compared; 2: a run is missing or damaged.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

NARROWEST = 160
"""Columns of the widest table."""


def main() -> int:
    """Print the report that the command line asks for, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts report", description=__doc__)
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="directory of a run")
    directories = parser.parse_args().runs

    from scripts.report import ReportError, load, tables
    from scripts.tables import show, wide_console

    try:
        runs = load(directories)
    except ReportError as error:
        print(error, file=sys.stderr)
        return 2
    console = wide_console(NARROWEST)
    for table in tables(runs):
        show(table, console)
        console.print()
    # TensorBoard finds the runs below a directory, and names them by their paths.
    below = os.path.commonpath([directory.resolve() for directory in directories])
    console.print(f"Curves: {shlex.join(['tensorboard', '--logdir', below])}", markup=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
