"""Check whether an account has what a deployment needs, before money is spent in it. Nothing is changed.

Exit code 0: ready to deploy; 1: not ready; 2: the settings or arguments cannot be used. UNKNOWN, which means that a
check could not be made, is not ready unless --fail-on fail is given.
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
    from scripts.preflight.model import PreflightReport

CONFIG = Path(__file__).parents[2] / "config"


def names(text: str) -> list[str]:
    """Return the names of ``a,b``."""
    return [name for name in text.split(",") if name]


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    arguments = argparse.ArgumentParser(prog="python -m scripts preflight", description=__doc__)
    environments.add_argument(arguments, CONFIG)
    arguments.add_argument(
        "--only",
        type=names,
        default=[],
        metavar="ID,ID",
        help="run these checks alone (and credentials); quota- means all whose ids begin with it",
    )
    arguments.add_argument("--skip", type=names, default=[], metavar="ID,ID", help="leave these checks out")
    arguments.add_argument(
        "--fail-on",
        choices=("fail", "unknown", "warn"),
        default="unknown",
        help="what is not ready: FAIL alone; UNKNOWN, too; or WARN and UNKNOWN, too (default: %(default)s)",
    )
    output = arguments.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--print-policy", action="store_true", help="print the IAM policy that the checks need")
    output.add_argument("--list", action="store_true", help="print ids and titles of the checks")
    return arguments


def main() -> int:
    """Run the checks that the command line selects, and return the exit code."""
    arguments = parser().parse_args()

    from config.settings import SettingsError, load
    from scripts.deployment import Deployment
    from scripts.preflight.catalog import CATALOG, SelectionError, policy, select

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
        report = run(checks, Deployment(arguments.environment, settings), arguments)
    except KeyboardInterrupt:
        return 130
    return 0 if report.ok else 1


def run(checks: Sequence[Check], deployment: Deployment, arguments: argparse.Namespace) -> PreflightReport:
    """Run checks, print their results as the arguments say, and return these."""
    from rich.console import Console

    from scripts.plan.command import PLAIN_WIDTH
    from scripts.preflight import runner
    from scripts.preflight.check import CREDENTIALS, PASS
    from scripts.preflight.model import PreflightReport
    from scripts.preflight.screen import show, watch

    console = Console(highlight=False, quiet=arguments.json)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    started = time.monotonic()
    results = watch(checks, runner.run(checks, deployment), console)
    account = None
    if any(result.check == CREDENTIALS and result.status is PASS for result in results):
        account = deployment.account.ask("sts", "get_caller_identity")["Account"]
    report = PreflightReport(
        environment=arguments.environment,
        account=account,
        results=tuple(results),
        fail_on=arguments.fail_on,
        endpoint=os.environ.get("AWS_ENDPOINT_URL"),
        elapsed=time.monotonic() - started,
    )
    if arguments.json:
        print(report.to_json())
    else:
        show(report, console)
    return report
