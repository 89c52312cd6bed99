"""Show a deployment on one screen: stacks, nodes, queues, file system, reservations, cost, and how to connect.

Exit code 0: it is healthy; 1: something failed, is missing or could not be seen; 2: arguments, settings or credentials
cannot be used; 130: Ctrl-C. With --watch: 0: what was being done ended well, or nothing is; 1: it failed or was rolled
back; 124: the time limit is over. When nothing is being done, --watch goes on showing the state on a terminal, and ends
elsewhere.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from scripts.command import DONE, FAILED, UnusableError, parser, run

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.deployment import Deployment
    from scripts.diagnose.diagnose import Diagnosis
    from scripts.status.model import Status, Unseen

EXAMPLES = """\
  python -m scripts status trn1-16                       the state now
  python -m scripts status trn1-16 --watch               progress of what is being done, else the state every 15 s
  python -m scripts status trn1-16 --watch --timeout 90  the same for a pipeline that waits 90 minutes at most
  python -m scripts status trn1-16 --json | jq .faults   what is wrong, for a program
"""


def positive(text: str) -> float:
    """Return a number above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a number above 0")
    return number


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = parser("status", __doc__, EXAMPLES)
    found.add_argument("--watch", action="store_true", help="go on until what is being done is done, or until Ctrl-C")
    found.add_argument(
        "--every", type=positive, default=15.0, metavar="SECONDS", help="between two looks (default: %(default)g)"
    )
    found.add_argument("--timeout", type=positive, metavar="MINUTES", help="with --watch: for what is being done")
    return found


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Show what the command line asks for, and return the exit code."""
    if given.timeout and not given.watch:
        raise UnusableError(f"--timeout: got {given.timeout:g} without --watch; allowed: with it")
    console.print(f"[bold]{deployment.settings.name}[/] in {deployment.settings.region}\n")

    from scripts.clock import Clock
    from scripts.progress import watch as progress
    from scripts.status.faults import faults
    from scripts.status.look import Observer
    from scripts.status.watch import refresh

    clock = Clock()
    observer = Observer(deployment, clock)
    if given.watch:
        if console.is_terminal and not given.json and given.timeout is None:
            refresh(observer, console, clock=clock, seconds=given.every)
        code = progress.watch(deployment, console, clock=clock, as_json=given.json, timeout=given.timeout)
        if code == FAILED and not given.json:
            show_diagnosis(_diagnosis(deployment, clock), console)
        return code
    status = observer.look()
    show(status, _diagnosis(deployment, clock) if status.failed else None, console, as_json=given.json)
    return FAILED if faults(status) else DONE


def show(status: Status, diagnosis: Diagnosis | Unseen | None, console: Console, *, as_json: bool) -> None:
    """Print the state of a deployment.

    Args:
        status: The state.
        diagnosis: Why something failed; None: nothing did.
        console: For people.
        as_json: Print JSON to standard output instead.
    """
    if as_json:
        from scripts.status.document import document

        print(json.dumps(document(status, diagnosis), indent=2))
        return

    from scripts.status.screen import render

    for each in render(status):
        console.print(each)
    if diagnosis is not None:
        show_diagnosis(diagnosis, console)


def show_diagnosis(diagnosis: Diagnosis | Unseen, console: Console) -> None:
    """Print why something failed, or why that was not seen."""
    from scripts.diagnose.screen import show
    from scripts.status.model import Unseen

    console.print()
    if isinstance(diagnosis, Unseen):
        console.print(f"Why it failed was not seen: {diagnosis.reason}")
    else:
        show(diagnosis, console)


def _diagnosis(deployment: Deployment, clock: Clock) -> Diagnosis | Unseen:
    from scripts.diagnose.diagnose import diagnose
    from scripts.status.model import seen

    return seen(lambda: diagnose(deployment, clock=clock), "what `make diagnose` needs")


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    return run(arguments().parse_args(), program)
