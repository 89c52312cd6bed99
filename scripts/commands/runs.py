"""List and compare training runs, finished or not: throughput, loss, attempts, ranks that kept the others waiting.

A run is the directory that a training job writes (its --output).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

WIDTH = 160
"""Columns of the widest table."""


@click.group("runs", cls=options.Group, help=__doc__)
def command() -> None:
    """Group what is done with records of runs."""


@options.subcommand(
    command,
    """List the runs on the cluster's file system, the newest first: how far they are, and their loss.

    The head node reads the records as its own user, such as ubuntu, never as root. Directories that this user cannot
    read are named; no links are followed.

    Exit code 0: listed; 1: the head node cannot be asked; 2: arguments, settings or credentials cannot be used.
    """,
    ("runs list research", "all below /fsx/runs"),
    ("runs list research --directory /fsx/team/runs -o json", "others, for programs"),
    name="list",
)
@argument.deployed
@click.option("--directory", metavar="DIR", help="Where they are; default: runs/ of the shared file system.")
@options.output("json", "markdown")
def list_(*, deployment: Deployment, directory: str | None, output: str) -> int:
    """Print the runs, and return the exit code."""
    from scripts.use.runs import list_runs

    listed = list_runs(deployment, directory or f"{deployment.settings.storage.file_system.mount_dir}/runs")
    terminal.show(listed, output)
    if job := next((run.job for run in listed.runs if run.job), None):
        terminal.suggest(f"jobs logs {deployment.name} {job}", "the newest job")
    return ExitCode.DONE


@options.subcommand(
    command,
    """Compare runs in tables, and name the command that shows their curves in TensorBoard.

    RUN is a directory on this machine, such as a mounted file system.

    Exit code 0: compared; 2: a run is missing or damaged.
    """,
    ("runs show /fsx/runs/a", "one run"),
    ("runs show /fsx/runs/a /fsx/runs/b", "two runs beside each other"),
    ("runs show /fsx/runs/a -o json | jq .runs[0].summary.mfu", "a number, for programs"),
)
@click.argument("directories", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.output("json", "markdown")
def show(*, directories: Sequence[Path], output: str) -> int:
    """Print the comparison, and return the exit code."""
    from scripts.core.report import Command, Line
    from scripts.use.report import compare

    view = terminal.show(compare(directories), output, WIDTH)
    # TensorBoard finds the runs below a directory, and names them by their paths.
    below = os.path.commonpath([directory.resolve() for directory in directories])
    view.show([Line("Curves:"), Command(shlex.join(["tensorboard", "--logdir", below]))])
    return ExitCode.DONE
