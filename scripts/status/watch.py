"""The state of a deployment again and again, until Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.progress.watch import under_way
from scripts.status.screen import render

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.status.look import Observer
    from scripts.status.model import Status


def refresh(observer: Observer, console: Console, *, clock: Clock, seconds: float) -> None:
    """Show the state again and again on a terminal; return as soon as an operation is under way.

    Args:
        observer: Looks.
        console: To show it on.
        clock: Lets time pass.
        seconds: Between two looks.
    """
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=console, auto_refresh=False) as live:
        while not _is_under_way(status := observer.look()):
            why = [Text(f"Why: make diagnose ENV={status.environment}", "bold")] if status.failed else []
            live.update(Group(*render(status), *why), refresh=True)
            clock.sleep(seconds)


def _is_under_way(status: Status) -> bool:
    """Return whether something is done to a stack."""
    return under_way({name: {"StackStatus": each.status} for name, each in status.known_stacks.items()})
