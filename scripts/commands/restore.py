"""Copy /home of a snapshot of an earlier head node to the running head node.

For a cluster that was destroyed and deployed again, or an upgrade: a lost head node cannot be put back into its
cluster. A volume is created of the snapshot, attached to the head node, copied by Systems Manager, detached and
deleted. Existing files are not changed. After an interruption the same command continues.

Exit code 0: done; 1: there is no such snapshot or no head node, /home is on EFS, or a step failed; 2: arguments,
settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scripts import command, environments

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

EXAMPLES = """\
  python -m scripts restore trn1-16 --list                             lists the snapshots
  python -m scripts restore trn1-16                                    the newest one of an earlier head node
  python -m scripts restore trn1-16 --snapshot snap-0123456789abcdef0  another one"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    options = argparse.ArgumentParser(
        prog="python -m scripts restore",
        description=__doc__,
        epilog=f"examples:\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    environments.add_argument(options, command.CONFIG)
    options.add_argument(
        "--snapshot", metavar="ID", help="copy from this one (default: the newest of an earlier head node)"
    )
    options.add_argument("--list", action="store_true", help="list the snapshots; change nothing")
    options.set_defaults(json=False)
    return options


def program(deployment: Deployment, parsed: argparse.Namespace, console: Console) -> int:
    """List the snapshots or restore one, and return the exit code."""
    from scripts.clock import Clock
    from scripts.restoration import restore, snapshots

    say = command.speaker(console)
    if parsed.list:
        listed = snapshots(deployment)
        for each in listed:
            say(f"{each.id}  {each.since:%Y-%m-%d %H:%M} UTC  {each.gib:>6,} GiB  {each.volume} of {each.cluster}")
        if not listed:
            say(f"There is no snapshot of a head node of {deployment.settings.name}.")
        return command.DONE
    chosen = restore(deployment, parsed.snapshot, Clock(), say)
    say(f"/home of {chosen.id} is on the head node. Users and what was installed outside /home are not.")
    return command.DONE


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    return command.run(parser().parse_args(), program)
