"""Logs of nodes and jobs, in the order of their time, and followed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scripts.operations import job_logs, nodes, screen, streams
from scripts.operations.clock import Clock
from scripts.operations.command import DONE, OperationError
from scripts.operations.head_node import LONGEST, HeadNode
from scripts.operations.log_choice import Choice, Line, choose, choose_job
from scripts.operations.streamed_command import OUTPUT, StreamedCommand, start

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

SECONDS_BETWEEN_LOOKS = 3.0
LOOKS_BEFORE_RENEWAL = 20
"""How often to look before looking for streams of new nodes."""
_WINDOW = timedelta(hours=1)


def program(deployment: Deployment, parsed: argparse.Namespace, console: Console, clock: Clock | None = None) -> int:
    """Show what the command line asks for."""
    view = _View(deployment, parsed, console, clock or Clock())
    if parsed.list:
        view.list()
    elif parsed.job is not None:
        view.show_job()
    else:
        view.show_named()
    return DONE


@dataclass(frozen=True)
class _View:
    """What one command line asks for."""

    deployment: Deployment
    parsed: argparse.Namespace
    console: Console
    clock: Clock

    def show_named(self) -> None:
        choice = self._chosen()
        if not choice.streams and not self.parsed.follow:
            raise OperationError(f"{choice.log_group} has no logs of {self.parsed.what}")
        self._show(choice, self._chosen)

    def _chosen(self) -> Choice:
        self.deployment.account.forget()
        return choose(self.deployment, self.parsed.what, self.parsed.grep)

    def show_job(self) -> None:
        number = self.parsed.job
        head_node = HeadNode(self.deployment, self.clock)
        job = job_logs.find(head_node, number)
        choice = choose_job(self.deployment, number, job.nodes if job else {}, self.parsed.grep)
        output = None
        if job is None:
            _say(f"Slurm knows no job {number}, or no longer; this is what slurmctld logged of it.")
        elif job.output:
            _say(f"Job {number} is {job.state}; its output: {job.output}")
            follow = ("--follow=name", "--retry") if self.parsed.follow else ()
            words = ["tail", f"--lines={self.parsed.lines}", *follow, job.output]
            command = start(self.deployment, head_node, words, user="root", seconds=LONGEST)
            output = _Output(command, number, self.parsed.grep)
        try:
            self._show(choice, lambda: choice, output)
        except KeyboardInterrupt:
            if output:
                output.command.cancel()
            raise

    def _show(self, choice: Choice, renewed: Callable[[], Choice], output: _Output | None = None) -> None:
        """Show the last lines, and what comes if that is wanted; then ``renewed`` finds what has joined."""
        if len(choice.streams) == streams.MOST_STREAMS:
            _say(f"There may be more: these are the {streams.MOST_STREAMS} log streams that were written to last.")
        newest = max((each.latest for each in choice.streams if each.latest), default=self.clock.now())
        since = self.clock.now() - self.parsed.since if self.parsed.since else newest - _WINDOW
        tail = streams.Tail(self.deployment, choice.log_group, since=since, text=choice.text)
        lines = choice.lines(tail)[-self.parsed.lines :]
        if not self.parsed.follow:
            lines += output.all(self.clock) if output else []
            if self.parsed.json:
                print(json.dumps({"log_group": choice.log_group, "lines": list(map(_document, lines))}, indent=2))
            self._print(lines)
            return
        looks = 0
        while True:
            self._print_on(lines + (output.new() if output else []))
            self.clock.sleep(SECONDS_BETWEEN_LOOKS)
            looks += 1
            if looks % LOOKS_BEFORE_RENEWAL == 0:
                choice = renewed()
            lines = choice.lines(tail)

    def _print_on(self, lines: Sequence[Line]) -> None:
        if self.parsed.json:
            for line in lines:
                print(json.dumps(_document(line)), flush=True)
        self._print(lines)

    def _print(self, lines: Iterable[Line]) -> None:
        from rich.text import Text

        for line in lines:
            source = f"{line.node} {line.kind} | "
            for text in line.message.splitlines():
                self.console.print(Text.assemble((source, "cyan"), text), soft_wrap=True)

    def list(self) -> None:
        """Show the nodes that wrote last, and those that run, with their kinds of logs."""
        group = streams.group(self.deployment)
        found = _places(self.deployment, group)
        if self.parsed.json:
            document = {"log_group": group, "nodes": [asdict(each) for each in found]}
            print(json.dumps(document, indent=2, default=datetime.isoformat))
        table = screen.table("node", "instance", ">newest line", "kinds")
        for each in found:
            age = f"{screen.duration(self.clock.now() - each.latest)} ago" if each.latest else "none"
            shown_age = age if each.runs else f"{age}, gone"
            table.add_row(each.node, each.instance_id, shown_age, ", ".join(each.kinds))
        self.console.print(table)


@dataclass(frozen=True)
class _Place:
    """A node that has logs, or will."""

    node: str
    instance_id: str
    runs: bool
    latest: datetime | None
    kinds: Sequence[str]


def _places(deployment: Deployment, group: str) -> list[_Place]:
    """Return the nodes that run and those that wrote last, the head node first if it runs."""
    written: dict[tuple[str, str], list[streams.Stream]] = {}
    for each in streams.newest(deployment, group):
        written.setdefault((each.host, each.instance_id), []).append(each)
    present = {(each.host, each.instance_id): each.name for each in nodes.present(deployment)}
    return [
        _Place(
            present.get(place, place[0]),
            place[1],
            place in present,
            max((each.latest for each in written.get(place, []) if each.latest), default=None),
            sorted(each.kind for each in written.get(place, [])),
        )
        for place in {**present, **written}
    ]


class _Output:
    """The output file of a job, as ``tail`` on the head node prints it.

    Attributes:
        command: The ``tail``.
    """

    def __init__(self, command: StreamedCommand, job: int, text: str) -> None:
        self.command = command
        self._job = job
        self._text = text
        self._rest = ""

    def new(self) -> list[Line]:
        """Return the lines that have come since the last call."""
        self.command.new(self._take)
        return self._lines()

    def all(self, clock: Clock) -> list[Line]:
        """Return the lines once all have come."""
        self.command.follow(self._take, _say, clock)
        self._rest += "" if self._rest.endswith("\n") else "\n"
        return self._lines()

    def _take(self, stream: str, text: str) -> None:
        if stream == OUTPUT:
            self._rest += text
        else:
            print(text, end="", file=sys.stderr)

    def _lines(self) -> list[Line]:
        *whole, self._rest = self._rest.split("\n")
        return [Line(f"job {self._job}", "", "output", None, each) for each in whole if self._text in each]


def _document(line: Line) -> dict[str, str | None]:
    return {**asdict(line), "time": line.time.isoformat() if line.time else None}


def _say(text: str) -> None:
    print(text, file=sys.stderr)
