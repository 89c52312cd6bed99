"""Shows logs of nodes and jobs, in the order of their time, and follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import Field

from scripts import screen
from scripts.aws_errors import is_denied
from scripts.clock import Changes, Clock, with_retries
from scripts.document import Document
from scripts.errors import ExitCode, OperationError
from scripts.logs import jobs, streams
from scripts.logs.selection import Line, Selection, select, select_controller_lines, select_job
from scripts.logs.streams import LogEvents, Tail
from scripts.remote import nodes
from scripts.remote.head_node import HeadNode, HeadNodeError
from scripts.remote.streamed_command import print_remark
from scripts.terminal import Say

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

SECONDS_BETWEEN_READS = 3.0
READS_BEFORE_RENEWAL = 20
"""How often to read before looking for streams of new nodes."""
WINDOW, WINDOW_OF_JOBS = timedelta(hours=1), timedelta(days=7)
"""How far back from the newest line to read by default."""


class LogLines(Document):
    """What ``logs --json`` prints."""

    log_group: str = Field(description="The log group.")
    lines: tuple[Line, ...] = Field(description="The lines, in the order of their time.")


class NodeWithLogs(Document):
    """A node that has logs, or will."""

    node: str = Field(description="Its short name.")
    instance_id: str = Field(description="Its EC2 instance.")
    runs: bool = Field(description="Whether it exists.")
    latest: datetime | None = Field(description="When its newest line was written; None: it has none.")
    kinds: tuple[str, ...] = Field(description="Its kinds of logs.")


class NodeList(Document):
    """What ``logs --list --json`` prints."""

    log_group: str = Field(description="The log group.")
    nodes: tuple[NodeWithLogs, ...] = Field(
        description="The nodes that exist and those that wrote last, the head node first."
    )


@dataclass
class Wanted:
    """What to show.

    Attributes:
        what: A node or a kind of logs.
        job: A job, by number or name, in place of it; empty: none.
        follow: Whether to print new lines until Ctrl-C.
        since: How far back; None: the default.
        grep: Text that lines contain.
        lines: The last so many of them.
        list: Whether to list nodes and kinds instead.
        json: Whether to print JSON.
    """

    what: str
    job: str
    follow: bool
    since: timedelta | None
    grep: str
    lines: int
    list: bool
    json: bool


def program(deployment: Deployment, wanted: Wanted, console: Console, clock: Clock | None = None) -> int:
    """Show what the command line asks for."""
    view = _View(deployment, wanted, console, clock or Clock())
    if wanted.list:
        view.list()
    elif wanted.job:
        view.show_job()
    else:
        view.show_named()
    return ExitCode.DONE


@dataclass(frozen=True)
class _View:
    """Shows what one command line asks for."""

    deployment: Deployment
    wanted: Wanted
    console: Console
    clock: Clock
    said: set[str] = field(default_factory=set)

    def say(self, text: str) -> None:
        """Print a note for people, once."""
        if text not in self.said:
            self.said.add(text)
            print_remark(text)

    def show_named(self) -> None:
        selection = self._select()
        if not selection.streams and not self.wanted.follow:
            raise OperationError(f"{selection.log_group} has no logs of {self.wanted.what}")
        self._show(selection, self._select)

    def _select(self) -> Selection:
        self.deployment.account.forget()
        return select(self.deployment, self.wanted.what, self.wanted.grep, self.say)

    def show_job(self) -> None:
        self._replace_name_by_number()
        name, text = self.wanted.job, self.wanted.grep
        answer = self._find_job()
        if answer is None:
            self.say(f"This is what slurmctld logged of job {name}.")
            of_controller = select_controller_lines(self.deployment, name, text, self.say)
            self._show(of_controller, lambda: of_controller)
            return
        head_node, job = answer
        selection = select_job(self.deployment, job.nodes, text, self.say)
        output = None
        if job.output:
            self.say(f"Job {name} is {job.state}; its output: {job.output}")
            output = jobs.JobOutput(self.deployment, head_node, job, self.clock, self.say)
        try:
            self._show(selection, lambda: selection, output)
        except HeadNodeError:
            raise
        except BaseException:
            if output:
                output.close()
            raise

    def _replace_name_by_number(self) -> None:
        """Replace the name of a job by the number of the newest job of that name.

        Raises:
            OperationError: Slurm knows no such job, or does not answer.
        """
        name = self.wanted.job
        if name[0].isdigit():
            return
        number = jobs.newest_of_name(HeadNode(self.deployment, self.clock), name)
        if not number:
            raise OperationError(
                f"Slurm knows no job called {name}, or none any more; its number shows what was logged"
            )
        self.say(f"The newest job called {name} is {number}.")
        self.wanted.job = number

    def _find_job(self) -> tuple[HeadNode, jobs.KnownJob] | None:
        """Ask Slurm for the job; None: it knows none, or there is no answer, which is said."""
        from botocore.exceptions import ClientError

        try:
            head_node = HeadNode(self.deployment, self.clock)
            job = jobs.find(head_node, self.wanted.job)
        except HeadNodeError as error:
            self.say(str(error))
            return None
        except ClientError as error:
            if not is_denied(error):
                raise
            self.say(f"Slurm does not answer: {error}")
            return None
        if job is None:
            self.say(f"Slurm knows no job {self.wanted.job}, or no longer knows it.")
            return None
        return head_node, job

    def _show(
        self, selection: Selection, renewed: Callable[[], Selection], output: jobs.JobOutput | None = None
    ) -> None:
        """Show the last lines, and with --follow new ones; ``renewed`` selects streams of new nodes, too."""
        last = self._last(selection)
        lines = list(map(selection.line, last.events))[-self.wanted.lines :]
        if not self.wanted.follow:
            lines += self._output_lines(output.all(self.wanted.lines)) if output else []
            if self.wanted.json:
                print(LogLines(log_group=selection.log_group, lines=tuple(lines)).to_json())
            self._print(lines)
            return
        tail, reads = Tail(self.clock, last.events), 0

        def read() -> bool:
            nonlocal selection, reads
            if reads and reads % READS_BEFORE_RENEWAL == 0:
                selection = renewed()
            if reads:
                lines.extend(self._new(selection, tail))
            if output:
                lines.extend(self._output_lines(output.new(self.wanted.lines)))
            reads += 1
            return True

        follow = with_retries(read, self.clock, Changes(self.say))
        while True:
            if follow():
                self._print_on(lines)
                lines.clear()
            self.clock.sleep(SECONDS_BETWEEN_READS)

    def _output_lines(self, texts: Sequence[str]) -> list[Line]:
        name = f"job {self.wanted.job}"
        return [
            Line(node=name, instance_id="", kind="output", time=None, message=each)
            for each in texts
            if self.wanted.grep in each
        ]

    def _last(self, selection: Selection) -> LogEvents:
        """Return the last events, and say so if there are none, or some are missing."""
        if not selection.streams:
            return LogEvents([], 0, None)
        now = self.clock.now()
        newest = max((each.latest for each in selection.streams if each.latest), default=now)
        window = WINDOW_OF_JOBS if self.wanted.job else WINDOW
        since = now - self.wanted.since if self.wanted.since else newest - window
        events = selection.source(self.deployment).last(self.wanted.lines, since, now)
        if not events.events:
            self.say(f"No line from {_minute(since)} to {_minute(now)} UTC. For an earlier time: --since 7d")
        self._say_gap(events)
        return events

    def _new(self, selection: Selection, tail: Tail) -> list[Line]:
        if not selection.streams:
            return []
        events = tail.new(selection.source(self.deployment))
        self._say_gap(events)
        return list(map(selection.line, events.events))

    def _say_gap(self, events: LogEvents) -> None:
        if events.gap:
            start, end = map(_minute, events.gap)
            self.say(
                f"There are too many lines from {start} to {end} UTC to read all. Name a node or a kind, or use --grep."
            )

    def _print_on(self, lines: Sequence[Line]) -> None:
        if self.wanted.json:
            for line in lines:
                print(line.model_dump_json(), flush=True)
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
        group = streams.newest_group(self.deployment)
        listed, is_all = _nodes_with_logs(self.deployment, group, self.say)
        if not is_all:
            self.say(
                f"There are more than {streams.MOST_LISTED} log streams: nodes that wrote to none of the newest are "
                "missing if they are terminated, and have no kinds otherwise."
            )
        if self.wanted.json:
            print(NodeList(log_group=group, nodes=tuple(listed)).to_json())
        table = screen.table("node", "instance", ">newest line", "kinds")
        for each in listed:
            age = f"{screen.duration(self.clock.now() - each.latest)} ago" if each.latest else "none"
            shown = age if each.runs else f"{age}, terminated"
            table.add_row(each.node, each.instance_id, shown, ", ".join(each.kinds))
        self.console.print(table)


def _nodes_with_logs(deployment: Deployment, group: str, say: Say) -> tuple[list[NodeWithLogs], bool]:
    """Return the nodes that exist and those that wrote last, the head node first; and whether these are all."""
    listed, is_all = streams.list_newest(deployment, group)
    running = nodes.try_list(deployment, say)
    of_head = [
        stream
        for node in running
        if node.name == nodes.HEAD_NODE
        for stream in streams.list_by_prefix(deployment, group, node.prefix)
    ]
    written: dict[tuple[str, str], list[streams.Stream]] = {}
    for each in dict.fromkeys([*of_head, *listed]):
        written.setdefault((each.host, each.instance_id), []).append(each)
    present = {(each.host, each.instance_id): each.name for each in running}
    return [
        NodeWithLogs(
            node=present.get(key, key[0]),
            instance_id=key[1],
            runs=key in present,
            latest=max((each.latest for each in written.get(key, []) if each.latest), default=None),
            kinds=tuple(sorted(each.kind for each in written.get(key, []))),
        )
        for key in {**present, **written}
    ], is_all


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"
