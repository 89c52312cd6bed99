"""Run a command on the head node, as the cluster's user in a login shell, and show its output as it comes.

No SSH and no key: Systems Manager takes the command, CloudWatch Logs brings back what it prints. The words after -- are
the command's own, quoted by nobody: ENV -- bash -c 'A && B' for more than one command. Ctrl-C ends it there, too; so
do a terminal that goes, and a pipe that is closed. AWS keeps the words and the output: no secrets.

Exit code: the command's own once it ran; before that 1: it cannot be run, 2: arguments, settings or credentials cannot
be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
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
  python -m scripts run trn1-16 --attach 01234567-89ab-cdef-0123-456789abcdef   look again
"""
LONGEST = 2880
"""Minutes: the 48 hours of Systems Manager."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of what stands before the first ``--``."""
    found = command.parser("run", __doc__, EXAMPLES)
    found.usage = f"{found.prog} ENV [--user NAME] [--timeout MIN] [--json] (-- COMMAND... | --attach COMMAND-ID)"
    found.add_argument("--user", help="whose login shell runs it (default: the cluster's user, such as ubuntu)")
    found.add_argument(
        "--timeout", type=_minutes, default=60, metavar="MIN", help="end it after so many minutes (default: 60)"
    )
    found.add_argument("--attach", metavar="COMMAND-ID", help="show an earlier command's output, and what still comes")
    return found


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    own, words = _split(sys.argv[1:])
    given = parser()
    parsed = given.parse_args(own)
    if bool(words) == bool(parsed.attach):
        got = f"{len(words)} words after --, and {'an' if parsed.attach else 'no'} --attach"
        given.error(f"got {got}; allowed: ENV -- COMMAND..., or ENV --attach COMMAND-ID")
    parsed.words = words
    return command.run(parsed, program)


def program(deployment: Deployment, parsed: argparse.Namespace, _: Console) -> int:
    """Run the command, or look at an earlier one, and return its exit code."""
    from scripts.remote.head_node import HeadNode
    from scripts.remote.streamed_command import ERRORS, OUTPUT, attach, print_output, print_remark, start
    from ultracluster.domain import neuron

    head_node = HeadNode(deployment)
    if parsed.attach:
        streamed = attach(deployment, head_node, parsed.attach)
    else:
        user = parsed.user or neuron.SYSTEMS[deployment.settings.cluster_spec.os].user
        streamed = start(deployment, head_node, parsed.words, user=user, seconds=parsed.timeout * 60)
        if sys.stderr.isatty():
            print_remark(f"Should this machine go away, the command goes on. {streamed.hint}")
    follow = streamed.follow if parsed.attach else streamed.follow_or_cancel
    if not parsed.json:
        return follow(print_output, print_remark, Clock())
    pieces: dict[str, list[str]] = {OUTPUT: [], ERRORS: []}
    code = follow(lambda stream, text: pieces[stream].append(text), print_remark, Clock())
    document = {
        "command_id": streamed.command_id,
        "instance_id": head_node.instance_id,
        "exit_code": code,
        **{stream: "".join(texts) for stream, texts in pieces.items()},
    }
    print(json.dumps(document, indent=2))
    return code


def _minutes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST:
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a whole number of minutes from 1 to {LONGEST}")
    return int(text)


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the arguments before and after the first `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]
