"""Tell why a deployment failed, or why nodes of its cluster do not start, and what to do.

It follows the newest operation that failed through the nested stacks and the cluster's own stack, also if that is
deleted, to the first failure, and reads the logs that belong to it. Of a running cluster it checks the head node and
the logs of the last hours. Nothing is changed. Exit code 0: nothing failed; 1: a cause, or a failure of unknown cause,
was found, or a permission to read is missing; 2: arguments, settings or credentials cannot be used.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scripts import command

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

EXAMPLES = """\
  python -m scripts diagnose trn1-16                          the cause, why it is believed, what to do
  python -m scripts diagnose trn1-16 --json | jq .causes[0]   the same for programs
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    return command.parser("diagnose", __doc__, EXAMPLES)


def program(deployment: Deployment, parsed: argparse.Namespace, console: Console) -> int:
    """Print the diagnosis, and return the exit code."""
    from scripts.diagnose.diagnose import diagnose
    from scripts.diagnose.screen import show

    diagnosis = diagnose(deployment)
    show(diagnosis, console)
    if parsed.json:
        print(diagnosis.to_json())
    return command.FAILED if diagnosis.failed else command.DONE


def main() -> int:
    """Diagnose what the command line asks for, and return the exit code."""
    return command.run(parser().parse_args(), program)
