"""Deploy for the first time, step by step, within a cost limit, and report what only AWS can confirm.

It walks docs/tutorials/first-deployment.md: network and storage, head node, an update that fails, one chip, two nodes,
sixteen nodes, of which one is killed, and the end of everything. DEPLOYMENT has Region, zone and what else is yours;
the sizes are those of the tutorial. Before each step it says what it does and what it may cost, and asks; a step for
which the limit has no room, with the destruction after it, is refused. docs/reference/assumptions.md has what it looks
at.

It refuses a deployment that it did not make, and a name under which a deleted one has kept data: its end deletes all
of the name. The report is build/prove-DEPLOYMENT/report, a folder to send to others: no account id, address, e-mail
address or name of this computer, of who runs it or of users is in it. After an interruption the same command continues.
--emulate does the same in an emulated AWS, asks nothing, and tests this command; it settles nothing about AWS.

Exit code 0: all steps are done, and nothing differs; 1: something differs, a step failed, was refused or declined; 2:
the settings, arguments or credentials cannot be used; 130: Ctrl-C, nodes are stopped, and it says what exists and what
deletes it.
"""

from __future__ import annotations

import click

from scripts.core import options, terminal
from scripts.core.errors import ExitCode
from scripts.core.text import echo

RUNGS = ("storage", "head-node", "roll-back", "one-chip", "two-nodes", "sixteen-nodes", "destroy")
"""Those of scripts.rehearse.prove.ladder, which help must not import; a test compares them."""


@options.changing
@options.command(
    __doc__,
    ("prove first --max-usd 40 --until one-chip", "up to one trn1.2xlarge, then everything is destroyed"),
    ("prove first --max-usd 1600", "the whole ladder"),
    ("prove first --max-usd 1600 --emulate", "the same here, free"),
)
@options.deployment_name
@options.profile
@click.option(
    "--max-usd", type=options.Positive(), required=True, metavar="AMOUNT",
    help="Dollars that are never exceeded, by list prices.",
)  # fmt: skip
@click.option(
    "--until", type=click.Choice(RUNGS), default="destroy", metavar="STEP",
    help=f"The last step before everything is destroyed: {', '.join(RUNGS[:-1])}.",
)  # fmt: skip
@click.option("--start-again", is_flag=True, help="Replace the report of an earlier walk that is complete.")
@click.option("--emulate", is_flag=True, help="In an emulated AWS on this computer.")
def command(*, name: str, max_usd: float, until: str, start_again: bool, emulate: bool) -> int:
    """Walk, and return the exit code."""
    terminal.require_answers(given=emulate, instead="--emulate")

    from decimal import Decimal

    from scripts.core.view import View
    from scripts.rehearse.prove.prove import Request, prove

    request = Request(name, Decimal(f"{max_usd:.2f}"), until, emulate)
    proof = prove(request, starts_again=start_again)
    View(terminal.console()).show(proof.blocks())
    echo(f"\nThe report: {request.folder / 'report'}")
    return ExitCode.DONE if proof.ok else ExitCode.FAILED
