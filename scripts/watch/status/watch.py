"""Follows the state of a deployment on a terminal, and an operation to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live

from scripts.core.errors import ExitCode
from scripts.core.report import Conclusion, Line, Toned
from scripts.core.view import View, drawn
from scripts.watch.status.report import Status, explained

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.account.deployment import Deployment
    from scripts.core.clock import Clock


def watch(
    deployment: Deployment, console: Console, *, clock: Clock, every: float, timeout: float | None, as_json: bool
) -> int:
    """Follow the operation in progress to its end, with a diagnosis for people if it fails; return the exit code.

    While none is, a terminal shows the state every so many seconds, unless there is a `timeout`, in minutes.
    """
    from scripts.watch.progress import watch as progress
    from scripts.watch.status.collect import collect, explain

    if console.is_terminal and not as_json and timeout is None:
        refresh(lambda: collect(deployment, clock), console, clock=clock, seconds=every)
    code = progress.watch(deployment, console, clock=clock, as_json=as_json, timeout=timeout)
    if code == ExitCode.FAILED and not as_json:
        View(console).show(explained(explain(deployment, clock)))
    return code


def refresh(collect: Callable[[], Status], console: Console, *, clock: Clock, seconds: float) -> None:
    """Show the state on a terminal again and again; return as soon as an operation on a stack is in progress."""
    with Live(console=console, auto_refresh=False) as live:
        while True:
            status = collect()
            if any(each.in_progress for each in status.existing_stacks.values()):
                return
            why = Line(Toned(f"Why: ./ultracluster diagnose {status.deployment}", "strong"))
            blocks = [*status.state(), *([Conclusion([why])] if status.failed else [])]
            live.update(Group(*drawn(blocks)), refresh=True)
            clock.sleep(seconds)
