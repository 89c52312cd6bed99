"""Replace the cluster by a second one beside it, on the same network and file system: for what needs a new cluster.

Another version of ParallelCluster, another OS or head node needs another cluster. The second is deployed and verified,
jobs are drained from the first, which is then destroyed after a last snapshot of its head node with /home. Each step is
shown before it is done. After any interruption the same command continues where it stopped; until the first is
destroyed, --abandon goes back.

Exit code 0: done, or nothing to do; 1: something blocks it, a step failed, or the answer was no; 2: arguments, settings
or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    ("upgrade research --dry-run", "what would be done for the settings file as it is"),
    ("upgrade research --set cluster.os=ubuntu2204", "another OS; asks before each step"),
    ("upgrade research --confirm research --drain-limit 48", "asks nothing, waits two days for jobs at most"),
    ("upgrade research --abandon", "back to the first cluster"),
)
@argument.deployment
@click.option(
    "--set", "edits", multiple=True, metavar="KEY=VALUE", help="Change a value of the settings file, too; repeatable."
)
@click.option("--anyway", is_flag=True, help="Create a second cluster although nothing needs one.")
@click.option("--abandon", is_flag=True, help="Destroy the second cluster and go back to the first.")
@click.option("--dry-run", is_flag=True, help="Check and show the steps; change nothing.")
@click.option("--drain-limit", type=options.Positive(), metavar="HOURS", help="Longest wait for jobs; default: none.")
@click.option("--no-final-backup", is_flag=True, help="Make no last snapshot of the head node that is destroyed.")
@click.option("--skip", callback=options.names, default="", metavar="ID,ID", help="Checks of preflight to skip.")
@options.confirm
@options.output("json", "markdown")
def command(
    *,
    deployment: Deployment,
    edits: Sequence[str],
    anyway: bool,
    abandon: bool,
    dry_run: bool,
    drain_limit: float | None,
    no_final_backup: bool,
    skip: list[str],
    confirm: str | None,
    output: str,
) -> int:
    """Upgrade, or go back, and return the exit code."""
    from scripts.account import operations
    from scripts.change.upgrade.backend import UpgradeBackend
    from scripts.change.upgrade.upgrade import Upgrade, edit
    from scripts.core.clock import Clock

    terminal.require_name(deployment.settings.name, confirm, given=dry_run, output=output)
    console = terminal.console(output)
    say = terminal.speaker(console)

    def agreed(_: str) -> bool:
        return confirm is not None or terminal.agreed()

    limit = None if drain_limit is None else drain_limit * 3600
    name = deployment.name
    backend = UpgradeBackend(
        name, console, Clock(), say, skip=skip, drain_limit=limit, final_backup=not no_final_backup
    )
    path = options.settings_file(name)
    changes = dict(map(edit, edits))
    if not dry_run:
        operations.check(deployment)
    with temporary_directory() as directory:
        work = Upgrade(path, deployment.settings, directory, backend, agreed, say, changes, anyway, dry_run)
        result = work.run(abandon=abandon)
    terminal.show(result, output)
    if result.outcome in ("complete", "abandoned"):
        terminal.suggest(f"ssh {name}")
    return result.exit_code
