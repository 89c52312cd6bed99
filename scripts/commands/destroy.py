"""Delete the cluster of a deployment; on request also its storage, network and alarms.

First it shows what there is, what holds data and what it costs, and everything that blocks the deletion. Then it asks
for the deployment's name. It stops the fleet, deletes the cluster, then the rest, the file system after a last backup,
and shows what is left, with its costs. If AWS refuses something, it says so and continues with the rest. Interrupted,
the same command continues where it stopped, on any machine.

Exit code: 0: everything is deleted, or did not exist; 1: something is not deleted, or blocks it, or AWS does not
answer; 2: arguments, settings or credentials cannot be used, or standard input is not a terminal; 130: Ctrl-C
(CloudFormation continues with what it started).
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scripts.command import DONE, FAILED, OperationError, UnusableError, parser, run, speaker

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.deployment import Deployment
    from scripts.destroy.model import DestroyOptions, DestroyOutcome

_EXAMPLES = """\
  python -m scripts destroy trn1-16                        the cluster; file system, network and alarms stay
  python -m scripts destroy trn1-16 --dry-run              only show what would be deleted
  python -m scripts destroy trn1-16 --drain                the same, after all jobs have ended
  python -m scripts destroy trn1-16 --storage --unprotect  cluster and file system, after a backup
  python -m scripts destroy dev --all --no-final-backup --sweep --yes
                                                           everything, leftovers too, without a question"""


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = parser("destroy", __doc__, _EXAMPLES)
    command.add_argument("--storage", action="store_true", help="delete the file system, too, after a last backup")
    command.add_argument("--network", action="store_true", help="delete the network, too")
    command.add_argument("--monitoring", action="store_true", help="delete alarms and dashboard, too")
    command.add_argument("--all", action="store_true", help="the three above")
    command.add_argument(
        "--no-final-backup",
        action="store_true",
        help="delete the file system without a last backup, even if it cannot be backed up",
    )
    command.add_argument("--bucket", action="store_true", help="with --storage: delete a bucket that was retained, too")
    command.add_argument(
        "--unprotect",
        action="store_true",
        help="remove termination protection, and delete what storage.retain keeps",
    )
    command.add_argument("--sweep", action="store_true", help="remove leftovers that are not kept on purpose")
    jobs = command.add_mutually_exclusive_group()
    jobs.add_argument("--drain", action="store_true", help="wait until all jobs have ended, however long that takes")
    jobs.add_argument("--force", action="store_true", help="terminate nodes of jobs, also if Slurm cannot be asked")
    command.add_argument("--dry-run", action="store_true", help="only show what would be done")
    command.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    return command


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Show, ask, delete and show the result; return the exit code.

    Raises:
        UnusableError: Standard input is not a terminal, or the credentials are not valid any more.
        OperationError: The answer was no, jobs have nodes, the fleet does not stop, or AWS does not answer.
    """
    from scripts.clock import Clock
    from scripts.destroy import screen
    from scripts.destroy.model import DestroyOutcome, Destruction
    from scripts.destroy.plan import plan
    from scripts.inventory.resources import inventory

    if not (given.yes or given.dry_run or (sys.stdin.isatty() and not given.json)):
        raise UnusableError("standard input is not a terminal, or --json asks nothing; pass --yes or --dry-run")
    if given.bucket and not (given.storage or given.all):
        raise UnusableError("got --bucket alone; allowed: with --storage")
    clock, options = Clock(), _options(given)
    present = inventory(deployment)
    planned = plan(deployment, options).priced({each.key: each.dollars_per_month for each in present.resources})
    screen.show_plan(present, planned, console, clock.now())
    result = Destruction(deployment=deployment.settings.name, plan=planned, before=present, outcome=None)
    if planned.obstacles or given.dry_run or planned.empty:
        if given.json:
            print(result.to_json())
        return FAILED if planned.obstacles else DONE
    if not given.yes:
        _confirm(deployment.settings.name)
    outcome = DestroyOutcome(started=clock.now())
    try:
        _destroy(deployment, options, clock, console, outcome)
        screen.show_outcome(deployment, outcome, console)
    except (KeyboardInterrupt, OperationError, UnusableError) as error:
        outcome.ended = clock.now()
        screen.show_outcome(deployment, outcome, console)  # the error itself goes to standard error
        outcome.failures.append(str(error) or "It was interrupted.")
        raise
    finally:
        if given.json:
            print(result.model_copy(update={"outcome": outcome}).to_json())
    return FAILED if outcome.failures else DONE


def _options(given: argparse.Namespace) -> DestroyOptions:
    from scripts.destroy.model import ORDER, DestroyOptions

    return DestroyOptions(
        parts=tuple(part for part in ORDER if part == "cluster" or given.all or getattr(given, part)),
        final_backup=not given.no_final_backup,
        drain=given.drain,
        force=given.force,
        unprotect=given.unprotect,
        bucket=given.bucket,
        sweep=given.sweep,
    )


def _confirm(name: str) -> None:
    print(f"\nTo delete this, type the name of the deployment, {name}: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if answer != name:
        raise OperationError(f"got {answer!r}; nothing was deleted")


def _destroy(
    deployment: Deployment, options: DestroyOptions, clock: Clock, console: Console, outcome: DestroyOutcome
) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.aws_errors import credentials_hint
    from scripts.destroy.destroy import destroy

    try:
        destroy(deployment, options, clock=clock, say=speaker(console), outcome=outcome)
    except (BotoCoreError, ClientError) as error:
        hint = credentials_hint(error)
        advice = (str(error), hint, "The same command continues where it stopped.")
        raise (UnusableError if hint else OperationError)("\n".join(filter(None, advice))) from error


def main() -> int:
    """Delete what the command line asks for, and return the exit code."""
    return run(arguments().parse_args(), program)
