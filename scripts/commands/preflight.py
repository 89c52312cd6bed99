"""Look whether an account has what a deployment needs, before money is spent in it. Nothing is changed.

Exit code 0: there is no fault; 1: there is one; 2: the settings or arguments cannot be used. UNKNOWN, which means that
nobody could look, is a fault unless --fail-on fail is given.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scripts import environments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.deployment import Deployment
    from scripts.preflight.check import Check
    from scripts.preflight.report import Report
    from scripts.preflight.runner import Result

CONFIG = Path(__file__).parents[2] / "config"


def names(text: str) -> list[str]:
    """Return the names of ``a,b``."""
    return [name for name in text.split(",") if name]


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(prog="python -m scripts preflight", description=__doc__)
    environments.add_argument(found, CONFIG)
    found.add_argument(
        "--only",
        type=names,
        default=[],
        metavar="ID,ID",
        help="look at these alone (and at credentials); quota- means all whose ids begin so",
    )
    found.add_argument("--skip", type=names, default=[], metavar="ID,ID", help="do not look at these")
    found.add_argument(
        "--fail-on",
        choices=("fail", "unknown", "warn"),
        default="unknown",
        help="what counts as a fault: FAIL alone; UNKNOWN, too; or WARN and UNKNOWN, too (default: %(default)s)",
    )
    output = found.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--print-policy", action="store_true", help="print the IAM policy that the checks need")
    output.add_argument("--list", action="store_true", help="print the ids of the checks, and what they look at")
    return found


def main() -> int:
    """Look at what the command line asks for, and return the exit code."""
    arguments = parser().parse_args()

    from config.settings import SettingsError, load
    from scripts.deployment import Deployment
    from scripts.preflight.catalog import CATALOG
    from scripts.preflight.selection import SelectionError, policy, select

    try:
        settings = load(CONFIG / f"{arguments.environment}.yaml")
        checks = select(CATALOG, arguments.only, arguments.skip)
    except (SelectionError, SettingsError) as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.list:
        width = max(len(each.id) for each in checks)
        print(*(f"{each.id:{width}}  {each.title}" for each in checks), sep="\n")
        return 0
    if arguments.print_policy:
        print(json.dumps(policy(checks), indent=2))
        return 0
    try:
        report = look(checks, CATALOG[0], Deployment(arguments.environment, settings), arguments)
    except KeyboardInterrupt:
        return 130
    return 0 if report.ok else 1


def look(checks: Sequence[Check], first: Check, deployment: Deployment, arguments: argparse.Namespace) -> Report:
    """Run checks, print what comes of them, and return it.

    Args:
        checks: What to look at.
        first: The check that tells whether the account can be asked.
        deployment: Where to look.
        arguments: Those of the command line.
    """
    from rich.console import Console

    from scripts.plan.command import PLAIN_WIDTH
    from scripts.preflight.report import Report
    from scripts.preflight.runner import run
    from scripts.preflight.screen import show, watch

    console = Console(highlight=False, quiet=arguments.json)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    began = time.monotonic()
    results = watch(checks, run(checks, deployment, first=first), console)
    seconds = time.monotonic() - began
    account = account_of(deployment, first, results)
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    report = Report(arguments.environment, endpoint, account, results, arguments.fail_on, seconds)
    if arguments.json:
        print(json.dumps(report.document(), indent=2))
    else:
        show(report, console)
    return report


def account_of(deployment: Deployment, first: Check, results: Sequence[Result]) -> str | None:
    """Return the account that was asked; None: credentials were not looked at, or are not good."""
    from scripts.preflight.check import Status

    if any(result.check is first and result.finding.status is Status.PASS for result in results):
        return str(deployment.account.ask("sts", "get_caller_identity")["Account"])
    return None
