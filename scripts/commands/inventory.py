"""List every resource of a deployment, with its stack, its age and what it costs per month.

All stacks with those nested in them, the cluster's own, what the fleet launched, backups, and what is left of deleted
stacks. What holds data is marked. Prices are those of `estimate`, without discounts; "-" is free.

Exit code 0: everything was listed; 1: a permission is missing, and something may be left out (it says which); 2:
arguments, settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.command(
    __doc__,
    ("inventory research", "tables, many of a kind on one line"),
    ("inventory research -o markdown > page.md", "every resource by itself, with its tags, for a wiki"),
    ("inventory research -o json", "the same for programs"),
)
@argument.deployed
@options.output("json", "markdown")
def command(*, deployment: Deployment, output: str) -> int:
    """List, and return the exit code."""
    from scripts.watch.inventory.resources import LEFT, WITHOUT_STACK, inventory

    resources = inventory(deployment)
    terminal.show(resources, output)
    if any(each.stack not in WITHOUT_STACK for each in resources.resources):
        terminal.suggest(f"destroy {deployment.name} --dry-run", "what could be deleted")
    elif any(each.stack == LEFT for each in resources.resources):
        terminal.suggest(f"destroy {deployment.name} --all --sweep", "what is left over")
    return ExitCode.FAILED if resources.not_listed else ExitCode.DONE
