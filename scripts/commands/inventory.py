"""List every resource of a deployment, with its stack, its age and what it costs per month.

All stacks with those nested in them, the cluster's own, what the fleet launched, backups, and what is left of deleted
stacks. What holds data is marked. Prices are those of `make estimate`, without discounts; "-" is free.

Exit code: 0: everything was listed; 1: a permission is missing, and something may be left out (it says which); 2:
arguments, settings or credentials cannot be used.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scripts.command import DONE, FAILED, parser, run

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

_EXAMPLES = """\
  python -m scripts inventory trn1-16                       tables, many of a kind on one line
  python -m scripts inventory trn1-16 --markdown > page.md  every resource by itself, with its tags, for a wiki
  python -m scripts inventory trn1-16 --json                the same for programs"""


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = parser("inventory", __doc__, _EXAMPLES)
    command.add_argument("--markdown", action="store_true", help="print Markdown")
    return command


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """List, and return the exit code."""
    from scripts.clock import Clock
    from scripts.inventory import screen
    from scripts.inventory.resources import inventory

    resources = inventory(deployment)
    if given.json:
        print(resources.to_json())
    elif given.markdown:
        print(screen.markdown(resources, Clock().now()))
    else:
        screen.show(resources, console, Clock().now())
    return FAILED if resources.not_looked_at else DONE


def main() -> int:
    """List what the command line asks for, and return the exit code."""
    return run(arguments().parse_args(), program)
