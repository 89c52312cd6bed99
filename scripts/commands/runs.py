"""List, compare and export training runs, finished or not: throughput, loss, attempts, slow ranks, models.

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
from scripts.core.errors import ExitCode, UnusableError

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

TENSORBOARD = '"$ULTRACLUSTER_PYTHON/bin/tensorboard"'
"""In the nodes' Python environment, which is not on PATH."""
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

    RUN is the directory of a run on the cluster, as `runs list` has it, which the head node reads as its own user, such
    as ubuntu; DEPLOYMENT is as for other commands. Without DEPLOYMENT, directories that are on this machine are read
    here, such as those of a mounted file system.

    Exit code 0: compared; 1: the head node cannot be asked; 2: a run is missing or damaged, or arguments, settings or
    credentials cannot be used.
    """,
    ("runs show research /fsx/runs/a", "one run"),
    ("runs show research /fsx/runs/a /fsx/runs/b", "two runs beside each other"),
    ("runs show research /fsx/runs/a -o json | jq .runs[0].summary.mfu", "a number, for programs"),
    ("runs show runs/a runs/b", "on this machine, without a cluster"),
)
@click.argument("directories", metavar="[DEPLOYMENT] RUN...", nargs=-1, required=True, type=click.Path())
@options.account
@options.output("json", "markdown")
def show(*, directories: Sequence[str], region: str | None, output: str) -> int:
    """Print the comparison, and return the exit code."""
    from scripts.core.report import Command, Line
    from scripts.use.report import compare, compare_on_cluster

    name, runs = options.deployment_among(directories)
    is_here = len(runs) == len(directories) and any(Path(each).is_dir() for each in runs)
    if is_here or not name:
        try:
            comparison = compare([Path(each) for each in runs])
        except UnusableError as error:
            raise UnusableError(str(error), "of a run on a cluster, ./ultracluster runs show DEPLOYMENT RUN") from None
        below = os.path.commonpath([Path(each).resolve() for each in runs])
    else:
        deployment = argument.named(name, region)
        comparison = compare_on_cluster(deployment, runs)
        below = os.path.commonpath(runs)
    view = terminal.show(comparison, output, WIDTH)
    # TensorBoard finds the runs below a directory, and names them by their paths.
    is_local = is_here or not name
    curves = f"{'tensorboard' if is_local else TENSORBOARD} --logdir {shlex.quote(below)}"
    view.show([Line("Curves:" if is_local else "Curves, on the head node:"), Command(curves)])
    if not is_here and name:
        terminal.suggest(f"port-forward {name} 6006", "then http://localhost:6006")
    return ExitCode.DONE


@options.changing
@options.subcommand(
    command,
    """Export a checkpoint to a directory on the cluster that transformers loads, with a card of what was trained.

    RUN is the directory of a run on the cluster, as `runs list` has it. DIRECTORY, an absolute path on the cluster,
    must not exist, and is there whole or not at all: config.json and model.safetensors of BERT, for `from_pretrained`,
    loaded again and compared, and README.md with program, data, options, steps, losses, versions and dates. What a run
    does not know, such as a tokenizer, is not in it. Programs of your own do the same by `export` in program.toml.

    On a head or login node it runs as you. From elsewhere it runs on the head node, on its CPU, as the owner of RUN,
    who must be able to write there; Ctrl-C ends it there, too.

    Exit code 0: exported; 1: it failed, or the head node is not reachable; 2: the checkpoint, arguments, settings or
    credentials cannot be used.
    """,
    ("runs export research /fsx/runs/phase1 /fsx/models/bert", "the newest checkpoint"),
    ("runs export research /fsx/runs/phase1 /fsx/models/bert-7000 --step 7000", "another"),
)
@argument.deployed
@click.argument("run")
@click.argument("directory")
@click.option("--step", type=click.IntRange(0), metavar="N", help="Of the checkpoint; default: the newest.")
@click.option("--env", metavar="NAME", help="Python environment, as `env list` has it; default: the cluster's.")
def export(*, deployment: Deployment, run: str, directory: str, step: int | None, env: str | None) -> int:
    """Call the cluster's export.py, here or on the head node, and return its exit code."""
    from scripts.use.export import export as export_run

    given = {"--step": step, "--env": env}
    return export_run(
        deployment, run, directory, [f"{name}={value}" for name, value in given.items() if value is not None]
    )
