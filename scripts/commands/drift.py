"""Tell what of a deployment is no longer as its settings have it: resources, cluster, fleet, protection.

CloudFormation compares what it can; the settings are compared as `make plan` does it. Nothing is changed. Exit code
0: no drift, or nothing is deployed, or a deployment is under way, and it says so; 1: there is some, or something could
not be seen; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
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
    found = parser("drift", __doc__, EXAMPLES)
    found.add_argument("--markdown", action="store_true", help="print Markdown")
    return found


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Look for drift, show it, and return the exit code."""
    from scripts.clock import Clock
    from scripts.drift.drift import look
    from scripts.drift.drift_report import as_markdown, document, show

    report = look(deployment, lambda: _plan(deployment.environment), Clock())
    if given.json:
        print(json.dumps(document(report), indent=2))
    elif given.markdown:
        print(as_markdown(report), end="")
    else:
        show(report, console)
    return DONE if report.ok else FAILED


def _plan(environment: str) -> Plan:
    from scripts.plan.command import make_plan

    return make_plan(environment)


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    return run(arguments().parse_args(), program)
