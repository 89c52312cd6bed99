"""Plan a deployment: what it would do to what is running, without doing it.

Stacks: a CloudFormation change set, which is deleted again, or the stored templates. Cluster: ParallelCluster's own
update check. With --against two sets of templates are compared, offline. Exit code 0: nothing blocks the
deployment; 1: something does; 2: the settings or arguments cannot be used, or AWS did not answer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.command import INTERRUPTED, UNUSABLE
from scripts.interrupts import clean_up_as_after_ctrl_c
from scripts.plan.command import PlanError, make_plan, show


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m scripts plan", description=__doc__)
    parser.add_argument("environment", metavar="ENV", help="file name in config/ without .yaml")
    parser.add_argument(
        "--against", type=Path, metavar="DIRECTORY", help="compare with this assembly, or these templates, offline"
    )
    parser.add_argument(
        "--assembly", type=Path, metavar="DIRECTORY", help="what would be deployed (default: ENV is synthesized)"
    )
    parser.add_argument(
        "--accept-replacement",
        action="store_true",
        help="allow the replacement of what holds data or everything depends on",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document (docs/plan.md)")
    output.add_argument("--markdown", action="store_true", help="print a comment for a pull request")
    return parser.parse_args()


def main() -> int:
    """Print the plan that the command line asks for, and return the exit code."""
    clean_up_as_after_ctrl_c()
    given = arguments()
    try:
        plan = make_plan(given.environment, given.assembly, given.against, accepted=given.accept_replacement)
    except PlanError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    if given.json:
        print(plan.to_json())
    elif given.markdown:
        from scripts.plan.markdown import as_markdown

        print(as_markdown(plan), end="")
    else:
        show(plan)
    return 0 if plan.ok else 1
