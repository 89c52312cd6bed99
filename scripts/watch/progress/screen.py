"""The progress of an operation: a table that changes on a terminal, lines in a log, or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.text import Text

from scripts.account.stacks import StackEvent
from scripts.core.figures import duration
from scripts.core.report import Block, Gap, Line, Table, Toned, columns
from scripts.core.view import View, drawn
from scripts.watch.progress.model import Progress, StackProgress, Stopped

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.account.deployment import Deployment

_MOST_RESOURCES = 3
_MINUTES_FROM = 100
"""Seconds from which a typical time is in minutes."""
SECONDS_WITHOUT_LINE = 30.0
"""How long a log may be silent: some pipelines end what prints nothing."""


@contextmanager
def screen(deployment: Deployment, console: Console, *, as_json: bool) -> Iterator[Screen]:
    """Yield JSON lines, a table on a terminal, or lines for a log."""
    if as_json:
        yield JsonLines(deployment)
    elif not console.is_terminal:
        yield LineReporter(deployment, console)
    else:
        with Live(console=console, auto_refresh=False) as live:
            yield LiveTable(deployment, live)


class LiveTable:
    """A terminal: the table is drawn again each time, and stays at the end."""

    def __init__(self, deployment: Deployment, live: Live) -> None:
        self._deployment = deployment
        self._live = live

    def show(self, current: Progress) -> None:
        """Draw the table again."""
        self._live.update(Group(*drawn(blocks(self._deployment, current))), refresh=True)

    end = show

    def stop(self, reason: str) -> None:
        """Print the reason."""
        self._live.console.print(Text(reason, "yellow"))


class LineReporter:
    """A log: lines for what starts, ends and fails, and the state after a while of silence."""

    def __init__(self, deployment: Deployment, console: Console) -> None:
        self._deployment = deployment
        self._console = console
        self._printed: set[str] = set()
        self._last: datetime | None = None

    def show(self, current: Progress) -> None:
        """Print what is new."""
        now = f"{current.time:%H:%M:%S}"
        events = sorted((event for each in current.all() for event in each.events), key=lambda event: event.time)
        lines = {event.id: f"{event.time:%H:%M:%S}  {event.stack}  {_sentence(event)}" for event in events}
        lines |= {each: f"{now}  {each}" for each in _other_clusters(current)}
        new = [text for key, text in lines.items() if key not in self._printed]
        self._printed |= lines.keys()
        if current.trouble:
            new.append(f"{now}  trying again: {current.trouble}")
        is_silent = self._last is None or (current.time - self._last).total_seconds() >= SECONDS_WITHOUT_LINE
        if not new and is_silent:
            new.append(f"{now}  {_headline(self._deployment, current)}{_in_progress(current)}")
        for text in new:
            self.stop(text)
            self._last = current.time

    def end(self, current: Progress) -> None:
        """Print what is new, and the table."""
        self.show(current)
        self._console.print()
        View(self._console).show(blocks(self._deployment, current))

    def stop(self, reason: str) -> None:
        """Print the reason."""
        self._console.print(reason, soft_wrap=True)


class JsonLines:
    """A document on each line of standard output."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment_name = deployment.name

    def show(self, current: Progress) -> None:
        """Print the progress."""
        print(current.to_line(), flush=True)

    end = show

    def stop(self, reason: str) -> None:
        """Print the reason."""
        print(Stopped(deployment=self._deployment_name, reason=reason).to_line(), flush=True)


Screen = JsonLines | LineReporter | LiveTable


def blocks(deployment: Deployment, current: Progress) -> Iterator[Block]:
    """Yield a table of the stacks with resources in progress or, at the end, the slowest; the failure; the state."""
    rows = [
        (
            Toned(f"{'  ' * depth}{stack.title}", "bad" if stack.state.has_failed else ""),
            Toned(stack.status, "bad" if stack.state.has_failed else ""),
            f"{stack.resources_done}/{stack.resources}",
            duration(stack.seconds),
            _resources(stack, current.kind),
        )
        for root in current.stacks
        for stack, depth in _with_depth(root, 0)
    ]
    rows += [(Toned(each, "dim"), Toned("not started", "dim"), "", "", "") for each in current.not_started]
    yield Table("", columns("stack", "state", ">done", ">time", "resources"), rows)
    if rows:
        yield Gap()
    if failure := current.failure:
        yield Line(Toned(f"{failure.stack} {failure.logical_id} ({failure.type}) failed:", "bad"))
        yield Line(failure.reason, level=1)
    yield from (Line(Toned(each, "warn")) for each in _other_clusters(current))
    if current.trouble:
        yield Line(Toned(f"trying again: {current.trouble}", "warn"))
    yield Line(Toned(_headline(deployment, current), "strong"))


def _with_depth(stack: StackProgress, depth: int) -> Iterator[tuple[StackProgress, int]]:
    yield stack, depth
    for each in stack.stacks:
        yield from _with_depth(each, depth + 1)


def _resources(stack: StackProgress, kind: str) -> str:
    """Return the resources in progress, in a summary the slowest, each with the time that it has taken."""
    listed = stack.slowest if kind == "summary" else stack.in_progress
    lines = [f"{each.logical_id} {duration(each.seconds)}" for each in listed[:_MOST_RESOURCES]]
    more = len(listed) - len(lines)
    return "\n".join([*lines, *([f"and {more} more"] if more else [])])


def _headline(deployment: Deployment, current: Progress) -> str:
    """Return how long it has taken and takes yet, or the result, as one line."""
    name, since = deployment.settings.name, duration(current.seconds)
    if not current.stacks:
        if current.kind == "progress":
            return f"{name}: nothing has started yet"
        stacks = "its stacks are unchanged" if current.existing else "it has no stack"
        return f"{name}: nothing is in progress, and {stacks} in {deployment.settings.region}."
    if current.kind == "summary":
        return f"{name}: {current.outcome} after {since}."
    if current.outcome != "in progress" and not current.not_started:
        return f"{name}: nothing is in progress after {since}; waiting for more to start"
    left = current.left_seconds
    typically = f"~{left} s more" if left < _MINUTES_FROM else f"~{left / 60:.0f} min more"
    return f"{name}: {since} so far, {typically if left else 'soon done'}"


def _other_clusters(current: Progress) -> list[str]:
    return [
        f"{name} is {status}: another cluster of this deployment, which costs, too"
        for name, status in current.other_clusters.items()
    ]


def _sentence(event: StackEvent) -> str:
    return event.status if event.is_own else f"{event.logical_id} ({event.type}) {event.status}: {event.reason}"


def _in_progress(current: Progress) -> str:
    """Return the stacks in progress, each with the resource that has taken longest."""
    parts = []
    for each in current.all():
        if not each.ended:
            oldest = each.in_progress[0] if each.in_progress else None
            took = f", {oldest.logical_id} {duration(oldest.seconds)}" if oldest else ""
            parts.append(f"{each.title} {each.resources_done}/{each.resources}{took}")
    return f": {'; '.join(parts)}" if parts else ""
