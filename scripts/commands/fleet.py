"""Stop, start and scale the compute nodes of a cluster, or show their state. The head node stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment
    from scripts.change.fleet.document import FleetState
    from scripts.change.fleet.scaling import Scaled

_STATUS = """Show the state of the fleet and its queues.

Exit code 0: shown; 1: AWS or Slurm does not answer; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
"""
_CONTINUES = "A {} that was requested continues in AWS. The same command waits for it, or does what is left."


@click.group("fleet", cls=options.Group, help=__doc__)
def command() -> None:
    """Group the actions on the fleet."""


@options.subcommand(command, _STATUS, ("fleet status research", "as it is now"))
@argument.deployed
@options.output("json", "markdown")
def status(*, deployment: Deployment, output: str) -> int:
    """Show the state, and return the exit code."""
    is_known = _show(deployment, output).queues is not None
    if output == "text":
        terminal.suggest(f"{'jobs list' if is_known else 'diagnose'} {deployment.name}")
    return ExitCode.DONE if is_known else ExitCode.FAILED


@options.changing
@options.subcommand(
    command,
    """Terminate all compute nodes, and wait until EC2 has done it. Interrupted, the same command continues.

    While jobs have nodes, nothing is stopped without --drain or --force.

    Exit code 0: stopped; 1: not stopped, the message says why; 2: arguments, settings or credentials cannot be used, or
    standard input is not a terminal; 130: Ctrl-C.
    """,
    ("fleet stop research", "if no job has nodes"),
    ("fleet stop research --drain --limit 90", "wait for jobs, 90 minutes at most"),
)
@argument.deployed
@options.drain
@options.force
@click.option("--limit", type=options.Positive(), metavar="MINUTES", help="With --drain: longest wait for jobs.")
@options.yes
@options.output("json", "markdown")
def stop(*, deployment: Deployment, drain: bool, force: bool, limit: float | None, yes: bool, output: str) -> int:
    """Stop the fleet, show it, and return the exit code."""
    options.exclusive(drain=drain, force=force)
    if limit is not None and not drain:
        raise click.UsageError("--limit goes with --drain.")

    from scripts.account import compute_fleet, operations
    from scripts.change.fleet import control
    from scripts.core.clock import Clock

    terminal.require_answers(given=yes or not force, output=output)
    clock, say = Clock(), terminal.speaker(terminal.console(output))
    seconds = None if limit is None else limit * 60
    compute_fleet.known_status(deployment)  # without credentials or a cluster nothing is requested
    operations.check(deployment)
    with terminal.report_interrupted(_CONTINUES.format("stop")):
        confirm = None if yes else terminal.confirm
        control.stop(deployment, clock=clock, say=say, drain=drain, force=force, drain_limit=seconds, confirm=confirm)
    _show(deployment, output, following="fleet start")
    return ExitCode.DONE


@options.changing
@options.subcommand(
    command,
    """Accept jobs again, after a stop.

    Exit code 0: started; 1: not started, the message says why; 2: arguments, settings or credentials cannot be used;
    130: Ctrl-C.
    """,
    ("fleet start research", "the queues accept jobs, nodes start with them"),
)
@argument.deployment
@options.output("json", "markdown")
def start(*, deployment: Deployment, output: str) -> int:
    """Start the fleet, show it, and return the exit code."""
    from scripts.account import compute_fleet, operations
    from scripts.change.fleet import control
    from scripts.core.clock import Clock

    compute_fleet.known_status(deployment)
    operations.check(deployment)
    with terminal.report_interrupted(_CONTINUES.format("start")):
        control.start(deployment, clock=Clock(), say=terminal.speaker(terminal.console(output)), overrule=True)
    _show(deployment, output, following="jobs list")
    return ExitCode.DONE


@options.changing
@options.subcommand(
    command,
    """Change min_count or max_count in the settings file and deploy it.

    The fleet is stopped and started where the change needs that; while jobs have nodes, it is not without --drain or
    --force.

    Exit code 0: scaled; 1: not scaled, the message says why; 2: arguments, settings or credentials cannot be used, or
    standard input is not a terminal; 130: Ctrl-C.
    """,
    ("fleet scale research --max 32", "up to 32 nodes in the only queue"),
    ("fleet scale research --queue trn1-a --min 2 --max 4 --dry-run", "only show the steps"),
)
@argument.deployment
@click.option(
    "--queue",
    "target",
    metavar="QUEUE[/COMPUTE-RESOURCE]",
    shell_complete=options.complete_queues,
    help="Which nodes, unless there is only one compute resource.",
)
@click.option("--min", "minimum", type=click.IntRange(min=0), metavar="N", help="Static nodes (min_count).")
@click.option("--max", "maximum", type=click.IntRange(min=0), metavar="N", help="Nodes at most (max_count).")
@options.drain
@options.force
@click.option("--dry-run", is_flag=True, help="Only show the steps.")
@click.option("--no-preflight", is_flag=True, help="Do not check quotas and capacity first.")
@options.yes
@options.output("json", "markdown")
def scale(
    *,
    deployment: Deployment,
    target: str | None,
    minimum: int | None,
    maximum: int | None,
    drain: bool,
    force: bool,
    dry_run: bool,
    no_preflight: bool,
    yes: bool,
    output: str,
) -> int:
    """Show the steps to other counts, ask, take them, and return the exit code."""
    options.exclusive(drain=drain, force=force)
    counts = {key: count for key, count in (("min_count", minimum), ("max_count", maximum)) if count is not None}
    if not counts:
        raise click.UsageError("--min, --max or both are needed.")

    from scripts.change.fleet import scaling
    from scripts.core.clock import Clock

    terminal.require_answers(given=yes or dry_run, instead="--yes or --dry-run", output=output)
    scaled = scaling.scale(
        deployment,
        target,
        counts,
        clock=Clock(),
        say=terminal.speaker(terminal.console(output)),
        drain=drain,
        force=force,
        dry_run=dry_run,
        checks=not no_preflight,
        asks=not yes,
        quiet=output != "text",
    )
    _show(deployment, output, scaled, following="" if dry_run else "jobs list")
    return ExitCode.DONE


def _show(deployment: Deployment, output: str, scaled: Scaled | None = None, following: str = "") -> FleetState:
    """Print the state of the fleet, suggest the following command, and return the state."""
    from scripts.change.fleet import document

    state = document.collect(deployment, scaled)
    terminal.show(state, output)
    if following:
        terminal.suggest(f"{following} {deployment.name}")
    return state
