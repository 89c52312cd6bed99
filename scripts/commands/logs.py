"""Show logs of a node, a file or a job of the cluster, those of terminated nodes included.

WHAT is head-node (the default), an instance id, an address or ip-10-0-1-2, Slurm's name of a node such as
trn1-dy-trn1-32xl-3, or a kind of --list: slurmctld, clustermgtd, slurm_resume, cfn-init, slurmd, cloud-init-output and
so on; "health" selects the lines of the health checks in slurmctld's log. --job shows the output file of a job, and
with --nodes what slurmd of its nodes says. Lines of several files are sorted by time, which is UTC.

Exit code 0: shown; 1: there are no such logs; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

JOB_NUMBER = r"[1-9]\d*([_+]\d+)?"
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def check_job(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Return the number or name of a job; a callback of parameters."""
    if text is not None and not re.fullmatch(rf"{JOB_NUMBER}|[A-Za-z][\w.+-]*", text, re.ASCII):
        raise click.BadParameter(
            f"got {text}; allowed: a job's number, 12_3 of an array, 12+1 of a heterogeneous job, or its name"
        )
    return text


def age(_: click.Context, __: click.Parameter, text: str | None) -> timedelta | None:
    """Return a length of time such as 30m; a callback of options."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not match:
        raise click.BadParameter(f"got {text}; allowed: a number and s, m, h or d, such as 30m")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


of_nodes = click.option("--nodes", "of_nodes", is_flag=True, help="Also what slurmd of the job's nodes says.")


def which_lines(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select lines; the function hands them to `show`."""
    for decorate in (
        click.option(
            "--lines",
            type=click.IntRange(min=1),
            default=100,
            show_default=True,
            metavar="N",
            help="The last N of them.",
        ),
        click.option("--grep", default="", metavar="TEXT", help="Only lines that contain it, as it is."),
        click.option(
            "--since",
            callback=age,
            metavar="30m",
            help="How far back, in s, m, h or d; default: the hour before the newest line, of a job 7d.",
        ),
        click.option("--follow", "-f", is_flag=True, help="Print new lines until Ctrl-C."),
    ):
        function = decorate(function)
    return function


@options.command(
    __doc__,
    ("logs research", "the head node's last 100 lines"),
    ("logs research slurmctld --follow", "one file, and new lines"),
    ("logs research trn1-dy-trn1-32xl-3 --since 2h --lines 1000", "a compute node, by Slurm's name"),
    ("logs research slurmd --grep 'ultracluster:'", "all nodes' lines that contain it"),
    ("logs research --job 12 --follow", "a job's output"),
    ("logs research --list", "the nodes and kinds of logs"),
)
@argument.deployed
@click.argument("what", required=False)
@click.option("--job", callback=check_job, metavar="JOB", help="Output of a job: 12, 12_3 of an array, or a name.")
@of_nodes
@which_lines
@click.option("--list", "list_", is_flag=True, help="List the nodes and kinds of logs.")
@options.output("json")
def command(
    *,
    deployment: Deployment,
    what: str | None,
    job: str | None,
    list_: bool,
    output: str,
    of_nodes: bool,
    **selection: Any,
) -> int:
    """Show the logs, and return the exit code."""
    if of_nodes and job is None:
        raise click.UsageError("got --nodes without --job; allowed: both, or the name of a node as WHAT")
    if sum((what is not None, job is not None, list_)) > 1:
        raise click.UsageError("got more than one of WHAT, --job and --list; allowed: one")
    if not list_:
        return show(deployment, output, what=what or "head-node", job=job or "", of_nodes=of_nodes, **selection)

    from scripts.watch.logs.show import list_nodes

    terminal.show(list_nodes(deployment), output)
    terminal.suggest(f"logs {deployment.name} slurmctld --follow", "or another of these")
    return ExitCode.DONE


def show(deployment: Deployment, output: str, *, what: str = "head-node", job: str = "", **selection: Any) -> int:
    """Show lines of a node, a kind of logs or a job, and return the exit code."""
    from scripts.watch.logs.show import LogView

    view = LogView(deployment, terminal.console(output), what=what, job=job, json=output == "json", **selection)
    view.show()
    return ExitCode.DONE
