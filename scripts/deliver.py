"""Deploy in rounds, for pipelines whose credentials end before a cluster is there: the next round takes up the last.

A round follows what is under way, then deploys what differs from the settings as `make deploy ARGS=--yes` does, and
stops in time: the CDK is asked to end, and AWS goes on. Exit code 0: everything is deployed and complete; 75: time or
credentials ended before; what was begun goes on in AWS, the same command takes it up; 1: it failed, or something stands
against it; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scripts.change_plan.interrupts import clean_up_as_after_ctrl_c
from scripts.operations.command import UnusableError, parser, run

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

    from scripts.delivery.rounds import Outcome
    from scripts.delivery.site import AwsSite, Facts
    from scripts.delivery.summary import Round
    from scripts.deployment import Deployment
    from scripts.operations.diagnosis.diagnose import Diagnosis
    from scripts.operations.status.model import Unseen

EXAMPLES = """\
  python -m scripts.deliver dev --minutes 50         until 50 minutes from now at most
  python -m scripts.deliver dev --minutes 50 --json  what became of it for a program; all else on standard error

In a workflow, with new credentials before each round:
  python -m scripts.deliver dev --minutes 50 || code=$?
  [ "${code:-0}" -eq 75 ] || exit "${code:-0}"
"""


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = parser("deliver", __doc__, EXAMPLES)
    found.add_argument("--minutes", type=_minutes, required=True, help="how long it may take, 2 or more")
    return found


def _minutes(text: str) -> float:
    number = float(text)
    if not 2 <= number <= 24 * 60:  # noqa: PLR2004 - two minutes and a day
        raise argparse.ArgumentTypeError(f"got {text}; allowed: 2 to 1440")
    return number


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Deliver one round, tell what became of it, also in the summary of the job, and return the exit code."""
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.delivery.markdown import summarize
    from scripts.delivery.summary import not_deployed

    try:
        return _deliver(deployment, given, console)
    except (UnusableError, BotoCoreError, ClientError) as error:
        summarize(not_deployed(deployment.environment, error))
        raise


def _deliver(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    from rich.console import Console

    from scripts.delivery.markdown import summarize
    from scripts.delivery.rounds import EXIT_CODES, CredentialsEndedError, deliver
    from scripts.delivery.site import AwsSite
    from scripts.delivery.summary import as_markdown, document
    from scripts.operations.clock import Clock

    clock, output = Clock(), sys.stderr if given.json else None
    shown = Console(stderr=True, highlight=False) if given.json else console
    began = clock.now()
    with TemporaryDirectory() as directory:
        assembly = Path(directory) / "cdk.out"
        site = AwsSite(deployment.environment, deployment.settings, assembly, shown, clock, output=output)
        try:
            outcome = deliver(site, clock, given.minutes)
        except CredentialsEndedError as error:
            raise UnusableError(str(error)) from None
    found = _round(site, outcome, deployment.settings.region, began, clock.now())
    _tell(found, shown)
    summarize(as_markdown(found))
    if given.json:
        print(json.dumps(document(found), indent=2))
    return EXIT_CODES[outcome.result]


def _round(site: AwsSite, outcome: Outcome, region: str, began: datetime, now: datetime) -> Round:
    """Return what is to be said of a round, with the cause of a failure."""
    from scripts.delivery.rounds import CredentialsEndedError, Result
    from scripts.delivery.summary import Round
    from scripts.operations.status.model import Unseen, seen

    facts: Facts | Unseen | None = None
    diagnosis: Diagnosis | Unseen | None = None
    try:
        if outcome.result in (Result.DEPLOYED, Result.UNCHANGED):
            facts = seen(lambda: site.facts(began), "cloudformation:DescribeStackEvents", "ec2:DescribeInstances")
        elif outcome.result is Result.FAILED:
            diagnosis = site.diagnosis()
    except CredentialsEndedError as error:
        diagnosis = Unseen(str(error)) if outcome.result is Result.FAILED else None
    seen_facts = None if isinstance(facts, Unseen) else facts
    return Round(site.environment, region, outcome, now - began, seen_facts, diagnosis)


def _tell(found: Round, console: Console) -> None:
    """Print what became of a round."""
    from scripts.operations.diagnosis import diagnose as diagnosis
    from scripts.operations.status.model import Unseen

    line = f"\n{found.environment}: {found.outcome.result}. {found.outcome.note}"
    console.print(line.rstrip(), markup=False)
    if isinstance(found.diagnosis, Unseen):
        console.print(f"Why it failed was not seen: {found.diagnosis.reason}", markup=False)
    elif found.diagnosis:
        diagnosis.show(found.diagnosis, console)


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    clean_up_as_after_ctrl_c()
    return run(arguments().parse_args(), program)


if __name__ == "__main__":
    sys.exit(main())
