"""Open a shell on the head node or, with --node, on a compute node: as a job that ends after a time.

With --node Slurm gives the shell a whole node, of the queue that is named; one that is down boots first, which takes
some minutes. The job ends with the shell, with the connection, or when its time is over, and the node is free again
then. Ctrl-C while it waits for a node takes it out of the queue. On a head or login node Slurm is called directly;
from elsewhere Session Manager opens the shell, as for `ssh`, and needs its plugin on PATH. It closes a session in which
nothing is typed for 20 minutes, unless the account's preferences say otherwise.

Where the settings have `users`, a session is a shell as yourself on the head node: the command that is to be typed
there is printed before. Without --node it is what `ssh` opens.

Exit code: that of Slurm or the plugin once it was started; before that 1: the head node is not running, 2: arguments,
settings or credentials cannot be used, or there is no plugin; 130: Ctrl-C.
"""

from __future__ import annotations

import re
import shlex
import shutil
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

_TIME = re.compile(r"[0-9]{1,6}(:[0-9]{1,2}){0,2}|[0-9]{1,3}-[0-9]{1,2}(:[0-9]{1,2}){0,2}")
"""https://slurm.schedmd.com/srun.html#OPT_time"""
_HOUR = "1:00:00"


class _Queue(click.ParamType[str]):
    """The name of a queue."""

    name = "queue"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, which becomes a word of a command."""
        if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,63}", value, re.ASCII):
            self.fail(f"got {value}; allowed: the name of a queue", param, ctx)
        return value


class _Time(click.ParamType[str]):
    """A limit as Slurm writes it."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the limit."""
        if not _TIME.fullmatch(value) or not re.search("[1-9]", value):
            self.fail(f"got {value}; allowed: a time such as 30 (minutes), 2:00:00 or 1-12 (days-hours)", param, ctx)
        return value


def _complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [each for each in options.complete_queues(ctx, parameter, incomplete) if "/" not in each]


@options.command(
    __doc__,
    ("shell research --node", "an hour on a node of the default queue"),
    ("shell research --node --queue trn1 --time 4:00:00", "four hours in a queue"),
    ("shell research", "the head node"),
    name="shell",
)
@argument.deployed
@click.option("--node", is_flag=True, help="On a compute node, as a job.")
@click.option("--queue", type=_Queue(), metavar="NAME", shell_complete=_complete, help="Default: Slurm's default.")
@click.option("--time", type=_Time(), metavar="T", help=f"Limit as Slurm writes it; default: {_HOUR}.")
def command(*, deployment: Deployment, node: bool, queue: str | None, time: str | None) -> int:
    """Open the shell; it does not return."""
    if (queue or time) and not node:
        raise click.UsageError("--queue and --time are for --node: on the head node no job is needed")

    from scripts.account.remote import nodes
    from scripts.use import sessions

    words = sessions.job(queue, time or _HOUR)
    if node and shutil.which("srun"):
        sessions.become(words)
    settings = deployment.settings
    target = nodes.running(deployment, nodes.HEAD_NODE)
    default = None if settings.users else deployment.system_user
    if default is None:
        session = sessions.shell(None, settings.cluster_spec.name)
        remark = f"On the head node, type: {shlex.join(words)}" if node else ""
    else:
        session = sessions.job_of(default, words) if node else sessions.shell(default, settings.cluster_spec.name)
        remark = f"A shell on a compute node, {time or _HOUR} at most, once Slurm has one" if node else ""
    sessions.open_session(deployment, target.instance_id, session, remark)
