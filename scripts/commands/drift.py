"""List what of a deployment differs from its settings: resources, cluster, fleet, protection.

CloudFormation compares what it can; the settings are compared as `plan` does it. Nothing is changed.

Exit code 0: no drift, or nothing is deployed, or an operation is in progress, and the output says so; 1: there is
drift, or something could not be compared, for want of a permission for example (types of resources that CloudFormation
never compares are only counted); 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
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
    ("drift research", "what differs"),
    ("drift research -o markdown", "for an issue or the summary of a job"),
    ("drift research -o json | jq .drifts", "for a program"),
)
@argument.deployment
@options.output("json", "markdown")
def command(*, deployment: Deployment, output: str) -> int:
    """Detect drift, print it, and return the exit code."""
    from scripts.check.plan.plan import make_plan
    from scripts.core.clock import Clock
    from scripts.watch.drift.detection import detect

    report = detect(deployment, lambda: make_plan(deployment.name), Clock())
    terminal.show(report, output)
    if report.busy:
        terminal.suggest(f"status {deployment.name} --watch")
    elif report.drifts or not report.deployed:
        terminal.suggest(f"plan {deployment.name}", "what a deployment would change")
    return ExitCode.DONE if report.ok else ExitCode.FAILED
