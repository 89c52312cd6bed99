"""List, show and cancel jobs of a cluster, and show their output."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from scripts.account import argument
from scripts.commands import logs as logs_command
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


_LIST = r"\d{1,7}([-:,]\d{1,7})*"
TASKS = rf"_({_LIST}|\[{_LIST}(%\d{{1,7}})?\])"
"""Of an array, as `jobs list` shows them."""


PART = rf"{TASKS}|\+\d{{1,3}}"
"""Tasks, or a component of a heterogeneous job."""


class JobNumber(click.ParamType[str]):
    """The number of a job, 12_3 or 12_[4-9] of an array, or 12+1 of a heterogeneous job."""

    name = "job"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the number; it goes into a command on the head node."""
        if not re.fullmatch(rf"[1-9]\d{{0,9}}({PART})?", value, re.ASCII):
            allowed = "a job's number, 12_3 or 12_[4-9] of an array, or 12+1 of a heterogeneous job"
            self.fail(f"got {value}; allowed: {allowed}", param, ctx)
        return value


@click.group("jobs", cls=options.Group, help=__doc__)
def command() -> None:
    """Group what is done with jobs."""


@options.subcommand(
    command,
    """List the jobs that run or wait, and why they wait; with --all those that have ended, too.

    A task of an array is 17_1, and those that wait are one row, 17_[2-9]. What has ended is what accounting knows, or,
    without, what Slurm remembers, which is some minutes.

    Exit code 0: listed; 1: the head node cannot be asked; 2: arguments, settings or credentials cannot be used.
    """,
    ("jobs list research", "the queue"),
    ("jobs list research --all", "and what ended in the last day"),
    ("jobs list research --since 7d -o json | jq .ended", "a week, for programs"),
    name="list",
)
@argument.deployed
@click.option("--all", "all_", is_flag=True, help="Also jobs that have ended.")
@click.option(
    "--since",
    callback=logs_command.age,
    metavar="1d",
    help="How far back, in s, m, h or d; default: 1d. With --all or alone.",
)
@options.output("json", "markdown")
def list_(*, deployment: Deployment, all_: bool, since: timedelta | None, output: str) -> int:
    """Print the jobs, and return the exit code."""
    from scripts.use.jobs import explained, list_jobs

    jobs = list_jobs(deployment, since or (timedelta(days=1) if all_ else None))
    view = terminal.show(jobs, output)
    for each in explained(jobs, {"deployment": deployment.name, "file": deployment.file}):
        view.show(each.blocks())
    if not jobs.jobs and not jobs.ended:
        terminal.suggest("submit --help", "how to submit a training run")
        return ExitCode.DONE
    following = jobs.jobs[0] if jobs.jobs else next(iter(jobs.ended or ()))
    what = "logs" if "[" not in following.id else "show"
    more = " --follow" if jobs.jobs and what == "logs" else ""
    terminal.suggest(
        f"jobs {what} {deployment.name} {following.id if what == 'logs' else following.id.partition('_')[0]}{more}"
    )
    return ExitCode.DONE


@options.subcommand(
    command,
    """Show all that is known of a job, and what its state means.

    JOB is a number, 12_3 of an array, or a name. Of the number of an array, its tasks by state.

    Exit code 0: shown; 1: there is no such job, or the head node cannot be asked; 2: arguments, settings or credentials
    cannot be used.
    """,
    ("jobs show research 12", "why it waits, or how it ended"),
    ("jobs show research 17", "an array: which tasks failed"),
    ("jobs show research 12 -o json | jq .job.exit_code", "for programs"),
)
@argument.deployed
@click.argument("job", callback=logs_command.check_job)
@options.output("json", "markdown")
def show(*, deployment: Deployment, job: str, output: str) -> int:
    """Show the job, and return the exit code."""
    from scripts.use.jobs import show as show_job

    shown = show_job(deployment, job)
    terminal.show(shown, output)
    if shown.job.output:
        terminal.suggest(f"jobs logs {deployment.name} {shown.job.number}")
    else:
        terminal.suggest(f"jobs list {deployment.name}")
    return ExitCode.DONE


@options.changing
@options.subcommand(
    command,
    """Cancel jobs, after a question.

    JOB is a number, or what `jobs list` shows: 12_3 or 12_[4-9] of an array, and no other task of it. The number of an
    array is refused without --array. Of a heterogeneous job 12 and 12+0 are all of it; Slurm cancels 12+1 alone only
    while it runs. If Slurm does not know a number, nothing is cancelled. What was cancelled is what
    Slurm says afterwards.

    Exit code 0: cancelled; 1: Slurm knows no such job, one had ended before or is still there, the head node cannot be
    asked, or the answer was no; 2: arguments, settings or credentials cannot be used, or standard input is not a
    terminal.
    """,
    ("jobs cancel research 12", "one job"),
    ("jobs cancel research 12 '13_[4-9]' --yes", "a job and tasks of an array, without a question"),
    ("jobs cancel research 13 --array", "all tasks of an array"),
)
@argument.deployed
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True, type=JobNumber())
@click.option("--array", "arrays", is_flag=True, help="The number of an array is all its tasks.")
@options.yes
@options.output("json", "markdown")
def cancel(*, deployment: Deployment, jobs: tuple[str, ...], arrays: bool, yes: bool, output: str) -> int:
    """Cancel, and return the exit code."""
    from scripts.use.jobs import cancel as cancel_jobs
    from scripts.use.jobs import choose

    terminal.require_answers(given=yes, output=output)
    if not yes:
        chosen = choose(deployment, jobs, arrays=arrays)
        terminal.confirm("\n".join(["Jobs to cancel:", *map(str, chosen)]))
    cancelled = cancel_jobs(deployment, jobs, arrays=arrays)
    terminal.show(cancelled, output)
    terminal.suggest(f"jobs list {deployment.name}")
    return ExitCode.FAILED if cancelled.not_cancelled else ExitCode.DONE


@options.subcommand(
    command,
    """Show the output of a job and how it ended, and with --nodes what its nodes say of it.

    It is `logs --job`. JOB is a number, 12_3 of an array, or a name. The file of a job that has ended is shown as long
    as there is one, if Slurm or its accounting knows the job; else what slurmctld said of it is.

    Exit code 0: shown; 1: there are no such logs; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
    """,
    ("jobs logs research 12 --follow", "its last 100 lines, and new ones"),
    ("jobs logs research 12_3 --nodes", "a task of an array, and slurmd of its nodes"),
    ("jobs logs research bert --lines 1000", "more, of the newest job of that name"),
)
@argument.deployed
@click.argument("job", callback=logs_command.check_job)
@logs_command.of_nodes
@logs_command.which_lines
@options.output("json")
def logs(*, deployment: Deployment, job: str, output: str, **selection: Any) -> int:
    """Show the logs, and return the exit code."""
    return logs_command.show(deployment, output, job=job, **selection)
