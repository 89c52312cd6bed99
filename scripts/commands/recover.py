"""Bring a lost head node back, or replace its cluster by the next generation.

A head node that is stopped is started, one that does not answer is rebooted: its disk, with /home and Slurm's jobs,
stays. One that was terminated cannot be put back into its cluster: what is left of the cluster is destroyed, the next
generation is created on the same network and file systems, and /home is copied of the newest snapshot, unless it is on
storage that outlives head nodes (`homes`). Before each step it says what it does and what is lost, and asks. After an
interruption the same command continues.

Exit code 0: done, or the head node answers; 1: something blocks it, a step failed, or the answer was no; 2: arguments,
settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.temporary import temporary_directory

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.changing
@options.command(
    __doc__,
    ("recover research --dry-run", "in what state the head node is, and what would be done"),
    ("recover research", "do it; asks before each step"),
    (
        "recover research --snapshot snap-0123456789abcdef0 --confirm research",
        "another snapshot; asks nothing",
    ),
)
@argument.deployment
@click.option("--snapshot", metavar="ID", help="Copy /home of this one; default: the newest of an earlier head node.")
@click.option("--without-home", is_flag=True, help="Copy no /home; delete an EFS file system of the cluster's own.")
@click.option("--dry-run", is_flag=True, help="Show the steps; change nothing.")
@click.option("--skip", callback=options.names, default="", metavar="ID,ID", help="Checks of preflight to skip.")
@options.confirm
@options.output("json", "markdown")
def command(
    *,
    deployment: Deployment,
    snapshot: str | None,
    without_home: bool,
    dry_run: bool,
    skip: list[str],
    confirm: str | None,
    output: str,
) -> int:
    """Recover, and return the exit code."""
    from scripts.account import operations
    from scripts.change.upgrade.backend import UpgradeBackend
    from scripts.change.upgrade.recovery import Recovery
    from scripts.core.clock import Clock

    terminal.require_name(deployment.settings.name, confirm, given=dry_run, output=output)
    console, name = terminal.console(output), deployment.name
    say = terminal.speaker(console)

    def agreed(_: str) -> bool:
        return confirm is not None or terminal.agreed()

    path = options.settings_file(name)
    backend = UpgradeBackend(name, console, Clock(), say, skip=skip)
    if not dry_run:
        operations.check(deployment)
    with temporary_directory() as directory:
        work = Recovery(
            path,
            deployment.settings,
            directory,
            backend,
            agreed,
            say,
            dry_run=dry_run,
            snapshot=snapshot,
            without_home=without_home,
        )
        result = work.run()
    terminal.show(result, output)
    if result.outcome in ("complete", "abandoned"):
        terminal.suggest(f"ssh {name}")
    return result.exit_code
