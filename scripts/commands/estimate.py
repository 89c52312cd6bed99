"""Tell what a deployment is, needs and costs, before it exists: offline, in under a second.

Prices are those of AWS's Price List API when there are credentials (kept for a week), else those of a dated table; it
always tells which. Exit code 0: told; 2: the settings or arguments cannot be used, or the API was asked for and did not
answer.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

from scripts import environments
from scripts.estimate.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
PAGES = ROOT / "build"
PAGE_WORKLOAD = "bert-large-phase1"
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


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(prog="python -m scripts estimate", description=__doc__)
    environments.add_argument(found, CONFIG)
    found.add_argument("--workload", choices=WORKLOADS, help="also estimate time and cost to train this")
    found.add_argument("--nodes", type=node_list, default=[], help="numbers of nodes to train on, such as 1,2,4")
    found.add_argument("--tokens", type=token_count, help="length of a Llama run, such as 300B (default: as published)")
    found.add_argument(
        "--prices",
        choices=("auto", "api", "table"),
        default="auto",
        help="api: ask AWS's Price List now; table: never (default: %(default)s)",
    )
    output = found.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument(
        "--html",
        action="store_true",
        help=f"write build/estimate-ENV.html, with a chart (of {PAGE_WORKLOAD}, unless --workload is given)",
    )
    return found


def main() -> int:
    """Plan what the command line asks for, and return the exit code."""
    arguments_parser = parser()
    arguments = arguments_parser.parse_args()
    if not arguments.workload and not arguments.html and (arguments.nodes or arguments.tokens):
        arguments_parser.error("--nodes and --tokens need a --workload")

    from config.settings import SettingsError, load
    from scripts.estimate.plan import document, plan, plan_run, wanted_products
    from scripts.estimate.prices import PriceListError, find_prices
    from scripts.estimate.workloads import WorkloadError

    try:
        settings = load(CONFIG / f"{arguments.environment}.yaml")
        prices = find_prices(settings.region, wanted_products(settings), arguments.prices)
        workload = arguments.workload or (PAGE_WORKLOAD if arguments.html else None)
        run = None
        if workload:
            run = plan_run(settings, prices, WORKLOADS[workload], counts=arguments.nodes, tokens=arguments.tokens)
        found = plan(settings, prices, run)
    except (PriceListError, SettingsError, WorkloadError) as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(document(found), indent=2))
    elif arguments.html:
        from scripts.estimate.page import page

        path = PAGES / f"estimate-{settings.name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(found), encoding="utf-8")
        print(path)
    else:
        from rich.console import Console

        from scripts.estimate.text import NARROWEST, show

        console = Console(highlight=False)
        if not console.is_terminal:
            console = Console(highlight=False, width=max(console.width, NARROWEST))
        show(found, console)
    return 0
