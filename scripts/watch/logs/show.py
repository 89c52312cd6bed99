"""Shows logs of nodes and jobs, in the order of their time, and follows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import Field

from scripts.account import log_streams
from scripts.account.log_streams import LogEvent, Source
from scripts.account.remote import nodes
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.streamed_command import print_remark
from scripts.core.aws_errors import is_denied
from scripts.core.clock import Changes, Clock, with_retries
from scripts.core.document import Document, Result
from scripts.core.errors import HeadNodeError, OperationError
from scripts.core.figures import duration
from scripts.core.report import Block, Table, columns
from scripts.core.terminal import Say
from scripts.watch.logs import jobs
from scripts.watch.logs.selection import select, select_controller_lines, select_job

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.account.deployment import Deployment

SECONDS_BETWEEN_READS = 3.0
READS_BEFORE_RENEWAL = 20
"""How often to read before looking for streams of new nodes."""
WINDOW, WINDOW_OF_JOBS = timedelta(hours=1), timedelta(days=7)
"""How far back from the newest line to read by default."""
_OVERLAP = timedelta(minutes=2)
"""How late an event may reach the log and still be shown by ``--follow``."""


class Line(Document):
    """A line to show."""

    node: str = Field(description="Short name of its node, or the job.")
    instance_id: str = Field(description="The EC2 instance; empty: a job's output, which is on the file system.")
    kind: str = Field(description="The kind of log, or `output`.")
    time: datetime | None = Field(description="When it was written; None: not known.")
    message: str = Field(description="Its text.")


class LogLines(Document):
    """What ``logs --output json`` prints."""

    log_group: str = Field(description="The log group.")
    lines: tuple[Line, ...] = Field(description="The lines, in the order of their time.")


class NodeWithLogs(Document):
    """A node that has logs, or will."""

    node: str = Field(description="Its short name.")
    instance_id: str = Field(description="Its EC2 instance.")
    runs: bool = Field(description="Whether it exists.")
    latest: datetime | None = Field(description="When its newest line was written; None: it has none.")
    kinds: tuple[str, ...] = Field(description="Its kinds of logs.")


class NodeList(Result):
    """What ``logs --list --output json`` prints."""

    log_group: str = Field(description="The log group.")
    nodes: tuple[NodeWithLogs, ...] = Field(
        description="The nodes that exist and those that wrote last, the head node first."
    )

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        now, rows = datetime.now(UTC), []
        for each in self.nodes:
            age = f"{duration(now - each.latest)} ago" if each.latest else "none"
            rows.append(
                (each.node, each.instance_id, age if each.runs else f"{age}, terminated", ", ".join(each.kinds))
            )
        yield Table("", columns("node", "instance", ">newest line", "kinds"), rows)


@dataclass
class LogView:
    """Shows what one command line asks for.

    Attributes:
        deployment: Whose logs.
        console: Where lines are printed as text.
        what: A node or a kind of logs.
        job: A job, by number or name, in place of it; empty: none.
        follow: Whether to print new lines until Ctrl-C.
        since: How far back; None: the default.
        grep: Text that lines contain.
        lines: The last so many of them.
        json: Whether to print JSON.
        of_nodes: Whether to show what the nodes of the job say, too.
    """

    deployment: Deployment
    console: Console
    what: str
    job: str
    follow: bool
    since: timedelta | None
    grep: str
    lines: int
    json: bool
    of_nodes: bool = False
    said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.clock = Clock()

    def say(self, text: str) -> None:
        """Print a note for people, once."""
        if text not in self.said:
            self.said.add(text)
            print_remark(text)

    def show(self) -> None:
        """Show lines of a node, a kind or a job."""
        if self.job:
            self._show_job()
            return
        source = self._select()
        if not source.streams and not self.follow:
            hint = log_streams.list_command(self.deployment)
            raise OperationError(f"{source.log_group} has no logs of {self.what}", hint)
        self._show(self._select)

    def _select(self) -> Source:
        self.deployment.account.forget()
        return select(self.deployment, self.what, self.grep, self.say)

    def _show_job(self) -> None:
        answer = self._find_job()
        if answer is None:
            self.say(f"This is what slurmctld logged of job {self.job}.")
            of_controller = select_controller_lines(self.deployment, self.job, self.grep, self.say)
            self._show(lambda: of_controller)
            return
        head_node, job = answer
        if job.of_array:
            tasks = ", ".join(f"{state} {job.number}_[{each}]" for state, each in job.of_array.items())
            raise OperationError(f"{job.number} is an array of jobs: {tasks}", f"one of them, such as {_first(job)}")
        self.job = job.number
        self.say(
            f"Job {job.number} is {job.said}; {f'its output: {job.output}' if job.output else 'it has no output file'}"
        )
        for each in job.explanations({"deployment": self.deployment.name, "file": self.deployment.file}):
            self.say(each.why)
        source = select_job(self.deployment, job.nodes if self._shows_nodes(job) else {}, self.grep, self.say)
        if not job.output or (job.waits and not job.restarts and not self.follow):
            self._show(lambda: source)
            return
        output = jobs.JobOutput(self.deployment, head_node, job, lines=self.lines, follow=self.follow)
        try:
            self._show(lambda: source, output)
        except HeadNodeError:
            raise
        except BaseException:
            output.command.cancel()
            raise

    def _shows_nodes(self, job: jobs.KnownJob) -> bool:
        if self.of_nodes and not job.nodes and job.has_ended:
            self.say(
                f"Its nodes, {job.node_list or 'none'}, may be others by now: "
                f"./ultracluster logs {self.deployment.name} NODE --since 7d"
            )
        return self.of_nodes or not job.output

    def _find_job(self) -> tuple[HeadNode, jobs.KnownJob] | None:
        """Ask Slurm for the job; None: it does not know its number, or there is no answer, which is said.

        Raises:
            OperationError: It is a name, which only Slurm knows.
        """
        from botocore.exceptions import ClientError

        try:
            head_node = HeadNode(self.deployment, self.clock)
            job = jobs.find(head_node, self.job)
        except (ClientError, HeadNodeError) as error:
            if self.job[0].isalpha() or not (isinstance(error, HeadNodeError) or is_denied(error)):
                raise
            self.say(f"Slurm does not answer: {error}")
            return None
        if job is not None:
            return head_node, job
        if self.job[0].isalpha():
            raise OperationError(
                f"Slurm knows no job called {self.job}, or none any more", "its number shows what was logged"
            )
        self.say(f"Slurm knows no job {self.job}, or no longer knows it.")
        return None

    def _show(self, select: Callable[[], Source], output: jobs.JobOutput | None = None) -> None:
        """Show the last lines, and with --follow new ones; ``select`` selects streams of new nodes, too."""
        source = select()
        events = self._last(source)
        lines = [_line(source, each) for each in events][-self.lines :]
        if self.follow:
            self._print_on(lines)
            self._follow(select, source, events, output)
            return
        if output:
            output.command.follow(output.take)
            lines += self._output_lines(output.rest())
        if self.json:
            print(LogLines(log_group=source.log_group, lines=tuple(lines)).to_json())
        self._print(lines)

    def _follow(
        self, select: Callable[[], Source], source: Source, known: Sequence[LogEvent], output: jobs.JobOutput | None
    ) -> None:
        """Show new lines until Ctrl-C: each time the events of the last minutes that are not known yet."""
        ids = {each.id for each in known}
        last_read, reads = self.clock.now(), 0

        def read() -> bool:
            nonlocal source, ids, last_read, reads
            reads += 1
            if reads % READS_BEFORE_RENEWAL == 0:
                source = select()
            now = self.clock.now()
            events = self._read(lambda: source.read(last_read - _OVERLAP, now))
            lines = [_line(source, each) for each in events if each.id not in ids]
            lines += self._output_lines(output.new() if output else [])
            ids, last_read = {each.id for each in events}, now
            self._print_on(lines)
            return True

        attempt = with_retries(read, self.clock, Changes(self.say))
        while True:
            attempt()
            self.clock.sleep(SECONDS_BETWEEN_READS)

    def _output_lines(self, texts: Sequence[str]) -> list[Line]:
        name = f"job {self.job}"
        return [
            Line(node=name, instance_id="", kind="output", time=None, message=each)
            for each in texts
            if self.grep in each
        ]

    def _last(self, source: Source) -> list[LogEvent]:
        """Return the last events, and say so if there are none."""
        now = self.clock.now()
        newest = max((each.latest for each in source.streams if each.latest), default=now)
        since = now - self.since if self.since else newest - (WINDOW_OF_JOBS if self.job else WINDOW)
        events = self._read(lambda: source.last(self.lines, since, now))
        if source.streams and not events:
            self.say(
                f"No line from {since:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M} UTC. For an earlier time: --since 7d"
            )
        return events

    def _read(self, read: Callable[[], tuple[list[LogEvent], bool]]) -> list[LogEvent]:
        """Return events, and say so if some are missing."""
        events, is_whole = read()
        if not is_whole:
            self.say("There are too many lines to read all. Name a node or a kind, or use --grep.")
        return events

    def _print_on(self, lines: Sequence[Line]) -> None:
        if self.json:
            for line in lines:
                print(line.to_line(), flush=True)
        self._print(lines)

    def _print(self, lines: Sequence[Line]) -> None:
        from rich.text import Text

        for line in lines:
            time = f"{line.time:%H:%M:%S} " if line.time else ""
            source = f"{time}{line.node} {line.kind} | "
            for text in line.message.splitlines():
                self.console.print(Text.assemble((source, "cyan"), text), soft_wrap=True)


def _first(job: jobs.KnownJob) -> str:
    """Return a task of an array: of those that run, or that failed, if there are some."""
    order = ["RUNNING", "FAILED", *job.of_array]
    tasks = next(job.of_array[state] for state in order if state in job.of_array)
    return f"{job.number}_{re.split('[-,]', tasks)[0]}"


def _line(source: Source, event: LogEvent) -> Line:
    host, instance_id, kind = event.stream.split(".", 2)
    name = source.names.get(host, host)
    return Line(node=name, instance_id=instance_id, kind=kind, time=event.time, message=event.message)


def list_nodes(deployment: Deployment) -> NodeList:
    """Return the nodes that wrote last, and those that run, with their kinds of logs."""
    group = log_streams.newest_group(deployment)
    listed, is_all = _nodes_with_logs(deployment, group, print_remark)
    if not is_all:
        print_remark(
            f"There are more than {log_streams.MOST_LISTED} log streams: nodes that wrote to none of the newest are "
            "missing if they are terminated, and have no kinds otherwise."
        )
    return NodeList(log_group=group, nodes=tuple(listed))


def _nodes_with_logs(deployment: Deployment, group: str, say: Say) -> tuple[list[NodeWithLogs], bool]:
    """Return the nodes that exist and those that wrote last, the head node first; and whether these are all."""
    listed, is_all = log_streams.list_newest(deployment, group)
    running = nodes.try_list(deployment, say)
    of_head = [
        stream
        for node in running
        if node.name == nodes.HEAD_NODE
        for stream in log_streams.list_by_prefix(deployment, group, node.prefix)
    ]
    written: dict[tuple[str, str], list[log_streams.Stream]] = {}
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
