"""Estimate what a deployment is, needs and costs, before it exists: offline, in under a second.

Prices are those of AWS's Price List API when there are credentials (kept for a week), else those of a dated table; the
output says which.

Exit code 0: estimated; 2: the settings or arguments cannot be used, or the API was asked for and did not answer.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Literal

import click

from scripts.core import options, terminal
from scripts.core.errors import ExitCode

WORKLOADS = (
    *("bert-large-phase1", "bert-large-phase2", "llama-2-7b", "llama-2-13b", "llama-2-70b"),
    *("llama-3.1-8b", "llama-3.1-70b"),
)
"""Those of scripts.check.estimate.workloads, which help must not import; a test compares them."""
_MULTIPLES = {"": 1, "M": 10**6, "B": 10**9, "T": 10**12}


def node_list(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    """Return the numbers of ``1,2,4``."""
    parts = text.split(",") if text else []
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"got {text}; allowed: numbers of nodes from 1 on, such as 1,2,4")
    return [int(part) for part in parts]


def _tokens(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    return None if text is None else token_count(text)


def token_count(text: str) -> int:
    """Return the number of ``300B`` or ``1.8T``."""
    match = re.fullmatch(r"([\d.]+)([MBT]?)", text)
    try:
        tokens = int(Decimal(match[1]) * _MULTIPLES[match[2]]) if match else 0
    except InvalidOperation:
        tokens = 0
    if tokens < 1:
        raise click.BadParameter(f"got {text}; allowed: a number of tokens, such as 300B or 1.8T")
    return tokens


@options.command(
    __doc__,
    ("estimate research", "sizes, costs, quotas"),
    ("estimate research --workload llama-2-7b --nodes 4,8,16", "also time and cost to train"),
)
@options.deployment_name
@options.profile
@click.option("--workload", type=click.Choice(WORKLOADS), help="Also estimate time and cost to train this.")
@click.option(
    "--nodes", callback=node_list, default="", metavar="N,N", help="Numbers of nodes to train on, such as 1,2,4."
)
@click.option(
    "--tokens", callback=_tokens, metavar="TOKENS", help="Length of a Llama run, such as 300B; default: published."
)
@click.option(
    "--prices",
    type=click.Choice(("auto", "api", "table")),
    default="auto",
    show_default=True,
    help="api: ask AWS's Price List now; table: never.",
)
@options.output("json", "markdown")
def command(
    *,
    name: str,
    workload: str | None,
    nodes: list[int],
    tokens: int | None,
    prices: Literal["auto", "api", "table"],
    output: str,
) -> int:
    """Print the estimate, and return the exit code."""
    if workload is None and (nodes or tokens):
        raise click.UsageError("--nodes and --tokens go with --workload.")

    from scripts.check.estimate.estimate import estimate_deployment

    settings = options.settings_of(name)
    result = estimate_deployment(name, settings, prices, workload, counts=nodes, tokens=tokens)
    terminal.show(result, output)
    terminal.suggest(f"preflight {name}")
    return ExitCode.DONE
