"""Logs of nodes and jobs, in the order of their time, and followed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scripts import screen
from scripts.clock import Changes, Clock, with_retries
from scripts.command import DONE, OperationError, Say
from scripts.logs import jobs as job_logs
from scripts.logs import streams
from scripts.logs.choice import Choice, Line, choose, choose_job, choose_job_of_controller
from scripts.logs.streams import Found, Tail
from scripts.remote import nodes
from scripts.remote.head_node import HeadNode, HeadNodeError
from scripts.remote.streamed_command import print_remark

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

SECONDS_BETWEEN_LOOKS = 3.0
LOOKS_BEFORE_RENEWAL = 20
"""How often to look before looking for streams of new nodes."""
WINDOW, WINDOW_OF_JOBS = timedelta(hours=1), timedelta(days=7)
"""How far back before the newest line to look, unless told."""


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
    said: set[str] = field(default_factory=set)

    def say(self, text: str) -> None:
        """Tell people something, once."""
        if text not in self.said:
            self.said.add(text)
            print_remark(text)

    def show_named(self) -> None:
        choice = self._chosen()
        if not choice.streams and not self.parsed.follow:
            raise OperationError(f"{choice.log_group} has no logs of {self.parsed.what}")
        self._show(choice, self._chosen)

    def _chosen(self) -> Choice:
        self.deployment.account.forget()
        return choose(self.deployment, self.parsed.what, self.parsed.grep, self.say)

    def show_job(self) -> None:
        self._take_number()
        name, text = self.parsed.job, self.parsed.grep
        asked = self._job()
        if asked is None:
            self.say(f"This is what slurmctld logged of job {name}.")
            controller = choose_job_of_controller(self.deployment, name, text, self.say)
            self._show(controller, lambda: controller)
            return
        head_node, job = asked
        choice = choose_job(self.deployment, job.nodes, text, self.say)
        output = None
        if job.output:
            self.say(f"Job {name} is {job.state}; its output: {job.output}")
            look = job_logs.Look(name, self.parsed.lines, text, self.clock, self.say)
            output = job_logs.JobOutput(self.deployment, head_node, job, look)
        try:
            self._show(choice, lambda: choice, output)
        except HeadNodeError:
            raise
        except BaseException:
            if output:
                output.close()
            raise

    def _take_number(self) -> None:
        """Put the number of the newest job of a name in the place of the name.

        Raises:
            OperationError: Slurm knows no such job, or cannot be asked.
        """
        name = self.parsed.job
        if name[0].isdigit():
            return
        number = job_logs.newest(HeadNode(self.deployment, self.clock), name)
        if not number:
            raise OperationError(f"Slurm knows no job called {name}, or no longer; its number shows what was logged")
        self.say(f"The newest job called {name} is {number}.")
        self.parsed.job = number

    def _job(self) -> tuple[HeadNode, job_logs.Job] | None:
        """Ask Slurm for the job; None: it knows none, or could not be asked, which is said."""
        from botocore.exceptions import ClientError

        try:
            head_node = HeadNode(self.deployment, self.clock)
            job = job_logs.find(head_node, self.parsed.job)
        except HeadNodeError as error:
            self.say(str(error))
            return None
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("AccessDeniedException", "UnauthorizedOperation"):
                raise
            self.say(f"Slurm could not be asked: {error}")
            return None
        if job is None:
            self.say(f"Slurm knows no job {self.parsed.job}, or no longer.")
            return None
        return head_node, job

    def _show(self, choice: Choice, renewed: Callable[[], Choice], output: job_logs.JobOutput | None = None) -> None:
        """Show the last lines, and what comes if that is wanted; then ``renewed`` finds what has joined."""
        found = self._last(choice)
        lines = list(map(choice.line, found.events))[-self.parsed.lines :]
        if not self.parsed.follow:
            lines += output.all() if output else []
            if self.parsed.json:
                print(json.dumps({"log_group": choice.log_group, "lines": list(map(_document, lines))}, indent=2))
            self._print(lines)
            return
        tail, looks = streams.Tail(self.clock, found.events), 0

        def look() -> bool:
            nonlocal choice, looks
            if looks and looks % LOOKS_BEFORE_RENEWAL == 0:
                choice = renewed()
            if looks:
                lines.extend(self._new(choice, tail))
            if output:
                lines.extend(output.new())
            looks += 1
            return True

        follow = with_retries(look, self.clock, Changes(self.say))
        while True:
            if follow():
                self._print_on(lines)
                lines.clear()
            self.clock.sleep(SECONDS_BETWEEN_LOOKS)

    def _last(self, choice: Choice) -> Found:
        """Return the last events, and say so if there are none, or not all were looked at."""
        if not choice.streams:
            return Found([], 0, None)
        now = self.clock.now()
        newest = max((each.latest for each in choice.streams if each.latest), default=now)
        window = WINDOW_OF_JOBS if self.parsed.job else WINDOW
        since = now - self.parsed.since if self.parsed.since else newest - window
        found = choice.source(self.deployment).last(self.parsed.lines, since, now)
        if not found.events:
            self.say(f"No line from {_minute(since)} to {_minute(now)} UTC. To look at other times: --since 7d")
        self._say_gap(found)
        return found

    def _new(self, choice: Choice, tail: Tail) -> list[Line]:
        if not choice.streams:
            return []
        found = tail.new(choice.source(self.deployment))
        self._say_gap(found)
        return list(map(choice.line, found.events))

    def _say_gap(self, found: Found) -> None:
        if found.gap:
            begin, end = map(_minute, found.gap)
            self.say(
                f"There is too much from {begin} to {end} UTC to look at all. Name a node or a kind, or use --grep."
            )

    def _print_on(self, lines: Sequence[Line]) -> None:
        if self.parsed.json:
            for line in lines:
                print(json.dumps(_document(line)), flush=True)
        self._print(lines)

    def _print(self, lines: Iterable[Line]) -> None:
        from rich.text import Text

        for line in lines:
            time = f"{line.time:%H:%M:%S} " if line.time else ""
            source = f"{time}{line.node} {line.kind} | "
            for text in line.message.splitlines():
                self.console.print(Text.assemble((source, "cyan"), text), soft_wrap=True)

    def list(self) -> None:
        """Show the nodes that wrote last, and those that run, with their kinds of logs."""
        group = streams.group(self.deployment)
        found, is_all = _places(self.deployment, group, self.say)
        if not is_all:
            self.say(
                f"There are more than {streams.MOST_LOOKED_AT} log streams: nodes that wrote to none of the newest are "
                "missing if they are gone; without kinds if they are not."
            )
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


def _places(deployment: Deployment, group: str, say: Say) -> tuple[list[_Place], bool]:
    """Return the nodes that run and those that wrote last, the head node first; and whether these are all."""
    listed, is_all = streams.newest(deployment, group)
    running = nodes.seen(deployment, say)
    of_head = [
        stream
        for node in running
        if node.name == nodes.HEAD_NODE
        for stream in streams.of_prefix(deployment, group, node.prefix)
    ]
    written: dict[tuple[str, str], list[streams.Stream]] = {}
    for each in dict.fromkeys([*of_head, *listed]):
        written.setdefault((each.host, each.instance_id), []).append(each)
    present = {(each.host, each.instance_id): each.name for each in running}
    return [
        _Place(
            present.get(place, place[0]),
            place[1],
            place in present,
            max((each.latest for each in written.get(place, []) if each.latest), default=None),
            sorted(each.kind for each in written.get(place, [])),
        )
        for place in {**present, **written}
    ], is_all


def _document(line: Line) -> dict[str, str | None]:
    return {**asdict(line), "time": line.time.isoformat() if line.time else None}


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"
