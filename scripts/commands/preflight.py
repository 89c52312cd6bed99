"""Check whether the account has what a deployment needs, before money is spent in it. Nothing is changed.

Exit code 0: ready to deploy; 1: not ready; 2: the settings or arguments cannot be used; 130: Ctrl-C. UNKNOWN, which
means that a check could not be made, is not ready unless --fail-on fail is given.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment
    from scripts.check.preflight.model import FailOn


@options.command(
    __doc__,
    ("preflight research", "all checks, with a fix for each that failed"),
    ("preflight research --only quota-,capacity-", "those whose ids begin so"),
    ("preflight research --print-policy", "the IAM policy that the checks need"),
)
@argument.deployment
@click.option(
    "--only",
    callback=options.names,
    default="",
    metavar="ID,ID",
    help="Run these checks alone (and credentials); quota- means all whose ids begin with it.",
)
@click.option("--skip", callback=options.names, default="", metavar="ID,ID", help="Leave these checks out.")
@click.option(
    "--fail-on",
    type=click.Choice(("fail", "unknown", "warn")),
    default="unknown",
    show_default=True,
    help="What is not ready: FAIL alone; UNKNOWN, too; or WARN and UNKNOWN, too.",
)
@click.option("--print-policy", is_flag=True, help="Print the IAM policy that the checks need.")
@click.option("--list", "only_list", is_flag=True, help="Print ids and titles of the checks.")
@options.output("json", "markdown")
def command(
    *,
    deployment: Deployment,
    only: list[str],
    skip: list[str],
    fail_on: FailOn,
    print_policy: bool,
    only_list: bool,
    output: str,
) -> int:
    """Run the checks that the command line selects, print their results, and return the exit code."""
    options.exclusive(list=only_list, print_policy=print_policy)

    from scripts.check.preflight.catalog import CATALOG, policy, select
    from scripts.check.preflight.model import CheckList, ListedCheck
    from scripts.check.preflight.runner import watch

    checks = select(CATALOG, only, skip)
    if only_list:
        terminal.show(CheckList(checks=tuple(ListedCheck(id=each.id, title=each.title) for each in checks)), output)
        return ExitCode.DONE
    if print_policy:
        print(json.dumps(policy(checks), indent=2))
        return ExitCode.DONE
    report = watch(deployment, checks, fail_on, terminal.console(output))
    terminal.show(report, output)
    if report.ok:
        terminal.suggest(f"plan {deployment.name}")
    else:
        terminal.suggest(f"preflight {deployment.name}", "again, after the fixes above")
    return ExitCode.DONE if report.ok else ExitCode.FAILED
