"""Show who used nodes for how long, and what it cost: by Slurm's accounting and the prices of the estimate.

Runs that were preempted, requeued or lost a node count, too. Hours without a job are "unattributed". --until is the
first moment that is not counted; times are UTC. A table has the 40 most expensive, JSON and CSV have all.

Exit code 0: shown; 1: the head node cannot be asked, or Slurm keeps no accounts; 2: arguments, settings or credentials
cannot be used.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode
from scripts.core.text import echo

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"])


@options.command(
    __doc__,
    ("costs research", "this month, by user"),
    ("costs research --by account --since 2026-10-01 --until 2026-11-01 -o csv", "a month, for a spreadsheet"),
    ("costs research --by job -o json | jq .costs[0]", "the most expensive job, for programs"),
)
@argument.deployed
@click.option(
    "--by",
    type=click.Choice(("user", "account", "queue", "job")),
    default="user",
    show_default=True,
    help="What is added up.",
)
@click.option(
    "--since", type=_TIME, metavar="TIME", help="Such as 2026-11-01 or 2026-11-01T08:00; default: this month."
)
@click.option("--until", type=_TIME, metavar="TIME", help="The same; default: now.")
@options.output("json", "markdown", "csv")
def command(
    *,
    deployment: Deployment,
    by: Literal["user", "account", "queue", "job"],
    since: datetime | None,
    until: datetime | None,
    output: str,
) -> int:
    """Print the costs, and return the exit code."""
    from scripts.core.clock import Clock
    from scripts.use.costs.costs import collect, month

    month_start, now = month(Clock())
    start = month_start if since is None else since.replace(tzinfo=UTC)
    end = now if until is None else min(until.replace(tzinfo=UTC), now)
    if start >= end:
        raise click.UsageError(
            f"got {start:%Y-%m-%dT%H:%M} to {end:%Y-%m-%dT%H:%M}; allowed: --since before --until and now"
        )
    report = collect(deployment, start, end, by)
    if output == "csv":
        from scripts.use.costs.report import as_csv

        echo(as_csv(report), end="")
    else:
        terminal.show(report, output)
        terminal.suggest(f"jobs list {deployment.name}")
    return ExitCode.DONE
