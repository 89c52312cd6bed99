"""Copy /home of a snapshot of an earlier head node to the running head node.

For a cluster that was destroyed and deployed again, or an upgrade: a lost head node cannot be put back into its
cluster. A volume is created of the snapshot, attached to the head node, copied by Systems Manager, detached and
deleted. Existing files are not changed. After an interruption the same command continues.

Exit code 0: done; 1: there is no such snapshot or no head node, /home is on EFS, or a step failed; 2: arguments,
settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.changing
@options.command(
    __doc__,
    ("restore research --list", "the snapshots"),
    ("restore research --list -o json | jq -r .snapshots[0].id", "the newest one's id, for programs"),
    ("restore research", "from the newest one of an earlier head node"),
    ("restore research --snapshot snap-0123456789abcdef0", "from another one"),
)
@argument.deployment
@click.option("--snapshot", metavar="ID", help="Copy from this one; default: the newest of an earlier head node.")
@click.option("--list", "only_list", is_flag=True, help="List the snapshots; change nothing.")
@options.output("json", "markdown")
def command(*, deployment: Deployment, snapshot: str | None, only_list: bool, output: str) -> int:
    """List the snapshots or restore one, and return the exit code."""
    from scripts.change.restoration import SnapshotList, restore, snapshots
    from scripts.core.clock import Clock

    if only_list:
        listed = SnapshotList(snapshots=tuple(snapshots(deployment)))
        terminal.show(listed, output)
        if listed.snapshots:
            terminal.suggest(f"restore {deployment.name}", "the newest of an earlier head node")
        return ExitCode.DONE
    chosen = restore(deployment, snapshot, Clock(), terminal.speaker(terminal.console(output)))
    terminal.show(chosen, output)
    terminal.suggest(f"ssh {deployment.name}")
    return ExitCode.DONE
