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

    view = terminal.view(output)
    if only_list:
        listed = SnapshotList(snapshots=tuple(snapshots(deployment)))
        if output == "json":
            print(listed.to_json())
        for each in listed.snapshots:
            size, taken = f"{each.gib:>6,} GiB", f"{each.since:%Y-%m-%d %H:%M} UTC"
            view.print(f"{each.id}  {taken}  {size}  {each.volume} of {each.cluster}")
        if not listed.snapshots:
            view.print(f"There is no snapshot of a head node of {deployment.settings.name}.")
        else:
            terminal.suggest(f"restore {deployment.name}", "the newest of an earlier head node")
        return ExitCode.DONE
    chosen = restore(deployment, snapshot, Clock(), terminal.speaker(view))
    done = f"/home of {chosen.id} is on the head node. Users and what was installed outside /home are not."
    view.print(done)
    if output == "json":
        print(chosen.to_json())
    terminal.suggest(f"ssh {deployment.name}")
    return ExitCode.DONE
