"""Which log streams of a cluster people mean by a name or a job's number."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from scripts.command import OperationError, Say, UnusableError
from scripts.logs import streams
from scripts.logs.streams import Event, Source, Stream
from scripts.remote import nodes

if TYPE_CHECKING:
    from scripts.deployment import Deployment

_ALIASES = {"health": ("slurmctld", "ultracluster: ")}
"""What people call lines of a kind that contain a text."""


@dataclass(frozen=True)
class Line:
    """Something to show.

    Attributes:
        node: Where it is from, in short: a node or a job.
        instance_id: The EC2 instance; empty: a job's output, which is on the file system.
        kind: The kind of log, or ``output``.
        time: When it was written; ``None``: nobody knows.
        message: What it says.
    """

    node: str
    instance_id: str
    kind: str
    time: datetime | None
    message: str


@dataclass(frozen=True)
class Choice:
    """What to show.

    Attributes:
        log_group: Where the streams are.
        streams: Which, `streams.MOST_STREAMS` at most.
        names: Short names of nodes, by host; the host itself where it has none.
        text: Only lines that contain it; CloudWatch looks for it.
        wanted: Tells of a line whether it is wanted, further.
    """

    log_group: str
    streams: Sequence[Stream]
    names: Mapping[str, str]
    text: str = ""
    wanted: Callable[[str], bool] = lambda _: True

    def source(self, deployment: Deployment) -> Source:
        """Return the streams to read."""
        return Source(deployment, self.log_group, [each.name for each in self.streams], self.text, self.wanted)

    def line(self, event: Event) -> Line:
        """Return an event as it is shown."""
        host, instance_id, kind = event.stream.split(".", 2)
        return Line(self.names.get(host, host), instance_id, kind, event.time, event.message)


def choose(deployment: Deployment, what: str, text: str, say: Say) -> Choice:
    """Return the streams of a node, or of a kind, that were written to last: `streams.MOST_STREAMS` at most.

    Needs logs:DescribeLogGroups, logs:DescribeLogStreams and ec2:DescribeInstances, and what `nodes.over_time` needs.

    Raises:
        UnusableError: There is no such node or kind.
        OperationError: There are no such logs.
    """
    group = streams.group(deployment)
    kind, alias_text = _ALIASES.get(what, (what, ""))
    if alias_text and text:
        raise UnusableError(f"got --grep with {what}, which is {kind} --grep '{alias_text}'; allowed: one of them")
    if nodes.is_node(what):
        found = nodes.over_time(deployment, group, what, say)
        listed = [each for node in found for each in streams.of_prefix(deployment, group, node.prefix)]
        return Choice(group, _most(listed, say), {node.host: node.name for node in found}, text)
    if kind in streams.HEAD_KINDS:
        listed = _of_head_node(deployment, group, kind, say)
    elif kind in streams.NODE_KINDS:
        looked_at, is_all = streams.newest(deployment, group)
        listed = [each for each in looked_at if each.kind == kind]
        if not is_all:
            say(
                f"There are more than {streams.MOST_LOOKED_AT} log streams. Of those written to last, {len(listed)} "
                f"are {kind}; give a node's name for others."
            )
    else:
        kinds = ", ".join(sorted({*streams.HEAD_KINDS, *streams.NODE_KINDS, *_ALIASES}))
        raise UnusableError(f"got {what}; allowed: {nodes.NAMES}, or one of {kinds}")
    names = {each.host: each.name for each in nodes.seen(deployment, say)}
    return Choice(group, _most(listed, say), names, text or alias_text)


def choose_job(deployment: Deployment, nodes_of_job: Mapping[str, str], text: str, say: Say) -> Choice:
    """Return the streams of the nodes that a job has: ``slurmd`` of each. A call for each node.

    Needs logs:DescribeLogGroups, logs:DescribeLogStreams and ec2:DescribeInstances.

    Args:
        deployment: Whose cluster it is.
        nodes_of_job: Addresses of nodes, by Slurm's names.
        text: Only lines that contain it.
        say: Takes what may not be seen.
    """
    group = streams.group(deployment)
    names = {nodes.host(address): name for name, address in nodes_of_job.items()}
    prefixes = [each.prefix for each in nodes.seen(deployment, say) if each.host in names]
    listed = [each for prefix in prefixes for each in streams.of_prefix(deployment, group, f"{prefix}slurmd")]
    return Choice(group, [each for each in listed if each.kind == "slurmd"], names, text)


def choose_job_of_controller(deployment: Deployment, job: str, text: str, say: Say) -> Choice:
    """Return the lines of ``slurmctld`` that tell of a job, which is ``12``, or ``12_3`` of an array.

    Needs what `choose` needs.

    Raises:
        OperationError: There are no logs of ``slurmctld``.
    """
    group = streams.group(deployment)
    listed = _of_head_node(deployment, group, "slurmctld", say)
    if not listed:
        raise OperationError(f"{group} has no logs of slurmctld")
    names = {each.host: each.name for each in nodes.seen(deployment, say)}
    job_in_line = re.compile(rf"JobId={job}(?!\d)")
    return Choice(group, listed, names, f"JobId={job}", lambda line: bool(job_in_line.search(line)) and text in line)


def _of_head_node(deployment: Deployment, group: str, kind: str, say: Say) -> list[Stream]:
    [head] = nodes.over_time(deployment, group, nodes.HEAD_NODE, say)
    return [each for each in streams.of_prefix(deployment, group, f"{head.prefix}{kind}") if each.kind == kind]


def _most(listed: Sequence[Stream], say: Say) -> Sequence[Stream]:
    if len(listed) > streams.MOST_STREAMS:
        say(f"These are {streams.MOST_STREAMS} of {len(listed)} log streams; give a node's name for others.")
    return listed[: streams.MOST_STREAMS]
