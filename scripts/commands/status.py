"""Show a deployment on one screen: stacks, nodes, queues, file system, reservations, cost, and how to connect.

With --watch the operation in progress is followed to its end. While none is, --watch shows the state again and again on
a terminal, and ends elsewhere.

A stack whose last change failed and was rolled back completely is what it was before: that is a note. Of one that could
not be rolled back it says which configuration is in force, and what leads out.

Exit code 0: it is healthy; 1: something failed, is missing or is not available; 2: arguments, settings or credentials
cannot be used; 130: Ctrl-C. With --watch: 0: the operation succeeded, or none is in progress; 1: it failed or was
rolled back; 124: the time limit is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.command(
    __doc__,
    ("status research", "the state now"),
    ("status research --watch", "progress of an operation, else the state every 15 s"),
    ("status research --watch --timeout 90", "for a pipeline that waits 90 minutes at most"),
    ("status research -o json | jq .problems", "what is wrong, for a program"),
)
@argument.deployed
@click.option("--watch", is_flag=True, help="Continue until the operation has ended, or until Ctrl-C.")
@click.option("--every", type=options.Positive(), default=15, show_default=True, help="Seconds between two screens.")
@click.option("--timeout", type=options.Positive(), metavar="MINUTES", help="With --watch: for the operation.")
@options.output("json", "markdown")
def command(*, deployment: Deployment, watch: bool, every: float, timeout: float | None, output: str) -> int:
    """Show what the command line asks for, and return the exit code."""
    if timeout and not watch:
        raise click.UsageError("--timeout goes with --watch.")
    if watch and output == "markdown":
        raise click.UsageError("--output: got markdown; allowed with --watch: text, json")
    terminal.heading(f"{deployment.settings.name} in {deployment.settings.region}", output)
    console = terminal.console(output)

    from scripts.core.clock import Clock
    from scripts.watch.status.collect import collect, explain
    from scripts.watch.status.report import explained

    clock = Clock()
    if watch:
        from scripts.watch.status import watch as watching

        code = watching.watch(deployment, console, clock=clock, every=every, timeout=timeout, as_json=output == "json")
        if code == ExitCode.DONE and output == "text":
            terminal.suggest(f"status {deployment.name}")
        return code
    status = collect(deployment, clock)
    diagnosis = explain(deployment, clock) if status.failed else None
    view = terminal.show(status.with_diagnosis(diagnosis), output)
    if diagnosis:
        view.show(explained(diagnosis))
    elif not status.exists:
        terminal.suggest(f"plan {deployment.name}", "nothing is deployed")
    else:
        terminal.suggest(f"{'jobs list' if status.healthy else 'diagnose'} {deployment.name}")
    return ExitCode.DONE if status.healthy else ExitCode.FAILED
