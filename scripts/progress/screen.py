"""The progress of an operation: a picture on a terminal, lines in a log, or JSON; and a summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scripts.progress.estimate import typical_seconds
from scripts.progress.model import Progress, StackProgress, Stopped
from scripts.progress.operations import CONTAINERS, SUCCESSES, StackOperation
from scripts.screen import duration, table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from scripts.deployment import Deployment

_MOST_RESOURCES = 5
_BAR = 8
_WIDE_BAR = 72
_LONGEST_NAME = 31
_MINUTES_FROM = 100.0
SECONDS_WITHOUT_LINE = 30.0
"""How long a log may be silent: some pipelines end what prints nothing."""
LINES_AT_ONCE = 6
"""Events that one refresh prints at most, the newest."""
_SLOW_SECONDS = 60.0
"""A resource that typically takes so long is worth a line when it is done."""
_ACTIVE = {"CREATE": "creating", "UPDATE": "updating", "DELETE": "deleting", "IMPORT": "importing"}
_DONE = {"CREATE": "created", "UPDATE": "updated", "DELETE": "deleted", "IMPORT": "imported"}


@contextmanager
def screen(deployment: Deployment, console: Console, *, as_json: bool) -> Iterator[Screen]:
    """Yield JSON lines, a picture on a terminal, or lines for a log."""
    if as_json:
        yield JsonLines(deployment)
    elif not console.is_terminal:
        yield LineReporter(deployment, console)
    else:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield Picture(deployment, console, live)


class Picture:
    """A terminal: bars, and a tree of the stacks and resources in progress."""

    def __init__(self, deployment: Deployment, console: Console, live: Live) -> None:
        self._deployment = deployment
        self._console = console
        self._live = live

    def show(self, current: Progress) -> None:
        """Draw the picture again."""
        self._live.update(picture(self._deployment, current), refresh=True)

    def end(self, current: Progress) -> None:
        """Replace the picture by the summary."""
        self._live.stop()
        show_summary(self._deployment, current, self._console)

    def stop(self, reason: str) -> None:
        """Leave the picture as it was, with the reason below."""
        self._live.transient = False
        self._live.stop()
        self._console.print(reason, style="yellow")


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
        new = [each for each in sorted(_notes(current)) if each[1] not in self._printed]
        others = [each for each in other_clusters(current) if each not in self._printed]
        self._printed.update([*(text for _, text in new), *others])
        if len(new) > LINES_AT_ONCE:
            self._print(f"{now}  {len(new) - LINES_AT_ONCE} earlier events are left out")
        for _, text in new[-LINES_AT_ONCE:]:
            self._print(text)
        for each in others:
            self._print(f"{now}  {each}")
        if current.trouble:
            self._print(f"{now}  trying again: {current.trouble}")
        if not (new or others or current.trouble):
            if self._last and (current.time - self._last).total_seconds() < SECONDS_WITHOUT_LINE:
                return
            self._print(f"{now}  {headline(self._deployment, current)}{_in_progress(current)}")
        self._last = current.time

    def end(self, current: Progress) -> None:
        """Print the summary."""
        self._console.print()
        show_summary(self._deployment, current, self._console)

    def stop(self, reason: str) -> None:
        """Print the reason."""
        self._print(reason)

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False)


class JsonLines:
    """A document on each line of standard output."""

    def __init__(self, deployment: Deployment) -> None:
        self._environment = deployment.environment

    def show(self, current: Progress) -> None:
        """Print the progress."""
        print(current.model_dump_json(), flush=True)

    end = show

    def stop(self, reason: str) -> None:
        """Print the reason."""
        print(Stopped(environment=self._environment, reason=reason).model_dump_json(), flush=True)


Screen = JsonLines | LineReporter | Picture


def picture(deployment: Deployment, current: Progress) -> RenderableType:
    """Return the picture. What a terminal has no room for is cut at the bottom."""
    parts: list[RenderableType] = [Text(headline(deployment, current), "bold")]
    if current.stacks:
        total = max(current.seconds + current.left_seconds, 1)
        whole = Table.grid()
        whole.add_row(ProgressBar(total=total, completed=current.seconds, width=_WIDE_BAR))
        parts.append(whole)
    parts += [Text(each, "yellow") for each in other_clusters(current)]
    if current.failure:
        text = f"failed: {current.failure.stack} {current.failure.logical_id}: {current.failure.reason}"
        parts.append(Text(text, "bold red"))
    if current.trouble:
        parts.append(Text(f"trying again: {current.trouble}", "yellow", no_wrap=True, overflow="ellipsis"))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=_LONGEST_NAME)
    grid.add_column(width=_BAR)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for stack in current.stacks:
        for row in _rows(stack, 0):
            grid.add_row(*row)
    for name in current.not_started:
        grid.add_row(*_row(name, None, "", "not started", "dim"))
    return Group(*parts, grid)


def headline(deployment: Deployment, current: Progress) -> str:
    """Return how long it has taken and takes yet, as one line."""
    name = deployment.settings.name
    if not current.stacks:
        return f"{name}: nothing has started yet"
    since = duration(current.seconds)
    if current.outcome != "in progress" and not current.not_started:
        return f"{name}: nothing is in progress after {since}; waiting for more to start"
    return f"{name}: {since} so far, {_left(current.left_seconds)}"


def other_clusters(current: Progress) -> list[str]:
    """Return a sentence for each other cluster of the deployment."""
    return [
        f"{name} is {status}: another cluster of this deployment, which costs, too"
        for name, status in current.other_clusters.items()
    ]


def show_summary(deployment: Deployment, current: Progress, console: Console) -> None:
    """Print what happened to each stack, how long it took, and what took longest."""
    if current.stacks:
        summary = table("stack", "outcome", ">time", "slowest")
        for root in current.stacks:
            for stack, depth in _with_depth(root, 0):
                style = "" if stack.status in SUCCESSES else "red"
                slow = "\n".join(f"{duration(each.seconds)} {each.logical_id}" for each in stack.slowest)
                outcome = Text(_state(stack), style)
                summary.add_row(f"{'  ' * depth}{stack.title}", outcome, duration(stack.seconds), slow)
        console.print(summary)
        console.print()
    if failure := current.failure:
        console.print(Text(f"{failure.stack} {failure.logical_id} ({failure.type}) failed:", "bold red"))
        console.print(Text(f"  {failure.reason}"))
    for each in other_clusters(current):
        console.print(Text(each, "yellow"))
    console.print(_conclusion(deployment, current))


def _conclusion(deployment: Deployment, current: Progress) -> str:
    name = deployment.settings.name
    if current.outcome == "nothing":
        stacks = "its stacks are unchanged" if current.existing else "it has no stack"
        return f"{name}: nothing is in progress, and {stacks} in {deployment.settings.region}."
    return f"{name}: {current.outcome} after {duration(current.seconds)}."


def _with_depth(stack: StackProgress, depth: int) -> Iterator[tuple[StackProgress, int]]:
    yield stack, depth
    for each in stack.stacks:
        yield from _with_depth(each, depth + 1)


def _rows(stack: StackProgress, depth: int) -> Iterator[tuple[RenderableType, ...]]:
    """Yield the rows of a stack and of its resources in progress."""
    took = duration(stack.seconds)
    style = "" if not stack.ended else "green" if stack.status in SUCCESSES else "red"
    style = "red" if stack.rolls_back else style
    state = _state(stack)
    text = f"{state} in {took}" if stack.ended else f"{state} {took}, {_left(stack.left_seconds)}"
    done = stack.resources_done if stack.resources else 1
    bar = ProgressBar(total=max(stack.resources, 1), completed=done, width=_BAR)
    yield _row(f"{'  ' * depth}{stack.title}", bar, f"{stack.resources_done}/{stack.resources}", text, style)
    if stack.ended:
        return
    for child in stack.stacks:
        yield from _rows(child, depth + 1)
    for each in stack.in_progress[:_MOST_RESOURCES]:
        typical = typical_seconds(each.type, stack)
        limit = f" of {_about(typical)}" if each.seconds <= typical else ""
        name, work = f"{'  ' * (depth + 1)}{each.logical_id}", _ACTIVE.get(each.status.split("_")[0], each.status)
        yield _row(name, None, "", f"{work} {duration(each.seconds)}{limit}", "dim")
    if len(stack.in_progress) > _MOST_RESOURCES:
        more = len(stack.in_progress) - _MOST_RESOURCES
        yield _row(f"{'  ' * (depth + 1)}and {more} more", None, "", "", "dim")


def _row(name: str, bar: ProgressBar | None, count: str, text: str, style: str) -> tuple[RenderableType, ...]:
    return Text(name, style), bar or "", Text(count, style), Text(text, style)


def _left(seconds: float) -> str:
    return f"{_about(seconds)} more" if seconds else "soon done"


def _about(seconds: float) -> str:
    """Return a typical time: no more exact than it is."""
    return f"~{seconds:.0f} s" if seconds < _MINUTES_FROM else f"~{seconds / 60:.0f} min"


def _state(operation: StackOperation) -> str:
    """Return the state of an operation in a word or two."""
    if operation.status.endswith("_FAILED"):
        return "failed"
    if operation.status.endswith("CLEANUP_IN_PROGRESS"):
        return "cleaning up"
    if operation.rolls_back:
        return "rolled back" if operation.ended else "rolling back"
    action = operation.status.split("_")[0]
    return (_DONE if operation.ended else _ACTIVE)[action]


def _notes(current: Progress) -> list[tuple[datetime, str]]:
    """Return what is worth a line, with its time."""
    notes: list[tuple[datetime, str]] = []
    for stack in current.all():
        notes.append((stack.started, f"{stack.stack}  {stack.action}_IN_PROGRESS"))
        if stack.rolls_back and not stack.ended:
            notes.append((stack.newest, f"{stack.stack}  {stack.status}"))
        if stack.ended:
            notes.append((stack.ended, f"{stack.stack}  {stack.status} in {duration(stack.seconds)}"))
        for failure in stack.failures:
            text = f"{failure.logical_id} ({failure.type}) {failure.status}: {failure.reason}"
            notes.append((failure.time, f"{stack.stack}  {text}"))
        for each in stack.by_id.values():
            slow = each.type not in CONTAINERS and typical_seconds(each.type, stack) >= _SLOW_SECONDS
            if slow and each.status.endswith("_COMPLETE"):
                took = duration(each.seconds_at(current.time))
                notes.append((each.changed, f"{stack.stack}  {each.logical_id} ({each.type}) {each.status} in {took}"))
    return [(time, f"{time:%H:%M:%S}  {text}") for time, text in notes]


def _in_progress(current: Progress) -> str:
    """Return the stacks in progress, each with the resource that has taken longest."""
    parts = []
    for each in current.all():
        if not each.ended:
            oldest = each.in_progress[0] if each.in_progress else None
            took = f", {oldest.logical_id} {duration(oldest.seconds)}" if oldest else ""
            parts.append(f"{each.title} {each.resources_done}/{each.resources}{took}")
    return f": {'; '.join(parts)}" if parts else ""
