"""The progress of an operation as lines: for the log of a pipeline, and as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from scripts.progress.estimate import typical_seconds
from scripts.progress.model import Progress, Stopped
from scripts.progress.operations import CONTAINERS
from scripts.progress.screen import headline, other_clusters, show_summary
from scripts.screen import duration

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

SECONDS_WITHOUT_LINE = 30.0
"""How long a log may be silent: some pipelines end what prints nothing."""
LINES_AT_ONCE = 6
"""Events that one refresh prints at most, the newest."""
_SLOW_SECONDS = 60.0
"""A resource that typically takes so long is worth a line when it is done."""


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


def _notes(current: Progress) -> list[tuple[datetime, str]]:
    """Return what is worth a line, with its time."""
    notes: list[tuple[datetime, str]] = []
    for stack in current.all():
        notes.append((stack.began, f"{stack.stack}  {stack.action}_IN_PROGRESS"))
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
