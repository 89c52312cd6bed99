"""List and cancel jobs of a cluster, and show their logs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from scripts.account import argument
from scripts.commands import logs as logs_command
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


class JobNumber(click.ParamType[str]):
    """The number of a job, or 12_3 of an array."""

    name = "job"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the number; it goes into a shell command on the head node."""
        if not re.fullmatch(logs_command.JOB_NUMBER, value, re.ASCII):
            self.fail(f"got {value}; allowed: a job's number, or 12_3 of an array", param, ctx)
        return value


@click.group("jobs", cls=options.Group, help=__doc__)
def command() -> None:
    """Group what is done with jobs."""


@options.subcommand(
    command,
    """List the jobs that run or wait, and why they wait.

    Exit code 0: listed; 1: the head node cannot be asked; 2: arguments, settings or credentials cannot be used.
    """,
    ("jobs list research", "the queue"),
    ("jobs list research -o json | jq .jobs[].number", "for programs"),
    name="list",
)
@argument.deployed
@options.output("json", "markdown")
def list_(*, deployment: Deployment, output: str) -> int:
    """Print the jobs, and return the exit code."""
    from scripts.core.report import Line
    from scripts.use.jobs import list_jobs, waiting_causes

    jobs = list_jobs(deployment)
    view = terminal.show(jobs, output)
    if not jobs.jobs:
        terminal.suggest("submit --help", "how to submit a training run")
        return ExitCode.DONE
    for cause in waiting_causes(jobs.jobs, {"deployment": deployment.name, "file": deployment.file}):
        view.show([Line(f"{cause.evidence[0].text}: {cause.why}"), *cause.steps()])
    terminal.suggest(f"jobs logs {deployment.name} {jobs.jobs[0].number} --follow")
    return ExitCode.DONE


@options.changing
@options.subcommand(
    command,
    """Cancel jobs, after a question.

    Exit code 0: cancelled; 1: Slurm refuses, the head node cannot be asked, or the answer was no; 2: arguments,
    settings or credentials cannot be used, or standard input is not a terminal.
    """,
    ("jobs cancel research 12", "one job"),
    ("jobs cancel research 12 13_4 --yes", "a job and a task of an array, without a question"),
)
@argument.deployed
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True, type=JobNumber())
@options.yes
@options.output("json", "markdown")
def cancel(*, deployment: Deployment, jobs: tuple[str, ...], yes: bool, output: str) -> int:
    """Cancel, and return the exit code."""
    from scripts.use.jobs import CancelledJobs
    from scripts.use.jobs import cancel as cancel_jobs

    terminal.require_answers(given=yes, output=output)
    if not yes:
        terminal.confirm(f"Jobs to cancel: {', '.join(jobs)}.")
    cancel_jobs(deployment, jobs)
    terminal.show(CancelledJobs(jobs=jobs), output)
    terminal.suggest(f"jobs list {deployment.name}")
    return ExitCode.DONE


@options.subcommand(
    command,
    """Show the output of a job and the logs of its nodes.

    It is `logs --job`. JOB is a number, 12_3 of an array, or a name.

    Exit code 0: shown; 1: there are no such logs; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
    """,
    ("jobs logs research 12 --follow", "its last 100 lines, and new ones"),
    ("jobs logs research bert --lines 1000", "more, of the newest job of that name"),
)
@argument.deployed
@click.argument("job", callback=logs_command.check_job)
@logs_command.which_lines
@options.output("json")
def logs(*, deployment: Deployment, job: str, output: str, **selection: Any) -> int:
    """Show the logs, and return the exit code."""
    return logs_command.show(deployment, output, job=job, **selection)
