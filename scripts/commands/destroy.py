"""Delete the cluster of a deployment; on request also its storage, homes and database, network and alarms.

First it shows what would be deleted, what holds data, what there is costs, and everything that blocks it. Then it asks
for the deployment's name. It stops the fleet, makes a last snapshot of the head node's /home, deletes the cluster, then
the rest, file systems and database after last backups, and shows what is left, with its costs. If AWS refuses
something, it says so and continues with the rest.
Interrupted, the same command continues where it stopped; on another machine, once AWS has ended what it does.

Exit code 0: everything is deleted, or did not exist; 1: something is not deleted, or blocks it, or AWS does not
answer; 2: arguments, settings or credentials cannot be used, or standard input is not a terminal; 130: Ctrl-C
(CloudFormation continues with what it started).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.changing
@options.command(
    __doc__,
    ("destroy research", "the cluster; file system, network and alarms stay"),
    ("destroy research --dry-run", "only show what would be deleted"),
    ("destroy research --drain", "after all jobs have ended"),
    ("destroy research --storage --unprotect", "cluster and file system, after a backup"),
    (
        "destroy dev --all --unprotect --no-final-backup --sweep --force --confirm dev",
        "everything, leftovers and running jobs too, without a question",
    ),
)
@argument.deployed
@click.option("--storage", is_flag=True, help="Delete the file system, too, after a last backup.")
@click.option("--team", is_flag=True, help="Delete homes and database, too, after last backups.")
@click.option("--network", is_flag=True, help="Delete the network, too.")
@click.option("--monitoring", is_flag=True, help="Delete alarms and dashboard, too.")
@click.option("--all", "everything", is_flag=True, help="The four above.")
@click.option(
    "--no-final-backup",
    is_flag=True,
    help="Make no last snapshot of the head node, no last backups of file systems and database.",
)
@click.option(
    "--retained-bucket", "bucket", is_flag=True, help="With --storage: delete a bucket that was retained, too."
)
@click.option("--unprotect", is_flag=True, help="Remove termination protection, delete what retain keeps.")
@click.option("--sweep", is_flag=True, help="Remove leftovers that are not kept on purpose.")
@options.drain
@options.force
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@options.confirm
@options.output("json", "markdown")
def command(*, deployment: Deployment, confirm: str | None, dry_run: bool, output: str, **choices: Any) -> int:
    """Show, ask, delete and show the result; return the exit code."""
    from scripts.change.destroy.model import DestroyOptions
    from scripts.change.destroy.run import run

    options.exclusive(drain=choices["drain"], force=choices["force"])
    destroy_options = DestroyOptions.of(**choices)
    terminal.require_name(deployment.settings.name, confirm, given=dry_run, output=output)
    result, error = run(deployment, destroy_options, output, asks=confirm is None, dry_run=dry_run)
    if output == "json":
        print(result.to_json())
    if error is not None:
        raise error
    if result.outcome:
        following = ("inventory", "what is left, and what it costs") if result.ok else ("diagnose", "why it failed")
        terminal.suggest(f"{following[0]} {deployment.name}", following[1])
    return ExitCode.DONE if result.ok else ExitCode.FAILED
