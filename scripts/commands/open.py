"""Open pages of the AWS console: stacks, instances, file system, dashboard and logs of a deployment.

Without a browser the addresses are printed only.

Exit code 0: opened or printed; 2: arguments or settings cannot be used.
"""

from __future__ import annotations

import webbrowser

import click

from scripts.core import options
from scripts.core.errors import ExitCode
from scripts.core.text import echo

PAGES = ("stacks", "cluster", "nodes", "storage", "dashboard", "logs")


@options.command(
    __doc__,
    ("open research", "all stacks of the deployment"),
    ("open research dashboard --print", "only print the address"),
    name="open",
)
@options.deployment_name
@click.argument("page", type=click.Choice(PAGES), default="stacks")
@click.option("--print", "only_print", is_flag=True, help="Print the address; open nothing.")
def command(*, name: str, page: str, only_print: bool) -> int:
    """Print and open a page, and return the exit code."""
    from scripts.open import addresses

    address = addresses(options.settings_of(name))[page]
    echo(address)
    if not only_print:
        webbrowser.open(address)
    return ExitCode.DONE
