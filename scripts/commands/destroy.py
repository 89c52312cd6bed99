"""Delete the cluster of a deployment; on request also its storage, network and alarms.

First it shows what there is, what holds data and what it costs, and everything that stands against the deletion. Then
it asks for the deployment's name. It stops the fleet, deletes the cluster, then the rest, the file system after a last
backup, and tells what is left, with what it costs. What AWS refuses is told, and the rest is done. Interrupted, the
same command goes on where it stopped, on any machine.

Exit code: 0: all of it is gone, or was not there; 1: some is not, or something stands against it, or AWS no longer
answers; 2: arguments, settings or credentials cannot be used, or nobody can be asked; 130: Ctrl-C (CloudFormation goes
on with what it began).
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from scripts.command import DONE, FAILED, OperationError, UnusableError, parser, run

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.command import Say
    from scripts.deployment import Deployment
    from scripts.destroy.outcome import Outcome

_EXAMPLES = """\
  python -m scripts destroy trn1-16                        the cluster; file system, network and alarms stay
  python -m scripts destroy trn1-16 --dry-run              only show what would be deleted
  python -m scripts destroy trn1-16 --drain                the same, after all jobs have ended
  python -m scripts destroy trn1-16 --storage --unprotect  cluster and file system, after a backup
  python -m scripts destroy dev --all --no-final-backup --sweep --yes
                                                           everything, leftovers too, without a question"""


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = parser("destroy", __doc__, _EXAMPLES)
    found.add_argument("--storage", action="store_true", help="delete the file system, too, after a last backup")
    found.add_argument("--network", action="store_true", help="delete the network, too")
    found.add_argument("--monitoring", action="store_true", help="delete alarms and dashboard, too")
    found.add_argument("--all", action="store_true", help="the three above")
    found.add_argument(
        "--no-final-backup",
        action="store_true",
        help="delete the file system without a last backup, even if none can be",
    )
    found.add_argument("--bucket", action="store_true", help="with --storage: delete a bucket that was retained, too")
    found.add_argument(
        "--unprotect",
        action="store_true",
        help="take termination protection away, and delete what storage.retain keeps",
    )
    found.add_argument("--sweep", action="store_true", help="remove leftovers that nothing keeps on purpose")
    jobs = found.add_mutually_exclusive_group()
    jobs.add_argument("--drain", action="store_true", help="let jobs end first, however long that takes")
    jobs.add_argument("--force", action="store_true", help="end jobs, and go on where the head node does not answer")
    found.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
    found.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    return found


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Show, ask, delete and tell what came of it; return the exit code.

    Raises:
        UnusableError: Nobody can be asked, or the credentials are no longer good.
        OperationError: The answer was no, jobs have nodes, the fleet does not stop, or AWS no longer answers.
    """
    from scripts.clock import Clock
    from scripts.destroy import plan as destruction_plan
    from scripts.destroy import report as destruction_report
    from scripts.destroy.outcome import Outcome
    from scripts.inventory.resources import inventory

    if not (given.yes or given.dry_run or sys.stdin.isatty()):
        raise UnusableError("got no terminal to ask at; allowed: --yes, --dry-run")
    if given.json and not (given.yes or given.dry_run):
        raise UnusableError("got --json, which shows and asks nobody anything; allowed: with --yes or --dry-run")
    if given.bucket and not (given.storage or given.all):
        raise UnusableError("got --bucket alone; allowed: with --storage")
    clock = Clock()
    present = inventory(deployment)
    plan = destruction_plan.plan(
        deployment,
        _parts(given),
        unprotect=given.unprotect,
        final_backup=not given.no_final_backup,
        bucket=given.bucket,
        sweep=given.sweep,
    )
    destruction_report.show_plan(deployment, present, plan, console, clock.now())
    if plan.obstacles or given.dry_run or plan.empty:
        if given.json:
            print(json.dumps(destruction_report.document(deployment, present, plan, None), indent=2))
        return FAILED if plan.obstacles else DONE
    if not given.yes:
        _ask(deployment.settings.name)
    outcome = Outcome(clock.now())
    try:
        _destroy(deployment, given, clock, _say(given, console), outcome)
        destruction_report.show_outcome(deployment, outcome, console)
    except (KeyboardInterrupt, OperationError, UnusableError) as error:
        outcome.ended = clock.now()
        destruction_report.show_outcome(deployment, outcome, console)  # the error itself goes to standard error
        outcome.failures.append(str(error) or "It was interrupted.")
        raise
    finally:
        if given.json:
            print(json.dumps(destruction_report.document(deployment, present, plan, outcome), indent=2))
    return FAILED if outcome.failures else DONE


def _say(given: argparse.Namespace, console: Console) -> Say:
    if given.json:
        return lambda text: print(text, file=sys.stderr)
    return lambda text: console.print(text, markup=False)


def _parts(given: argparse.Namespace) -> list[str]:
    from scripts.destroy.plan import ORDER

    return [part for part in ORDER if part == "cluster" or given.all or getattr(given, part)]


def _ask(name: str) -> None:
    print(f"\nTo delete this, type the name of the deployment, {name}: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if answer != name:
        raise OperationError(f"got {answer!r}; nothing was deleted")


def _destroy(deployment: Deployment, given: argparse.Namespace, clock: Clock, say: Say, outcome: Outcome) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.aws_errors import credentials_hint
    from scripts.destroy import destroy as destruction

    try:
        destruction.destroy(
            deployment,
            parts=_parts(given),
            clock=clock,
            say=say,
            final_backup=not given.no_final_backup,
            drain=given.drain,
            force=given.force,
            unprotect=given.unprotect,
            bucket=given.bucket,
            sweep=given.sweep,
            outcome=outcome,
        )
    except (BotoCoreError, ClientError) as error:
        hint = credentials_hint(error)
        advice = (str(error), hint, "What is deleted is deleted; the same command goes on where it stopped.")
        raise (UnusableError if hint else OperationError)("\n".join(filter(None, advice))) from error


def main() -> int:
    """Delete what the command line asks for, and return the exit code."""
    return run(arguments().parse_args(), program)
