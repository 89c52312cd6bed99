"""Delete the cluster of a deployment; on request also its storage, network and alarms.

First it shows what would be deleted, what holds data, what there is costs, and everything that blocks it. Then it asks
for the deployment's name. It stops the fleet, deletes the cluster, then the rest, the file system after a last backup,
and shows what is left, with its costs. If AWS refuses something, it says so and continues with the rest. Interrupted,
the same command continues where it stopped, on any machine.

Exit code 0: everything is deleted, or did not exist; 1: something is not deleted, or blocks it, or AWS does not
answer; 2: arguments, settings or credentials cannot be used, or standard input is not a terminal; 130: Ctrl-C
(CloudFormation continues with what it started).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scripts import options, terminal
from scripts.errors import ExitCode, OperationError, UnusableError

if TYPE_CHECKING:
    from scripts.deployment import Deployment


@options.command(
    __doc__,
    ("destroy research", "the cluster; file system, network and alarms stay"),
    ("destroy research --dry-run", "only show what would be deleted"),
    ("destroy research --drain", "after all jobs have ended"),
    ("destroy research --storage --unprotect", "cluster and file system, after a backup"),
    (
        "destroy dev --all --unprotect --no-final-backup --sweep --force --confirm dev",
        "everything, leftovers and running jobs too, without a question",
    ),
)
@options.deployment
@click.option("--storage", is_flag=True, help="Delete the file system, too, after a last backup.")
@click.option("--network", is_flag=True, help="Delete the network, too.")
@click.option("--monitoring", is_flag=True, help="Delete alarms and dashboard, too.")
@click.option("--all", "everything", is_flag=True, help="The three above.")
@click.option("--no-final-backup", is_flag=True, help="Delete the file system without a last backup.")
@click.option("--bucket", is_flag=True, help="With --storage: delete a bucket that was retained, too.")
@click.option("--unprotect", is_flag=True, help="Remove termination protection, delete what storage.retain keeps.")
@click.option("--sweep", is_flag=True, help="Remove leftovers that are not kept on purpose.")
@options.drain
@options.force
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@options.confirm
@options.output("json", "markdown")
def command(*, deployment: Deployment, confirm: str | None, dry_run: bool, output: str, **choices: Any) -> int:
    """Show, ask, delete and show the result; return the exit code."""
    from scripts.clock import Clock
    from scripts.destroy import screen
    from scripts.destroy.destroy import destroy, resumable
    from scripts.destroy.model import DestroyOptions, DestroyOutcome, Destruction
    from scripts.destroy.plan import plan
    from scripts.inventory.resources import inventory

    name = deployment.settings.name
    options.exclusive(drain=choices["drain"], force=choices["force"])
    destroy_options = DestroyOptions.of(**choices)
    terminal.require_name(name, confirm, given=dry_run, output=output)
    clock, view = Clock(), terminal.view(output)
    present = inventory(deployment)
    planned = plan(deployment, destroy_options).priced({each.key: each.dollars_per_month for each in present.resources})
    result = Destruction(deployment=name, plan=planned, before=present, outcome=None)
    only_planned = planned.blockers or dry_run or planned.empty
    if output == "markdown":
        screen.show_blockers(planned, view)
    if only_planned or output == "text":
        screen.show_plan(deployment, present, planned, view)
    if output == "text":
        screen.show_blockers(planned, view)
    if only_planned:
        if output == "json":
            print(result.to_json())
        return ExitCode.FAILED if planned.blockers else ExitCode.DONE
    if confirm is None:
        terminal.confirm_name(name)
    outcome = DestroyOutcome(started=clock.now())
    try:
        with resumable():
            destroy(deployment, destroy_options, clock=clock, say=terminal.speaker(view), outcome=outcome)
        screen.show_outcome(deployment, outcome, view)
    except (KeyboardInterrupt, OperationError, UnusableError) as error:
        outcome.ended = clock.now()
        screen.show_outcome(deployment, outcome, view)  # the error itself goes to standard error
        outcome.failures.append(str(error) or "It was interrupted.")
        if output == "markdown":
            view.print(f"Not done: {outcome.failures[-1]}", markup=False)
        raise
    finally:
        if output == "json":
            print(result.model_copy(update={"outcome": outcome}).to_json())
    if outcome.failures:
        return ExitCode.FAILED
    terminal.suggest(f"inventory {deployment.environment}", "what is left, and what it costs")
    return ExitCode.DONE
