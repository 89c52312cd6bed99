"""Estimate what a deployment is, needs and costs, before it exists: offline, in under a second.

Prices are those of AWS's Price List API when there are credentials (kept for a week), else those of a dated table; the
output says which. Exit code 0: estimated; 2: the settings or arguments cannot be used, or the API was asked for and did
not answer.
"""

from __future__ import annotations

import argparse
import re
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

from scripts import environments
from scripts.estimate.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
BUILD = ROOT / "build"
PAGE_WORKLOAD = "bert-large-phase1"
NARROWEST = 124
"""Columns of the widest table."""
_MULTIPLES = {"": 1, "M": 10**6, "B": 10**9, "T": 10**12}


def node_list(text: str) -> list[int]:
    """Return the numbers of ``1,2,4``."""
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give numbers of nodes from 1 on, such as 1,2,4")
    return counts


def token_count(text: str) -> int:
    """Return the number of ``300B`` or ``1.8T``."""
    match = re.fullmatch(r"([\d.]+)([MBT]?)", text)
    try:
        tokens = int(Decimal(match[1]) * _MULTIPLES[match[2]]) if match else 0
    except InvalidOperation:
        tokens = 0
    if tokens < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number of tokens, such as 300B or 1.8T")
    return tokens


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m scripts estimate", description=__doc__)
    environments.add_argument(parser, CONFIG)
    parser.add_argument("--workload", choices=WORKLOADS, help="also estimate time and cost to train this")
    parser.add_argument("--nodes", type=node_list, default=[], help="numbers of nodes to train on, such as 1,2,4")
    parser.add_argument(
        "--tokens", type=token_count, help="length of a Llama run, such as 300B (default: as published)"
    )
    parser.add_argument(
        "--prices",
        choices=("auto", "api", "table"),
        default="auto",
        help="api: ask AWS's Price List now; table: never (default: %(default)s)",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument(
        "--html",
        action="store_true",
        help=f"write build/estimate-ENV.html, with a chart (of {PAGE_WORKLOAD}, unless --workload is given)",
    )
    given = parser.parse_args()
    if not given.workload and not given.html and (given.nodes or given.tokens):
        parser.error("--nodes and --tokens need a --workload")
    return given


def main() -> int:
    """Print the estimate that the command line asks for, and return the exit code."""
    given = arguments()

    from config.settings import SettingsError, load
    from scripts.estimate.estimate import estimate, wanted_products
    from scripts.estimate.prices import PriceListError, find_prices
    from scripts.estimate.training import estimate_run
    from scripts.estimate.workloads import WorkloadError

    try:
        settings = load(CONFIG / f"{given.environment}.yaml")
        prices = find_prices(settings.region, wanted_products(settings), given.prices)
        run, workload = None, given.workload or (PAGE_WORKLOAD if given.html else None)
        if workload:
            run = estimate_run(settings, prices, WORKLOADS[workload], counts=given.nodes, tokens=given.tokens)
        result = estimate(settings, prices, run)
    except (PriceListError, SettingsError, WorkloadError) as error:
        print(error, file=sys.stderr)
        return 2
    if given.json:
        print(result.to_json())
    elif given.html:
        from scripts.estimate.tables import page

        path = BUILD / f"estimate-{settings.name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(result), encoding="utf-8")
        print(path)
    else:
        from rich.text import Text

        from scripts import tables
        from scripts.estimate.tables import tables as tables_of

        console = tables.wide_console(NARROWEST)
        console.print(Text.assemble((f"Estimate of {result.name}", "bold"), f", {result.region}, {result.zone_id}"))
        for table in tables_of(result):
            console.print()
            tables.show(table, console)
        for remark in result.remarks:
            console.print(Text(f"Note: {remark}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
