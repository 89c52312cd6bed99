"""The progress of an operation as lines: for the log of a pipeline, and as JSON."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from scripts.progress.estimate import typical
from scripts.progress.events import CONTAINERS
from scripts.progress.screen import beside, headline, resources_in_progress, show_summary, slowest
from scripts.screen import duration

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment
    from scripts.progress.events import Event, Resource
    from scripts.progress.watch import Node, Progress

SECONDS_WITHOUT_LINE = 30.0
"""How long a log may be silent: some pipelines end what says nothing."""
LINES_AT_ONCE = 6
"""Events that one look tells at most, the newest."""
_SLOW_SECONDS = 60.0
"""A resource that typically takes so long is worth a line when it is done."""


class Lines:
    """A log: lines for what begins, ends and fails, and where things are after a while of silence."""

    def __init__(self, deployment: Deployment, console: Console) -> None:
        self._deployment = deployment
        self._console = console
        self._told: set[str] = set()
        self._last: datetime | None = None

    def show(self, found: Progress, trouble: str) -> None:
        """Print what is new."""
        new = [each for each in sorted(_notes(found)) if each[1] not in self._told] if found.is_complete else []
        others = [each for each in beside(found) if each not in self._told]
        self._told.update([*(text for _, text in new), *others])
        if len(new) > LINES_AT_ONCE:
            self._print(f"{found.now:%H:%M:%S}  {len(new) - LINES_AT_ONCE} earlier events are left out")
        for _, text in new[-LINES_AT_ONCE:]:
            self._print(text)
        for each in others:
            self._print(f"{found.now:%H:%M:%S}  {each}")
        if trouble:
            self._print(f"{found.now:%H:%M:%S}  trying again: {trouble}")
        silent = self._last is None or (found.now - self._last).total_seconds() >= SECONDS_WITHOUT_LINE
        if new or others or trouble:
            self._last = found.now
        elif silent:
            self._print(f"{found.now:%H:%M:%S}  {headline(self._deployment, found)}{_busy(found)}")
            self._last = found.now

    def end(self, found: Progress) -> None:
        """Print the summary."""
        self._console.print()
        show_summary(self._deployment, found, self._console)

    def stop(self, reason: str) -> None:
        """Print the reason."""
        self._print(reason)

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False)


class JsonLines:
    """A document on each line of standard output, as docs/schemas/status-watch.json describes it."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def show(self, found: Progress, trouble: str) -> None:
        """Print what is known now."""
        _dump({"kind": "progress", **self._document(found), "trouble": trouble or None})

    def end(self, found: Progress) -> None:
        """Print what came of it."""
        _dump({"kind": "summary", **self._document(found)})

    def stop(self, reason: str) -> None:
        """Print the reason."""
        _dump({"kind": "stopped", "environment": self._deployment.environment, "reason": reason})

    def _document(self, found: Progress) -> dict[str, Any]:
        return {
            "environment": self._deployment.environment,
            "time": found.now.isoformat(),
            "outcome": found.outcome,
            "began": found.began.isoformat() if found.began else None,
            "seconds": round(found.seconds),
            "left_seconds": round(found.left),
            "complete": found.is_complete,
            "not_begun": [self._deployment.stack_name(part) for part in found.missing],
            "denied": list(found.denied),
            "other_clusters": dict(found.others),
            "failure": _failure(found.failure) if found.failure else None,
            "stacks": [_stack(each, found) for each in found.nodes],
        }


def _notes(found: Progress) -> list[tuple[datetime, str]]:
    """Return what is worth a line, with its time."""
    notes: list[tuple[datetime, str]] = []
    for node in [each for root in found.nodes for each in root.all()]:
        now = node.operation
        notes.append((now.began, f"{now.stack}  {now.action}_IN_PROGRESS"))
        if now.rolls_back and now.in_progress:
            notes.append((now.newest, f"{now.stack}  {now.status}"))
        if now.ended:
            took = duration(timedelta(seconds=now.seconds(found.now)))
            notes.append((now.ended, f"{now.stack}  {now.status} in {took}"))
        notes += [
            (each.time, f"{now.stack}  {each.logical_id} ({each.type}) {each.status}: {each.reason}")
            for each in now.failures
        ]
        for each in now.resources.values():
            slow = each.type not in CONTAINERS and typical(each.type, now) >= _SLOW_SECONDS
            if slow and each.status.endswith("_COMPLETE"):
                took = duration(timedelta(seconds=each.seconds(found.now)))
                notes.append((each.changed, f"{now.stack}  {each.logical_id} ({each.type}) {each.status} in {took}"))
    return [(time, f"{time:%H:%M:%S}  {text}") for time, text in notes]


def _busy(found: Progress) -> str:
    """Return what has been done for longest."""
    stacks = [each for root in found.nodes for each in root.all() if each.operation.in_progress]
    parts = []
    for node in stacks:
        busy = resources_in_progress(node)
        took = f", {busy[0].logical_id} {duration(timedelta(seconds=busy[0].seconds(found.now)))}" if busy else ""
        parts.append(f"{node.title} {node.done}/{node.total}{took}")
    return f": {'; '.join(parts)}" if parts else ""


def _stack(node: Node, found: Progress) -> dict[str, Any]:
    now = node.operation
    return {
        "name": node.name,
        "stack": now.stack,
        "stack_id": now.stack_id,
        "action": now.action,
        "status": now.status,
        "reason": now.reason or None,
        "began": now.began.isoformat(),
        "ended": now.ended.isoformat() if now.ended else None,
        "seconds": round(now.seconds(found.now)),
        "left_seconds": round(node.left),
        "resources_done": node.done,
        "resources": node.total,
        "in_progress": [_resource(each, found) for each in resources_in_progress(node)],
        "slowest": [_resource(each, found) for each in slowest(node, found)],
        "stacks": [_stack(each, found) for each in node.children],
    }


def _resource(resource: Resource, found: Progress) -> dict[str, Any]:
    return {
        "logical_id": resource.logical_id,
        "physical_id": resource.physical_id or None,
        "type": resource.type,
        "status": resource.status,
        "seconds": round(resource.seconds(found.now)),
    }


def _failure(event: Event) -> dict[str, Any]:
    return {
        "stack": event.stack,
        "logical_id": event.logical_id,
        "type": event.type,
        "status": event.status,
        "reason": event.reason,
        "time": event.time.isoformat(),
    }


def _dump(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)
