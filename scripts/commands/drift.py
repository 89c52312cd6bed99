"""Show what of a deployment differs from its settings: resources, cluster, fleet, protection.

CloudFormation compares what it can; the settings are compared as `make plan` does it. Nothing is changed. Exit code
0: no drift, or nothing is deployed, or an operation is in progress, and the output says so; 1: there is drift, or
something could not be compared; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scripts.command import DONE, FAILED, parser, run

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment
    from scripts.plan.model import Plan

EXAMPLES = """\
  python -m scripts drift trn1-16                        what differs
  python -m scripts drift trn1-16 --markdown             the same for an issue or the summary of a job
  python -m scripts drift trn1-16 --json | jq .drifts    the same for a program
"""


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = parser("drift", __doc__, EXAMPLES)
    command.add_argument("--markdown", action="store_true", help="print Markdown")
    return command


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Detect drift, print it, and return the exit code."""
    from scripts.clock import Clock
    from scripts.drift.detection import detect
    from scripts.drift.screen import as_markdown, show

    report = detect(deployment, lambda: _plan(deployment.environment), Clock())
    if given.json:
        print(report.to_json())
    elif given.markdown:
        print(as_markdown(report), end="")
    else:
        show(report, console)
    return DONE if report.ok else FAILED


def _plan(environment: str) -> Plan:
    from scripts.plan.command import make_plan

    return make_plan(environment)


def main() -> int:
    """Run the command, and return its exit code."""
    return run(arguments().parse_args(), program)
