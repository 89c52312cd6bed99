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

from scripts import options, terminal
from scripts.errors import ExitCode

if TYPE_CHECKING:
    from scripts.deployment import Deployment


@options.command(
    __doc__,
    ("restore research --list", "the snapshots"),
    ("restore research", "from the newest one of an earlier head node"),
    ("restore research --snapshot snap-0123456789abcdef0", "from another one"),
)
@options.deployment
@click.option("--snapshot", metavar="ID", help="Copy from this one; default: the newest of an earlier head node.")
@click.option("--list", "only_list", is_flag=True, help="List the snapshots; change nothing.")
def command(*, deployment: Deployment, snapshot: str | None, only_list: bool) -> int:
    """List the snapshots or restore one, and return the exit code."""
    from scripts.clock import Clock
    from scripts.restoration import restore, snapshots

    say = terminal.speaker(terminal.console())
    if only_list:
        listed = snapshots(deployment)
        for each in listed:
            say(f"{each.id}  {each.since:%Y-%m-%d %H:%M} UTC  {each.gib:>6,} GiB  {each.volume} of {each.cluster}")
        if not listed:
            say(f"There is no snapshot of a head node of {deployment.settings.name}.")
        return ExitCode.DONE
    chosen = restore(deployment, snapshot, Clock(), say)
    say(f"/home of {chosen.id} is on the head node. Users and what was installed outside /home are not.")
    return ExitCode.DONE
