"""The progress of an operation on a terminal: a picture that changes, and a summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scripts.progress.estimate import typical
from scripts.progress.events import CONTAINERS, WELL, Resource, StackOperation
from scripts.screen import duration, table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from scripts.deployment import Deployment
    from scripts.progress.watch import Node, Progress

SLOWEST = 3
"""Resources of each stack that the summary names."""
_MOST_RESOURCES = 5
_BAR = 8
_WIDE_BAR = 72
_LONGEST_NAME = 31
_TITLE_LINES = 4
_MINUTES_FROM = 100.0
_WORKS = {"CREATE": "creating", "UPDATE": "updating", "DELETE": "deleting", "IMPORT": "importing"}
_DONE = {"CREATE": "created", "UPDATE": "updated", "DELETE": "deleted", "IMPORT": "imported"}


class Screen(Protocol):
    """Where progress is shown."""

    def show(self, found: Progress, trouble: str) -> None:
        """Show what is known now.

        Args:
            found: That.
            trouble: Why AWS did not answer the last time; empty: it did.
        """

    def end(self, found: Progress) -> None:
        """Show what came of it."""

    def stop(self, reason: str) -> None:
        """Say why nobody looks any more before it has ended."""


@contextmanager
def screen(deployment: Deployment, console: Console, *, as_json: bool) -> Iterator[Screen]:
    """Yield what suits the reader: JSON lines, a terminal's picture, or lines for a log."""
    from scripts.progress.lines import JsonLines, Lines

    if as_json:
        yield JsonLines(deployment)
    elif not console.is_terminal:
        yield Lines(deployment, console)
    else:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield Picture(deployment, console, live)


class Picture:
    """A terminal: bars, and a tree of what is being done."""

    def __init__(self, deployment: Deployment, console: Console, live: Live) -> None:
        self._deployment = deployment
        self._console = console
        self._live = live

    def show(self, found: Progress, trouble: str) -> None:
        """Draw the picture anew."""
        self._live.update(picture(self._deployment, found, trouble, self._console.height), refresh=True)

    def end(self, found: Progress) -> None:
        """Replace the picture by the summary."""
        self._live.update(Text(""), refresh=True)
        self._live.stop()
        show_summary(self._deployment, found, self._console)

    def stop(self, reason: str) -> None:
        """Leave the picture as it was, with the reason below."""
        self._live.transient = False
        self._live.stop()
        self._console.print(reason, style="yellow")


def picture(deployment: Deployment, found: Progress, trouble: str, height: int) -> RenderableType:
    """Return the picture, not higher than a terminal of so many lines."""
    rows = [row for node in found.nodes for row in _rows(node, found, 0)]
    rows += [_row(deployment.stack_name(part), None, "", "not begun", "dim") for part in found.missing]
    kept = max(height - _TITLE_LINES - 2 * bool(found.failure) - bool(trouble) - 2 * len(found.others), 1)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=_LONGEST_NAME)
    grid.add_column(width=_BAR)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for row in rows[:kept]:
        grid.add_row(*row)
    parts: list[RenderableType] = [Text(headline(deployment, found), "bold")]
    if found.nodes:
        whole = Table.grid()
        whole.add_row(ProgressBar(total=max(found.seconds + found.left, 1), completed=found.seconds, width=_WIDE_BAR))
        parts.append(whole)
    parts.append(grid)
    parts += [Text(each, "yellow") for each in beside(found)]
    if found.failure:
        text = f"failed: {found.failure.stack} {found.failure.logical_id}: {found.failure.reason}"
        parts.append(Text(text, "bold red"))
    if trouble:
        parts.append(Text(f"trying again: {trouble}", "yellow", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def headline(deployment: Deployment, found: Progress) -> str:
    """Return how long it has taken and takes yet, as one line."""
    name = deployment.settings.name
    if not found.is_complete:
        return f"{name}: reading what has happened so far ..."
    if not found.nodes:
        return f"{name}: nothing has begun yet"
    since = duration(timedelta(seconds=found.seconds))
    if not found.in_progress and not found.missing:
        return f"{name}: nothing is in progress after {since}; waiting whether more begins"
    return f"{name}: {since} so far, {_left(found.left)}"


def beside(found: Progress) -> list[str]:
    """Return a sentence for each other cluster of the deployment."""
    return [
        f"{name} is {status}: another cluster of this deployment, which costs, too"
        for name, status in found.others.items()
    ]


def show_summary(deployment: Deployment, found: Progress, console: Console) -> None:
    """Print what happened to each stack, how long it took, and what took longest."""
    if found.nodes:
        shown = table("stack", "outcome", ">time", "slowest")
        for column, width in zip(shown.columns, (27, 11, 11, console.width - 55), strict=True):
            column.no_wrap, column.overflow, column.max_width = True, "ellipsis", width
        for root in found.nodes:
            for node, depth in _with_depth(root, 0):
                now = node.operation
                style = "" if now.status in WELL else "red"
                took = duration(timedelta(seconds=now.seconds(found.now)))
                slow = "\n".join(f"{_took(each, found)} {each.logical_id}" for each in slowest(node, found))
                shown.add_row(f"{'  ' * depth}{node.title}", Text(_state(now), style), took, slow)
        console.print(shown)
        console.print()
    if found.failure:
        console.print(
            Text(f"{found.failure.stack} {found.failure.logical_id} ({found.failure.type}) failed:", "bold red")
        )
        console.print(Text(f"  {found.failure.reason}"))
    for each in beside(found):
        console.print(Text(each, "yellow"))
    console.print(conclusion(deployment, found))


def conclusion(deployment: Deployment, found: Progress) -> str:
    """Return what came of it, as one line."""
    name, took = deployment.settings.name, duration(timedelta(seconds=found.seconds))
    if found.outcome == "nothing":
        there = "its stacks are as they were" if found.present else "there is no stack of it"
        return f"{name}: nothing is in progress, and {there} in {deployment.settings.region}."
    return f"{name}: {found.outcome} after {took}."


def slowest(node: Node, found: Progress) -> list[Resource]:
    """Return the resources of a stack that took longest, without the stacks among them."""
    own = [each for each in node.operation.resources.values() if each.type not in CONTAINERS]
    return sorted(own, key=lambda each: each.seconds(found.now), reverse=True)[:SLOWEST]


def resources_in_progress(node: Node) -> list[Resource]:
    """Return what is being done in a stack itself, the oldest first, without the stacks that are shown."""
    shown = {each.name for each in node.children}
    busy = [each for each in node.operation.resources.values() if each.in_progress and each.logical_id not in shown]
    return sorted(busy, key=lambda each: each.began)


def _with_depth(node: Node, depth: int) -> Iterator[tuple[Node, int]]:
    yield node, depth
    for each in node.children:
        yield from _with_depth(each, depth + 1)


def _rows(node: Node, found: Progress, depth: int) -> Iterator[tuple[RenderableType, ...]]:
    """Yield the rows of a stack and of what is being done in it."""
    now = node.operation
    took = duration(timedelta(seconds=now.seconds(found.now)))
    style = "" if now.in_progress else "green" if now.status in WELL else "red"
    style = "red" if now.rolls_back else style
    text = f"{_state(now)} {took}, {_left(node.left)}" if now.in_progress else f"{_state(now)} in {took}"
    bar = ProgressBar(total=max(node.total, 1), completed=node.done if node.total else 1, width=_BAR)
    yield _row(f"{'  ' * depth}{node.title}", bar, f"{node.done}/{node.total}", text, style)
    if not now.in_progress:
        return
    for child in node.children:
        yield from _rows(child, found, depth + 1)
    busy = resources_in_progress(node)
    for each in busy[:_MOST_RESOURCES]:
        usual = typical(each.type, now)
        limit = f" of {_about(usual)}" if each.seconds(found.now) <= usual else ""
        name, work = f"{'  ' * (depth + 1)}{each.logical_id}", _WORKS.get(each.status.split("_")[0], each.status)
        yield _row(name, None, "", f"{work} {_took(each, found)}{limit}", "dim")
    if len(busy) > _MOST_RESOURCES:
        yield _row(f"{'  ' * (depth + 1)}and {len(busy) - _MOST_RESOURCES} more", None, "", "", "dim")


def _row(name: str, bar: ProgressBar | None, count: str, text: str, style: str) -> tuple[RenderableType, ...]:
    return Text(name, style), bar or "", Text(count, style), Text(text, style)


def _left(seconds: float) -> str:
    return f"{_about(seconds)} more" if seconds else "soon done"


def _about(seconds: float) -> str:
    """Return a typical time: no more exact than it is."""
    return f"~{seconds:.0f} s" if seconds < _MINUTES_FROM else f"~{seconds / 60:.0f} min"


def _took(resource: Resource, found: Progress) -> str:
    return duration(timedelta(seconds=resource.seconds(found.now)))


def _state(now: StackOperation) -> str:
    """Return in a word or two where an operation is."""
    if now.status.endswith("_FAILED"):
        return "failed"
    if now.status.endswith("CLEANUP_IN_PROGRESS"):
        return "cleaning up"
    if now.rolls_back:
        return "rolling back" if now.in_progress else "rolled back"
    action = now.status.split("_")[0]
    return (_WORKS if now.in_progress else _DONE)[action]
