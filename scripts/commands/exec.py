"""Run a command on the head node, as the cluster's user in a login shell, and show its output while it runs.

No SSH and no key: Systems Manager sends the command, CloudWatch Logs returns its output. No shell interprets the words
after --; for more than one command: -- bash -c 'A && B'. Ctrl-C cancels it there, too; so do a closed terminal and a
closed pipe. AWS keeps the words, the input and the output: no secrets.

Standard input arrives with --stdin, once all of it is there, up to 32 KiB. Without it the command has an empty one, and
what calls this keeps its own: a loop the lines that it reads, a pipeline a pipe that nobody closes.

Exit code: the command's own once it ran; before that 1: it cannot be run, 2: arguments, settings or credentials cannot
be used; 130: Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

LONGEST = 2880
"""Minutes: the 48 hours of Systems Manager."""


@options.command(
    __doc__,
    ("exec research -- sinfo", "the state of the nodes"),
    ("exec research --user root -- journalctl --unit=ultracluster-metrics --since today", "as another user"),
    ("exec research --stdin -- sbatch < job.sh", "submit a script that is on this machine"),
    ("exec research --stdin -- bash -c 'cat >job.sh' < job.sh", "bring it there"),
    ("exec research --timeout 600 -- bash -c 'cd /fsx/data && ./prepare.sh'", "ten hours at most"),
    ("exec research --attach 01234567-89ab-cdef-0123-456789abcdef", "the output of an earlier command again"),
    name="exec",
    further="words",
)
@argument.deployed
@click.option(
    "--user", type=options.UserName(), metavar="NAME", help="Whose login shell runs it; default: such as ubuntu."
)
@click.option("-i", "--stdin", "sends", is_flag=True, help="Send standard input, read to its end, to the command.")
@click.option(
    "--timeout", type=click.IntRange(1, LONGEST), default=60, show_default=True, metavar="MINUTES", help="Kill it then."
)
@click.option("--attach", metavar="COMMAND-ID", help="Show the output of an earlier command, and follow it.")
@options.output("json")
def command(
    *,
    deployment: Deployment,
    words: Sequence[str],
    user: str | None,
    sends: bool,
    timeout: int,
    attach: str | None,
    output: str,
) -> int:
    """Run the command, or show an earlier one, and return its exit code."""
    if bool(words) == bool(attach):
        got = "a command and --attach" if words else "neither"
        raise click.UsageError(f"got {got}; allowed: -- COMMAND..., or --attach COMMAND-ID")
    if sends and attach:
        raise click.UsageError("--stdin does not go with --attach.")

    from scripts.account.remote import streamed_command
    from scripts.account.remote.head_node import HeadNode
    from scripts.account.remote.streamed_command import CommandResult, print_output, print_remark

    head_node = HeadNode(deployment)
    if attach:
        streamed = streamed_command.attach(deployment, head_node, attach)
    else:
        command = streamed_command.login_command(user or deployment.system_user, words)
        given = sys.stdin.buffer.read(streamed_command.MOST_INPUT + 1) if sends and sys.stdin else b""
        streamed = streamed_command.start(deployment, head_node, command, seconds=timeout * 60, given=given)
        if sys.stderr.isatty():
            print_remark(f"If this machine goes offline, the command continues. {streamed.hint}")
    follow = streamed.follow if attach else streamed.follow_or_cancel
    is_said = _say_what_is_left(sends)
    pieces: dict[str, list[str]] = {"stdout": [], "stderr": []}
    code = follow(print_output if output == "text" else lambda stream, text: pieces[stream].append(text))
    if not is_said:  # who writes into the pipe may have been slower
        _say_what_is_left(sends)
    if output == "text":
        return code
    result = CommandResult(
        command_id=streamed.command_id,
        instance_id=head_node.instance_id,
        exit_code=code,
        stdout="".join(pieces["stdout"]),
        stderr="".join(pieces["stderr"]),
    )
    print(result.to_json())
    return code


def _say_what_is_left(sends: bool) -> bool:
    """Say that standard input has something which is not sent, and return whether that is so."""
    from scripts.account.remote.streamed_command import is_something_left, print_remark

    is_left = not sends and is_something_left()
    if is_left:
        print_remark("Standard input is not sent to the command: --stdin sends it.")
    return is_left
