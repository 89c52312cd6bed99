"""Show a deployment on one screen: stacks, nodes, queues, file system, reservations, cost, and how to connect.

Exit code 0: it is healthy; 1: something failed, is missing or is not available; 2: arguments, settings or credentials
cannot be used; 130: Ctrl-C. With --watch: 0: the operation succeeded, or none is in progress; 1: it failed or was
rolled back; 124: the time limit is over. While no operation is in progress, --watch shows the state on a terminal, and
ends elsewhere.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, cast

from scripts.command import DONE, FAILED, UnusableError, above_zero, parser, run

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.deployment import Deployment
    from scripts.diagnose.diagnose import Diagnosis
    from scripts.status.model import Unavailable

EXAMPLES = """\
  python -m scripts status trn1-16                       the state now
  python -m scripts status trn1-16 --watch               progress of an operation, else the state every 15 s
  python -m scripts status trn1-16 --watch --timeout 90  the same for a pipeline that waits 90 minutes at most
  python -m scripts status trn1-16 --json | jq .faults   what is wrong, for a program
"""


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = parser("status", __doc__, EXAMPLES)
    command.add_argument("--watch", action="store_true", help="continue until the operation has ended, or until Ctrl-C")
    command.add_argument(
        "--every", type=above_zero, default=15.0, metavar="SECONDS", help="between two screens (default: %(default)g)"
    )
    command.add_argument("--timeout", type=above_zero, metavar="MINUTES", help="with --watch: for the operation")
    return command


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Show what the command line asks for, and return the exit code."""
    if given.timeout and not given.watch:
        raise UnusableError(f"--timeout: got {given.timeout:g} without --watch; allowed: with it")
    console.print(f"[bold]{deployment.settings.name}[/] in {deployment.settings.region}\n")

    from scripts.clock import Clock
    from scripts.progress import watch as progress
    from scripts.status import screen
    from scripts.status.collect import Collector
    from scripts.status.model import Unavailable

    clock = Clock()
    collector = Collector(deployment, clock)
    if given.watch:
        if console.is_terminal and not given.json and given.timeout is None:
            screen.refresh(collector, console, clock=clock, seconds=given.every)
        code = progress.watch(deployment, console, clock=clock, as_json=given.json, timeout=given.timeout)
        if code == FAILED and not given.json:
            _show(_diagnose(deployment, clock), console)
        return code
    status = collector.collect()
    diagnosis = _diagnose(deployment, clock) if status.failed else None
    if given.json:
        is_unavailable = diagnosis is None or isinstance(diagnosis, Unavailable)
        document = diagnosis if is_unavailable else cast("Diagnosis", diagnosis).model_dump(mode="json")
        print(status.model_copy(update={"diagnosis": document}).to_json())
    else:
        for each in screen.render(status):
            console.print(each)
        if diagnosis:
            _show(diagnosis, console)
    return DONE if status.healthy else FAILED


def _diagnose(deployment: Deployment, clock: Clock) -> Diagnosis | Unavailable:
    from scripts.diagnose.diagnose import diagnose
    from scripts.status.model import try_fetch

    return try_fetch(lambda: diagnose(deployment, clock=clock), "what `make diagnose` needs")


def _show(diagnosis: Diagnosis | Unavailable, console: Console) -> None:
    """Print why something failed, or why that is not available."""
    from scripts.diagnose.screen import show
    from scripts.status.model import Unavailable

    console.print()
    if isinstance(diagnosis, Unavailable):
        console.print(f"The diagnosis is not available: {diagnosis.reason}")
    else:
        show(diagnosis, console)


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    return run(arguments().parse_args(), program)
