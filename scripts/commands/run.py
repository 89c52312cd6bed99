"""Run a command on the head node, as the cluster's user in a login shell, and show its output while it runs.

No SSH and no key: Systems Manager sends the command, CloudWatch Logs returns its output. No shell interprets the words
after --: ENV -- bash -c 'A && B' for more than one command. Ctrl-C cancels it there, too; so do a closed terminal and a
closed pipe. AWS keeps the words and the output: no secrets.

Exit code: the command's own once it ran; before that 1: it cannot be run, 2: arguments, settings or credentials cannot
be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scripts import command
from scripts.clock import Clock

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

EXAMPLES = """\
  python -m scripts run trn1-16 -- sinfo
  python -m scripts run trn1-16 --user root -- journalctl --unit=ultracluster-metrics --since today
  python -m scripts run trn1-16 --timeout 600 -- bash -c 'cd /fsx/data && ./prepare.sh'
  python -m scripts run trn1-16 --attach 01234567-89ab-cdef-0123-456789abcdef   show it again
"""
LONGEST = 2880
"""Minutes: the 48 hours that Systems Manager lets a command run at most.

https://docs.aws.amazon.com/systems-manager/latest/userguide/documents-command-ssm-plugin-reference.html
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments before the first ``--``."""
    run = command.parser("run", __doc__, EXAMPLES)
    run.usage = f"{run.prog} ENV [--user NAME] [--timeout MIN] [--json] (-- COMMAND... | --attach COMMAND-ID)"
    run.add_argument("--user", help="whose login shell runs it (default: the cluster's user, such as ubuntu)")
    run.add_argument(
        "--timeout", type=_minutes, default=60, metavar="MIN", help="kill it after so many minutes (default: 60)"
    )
    run.add_argument("--attach", metavar="COMMAND-ID", help="show the output of an earlier command, and follow it")
    return run


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    own, words = command.split_at_dashes(sys.argv[1:])
    given = parser()
    parsed = given.parse_args(own)
    if bool(words) == bool(parsed.attach):
        got = f"{len(words)} words after --, and {'an' if parsed.attach else 'no'} --attach"
        given.error(f"got {got}; allowed: ENV -- COMMAND..., or ENV --attach COMMAND-ID")
    parsed.words = words
    return command.run(parsed, program)


def program(deployment: Deployment, parsed: argparse.Namespace, _: Console) -> int:
    """Run the command, or show an earlier one, and return its exit code."""
    from scripts.remote.head_node import HeadNode
    from scripts.remote.streamed_command import CommandResult, attach, print_output, print_remark, start

    head_node = HeadNode(deployment)
    if parsed.attach:
        streamed = attach(deployment, head_node, parsed.attach)
    else:
        streamed = start(deployment, head_node, parsed.words, user=parsed.user, seconds=parsed.timeout * 60)
        if sys.stderr.isatty():
            print_remark(f"If this machine goes offline, the command continues. {streamed.hint}")
    follow = streamed.follow if parsed.attach else streamed.follow_or_cancel
    if not parsed.json:
        return follow(print_output, print_remark, Clock())
    pieces: dict[str, list[str]] = {"stdout": [], "stderr": []}
    code = follow(lambda stream, text: pieces[stream].append(text), print_remark, Clock())
    result = CommandResult(
        command_id=streamed.command_id,
        instance_id=head_node.instance_id,
        exit_code=code,
        stdout="".join(pieces["stdout"]),
        stderr="".join(pieces["stderr"]),
    )
    print(result.to_json())
    return code


def _minutes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST:
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a whole number of minutes from 1 to {LONGEST}")
    return int(text)
