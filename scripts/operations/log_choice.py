"""Which log streams of a cluster people mean by a name or a job's number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from scripts.operations import nodes, streams
from scripts.operations.command import UnusableError
from scripts.operations.streams import Event, Stream, Tail

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


@dataclass
class Choice:
    """What to show.

    Attributes:
        log_group: Where the streams are.
        streams: Which.
        names: Short names of nodes, by host; the host itself where it has none.
        text: Only lines that contain it.
    """

    log_group: str
    streams: Sequence[Stream]
    names: dict[str, str] = field(default_factory=dict)
    text: str = ""

    def lines(self, tail: Tail) -> list[Line]:
        """Return what is new."""
        return [self._line(event) for event in tail.new([each.name for each in self.streams])]

    def _line(self, event: Event) -> Line:
        host, instance_id, kind = event.stream.split(".", 2)
        return Line(self.names.get(host, host), instance_id, kind, event.time, event.message)


def choose(deployment: Deployment, what: str, text: str) -> Choice:
    """Return the streams of a node, or of a kind, that were written to last: `streams.MOST_STREAMS` at most.

    Up to a dozen calls. Needs logs:DescribeLogGroups, logs:DescribeLogStreams and ec2:DescribeInstances.

    Raises:
        UnusableError: There is no such node or kind.
        OperationError: There are no such logs.
    """
    group = streams.group(deployment)
    kind, alias_text = _ALIASES.get(what, (what, ""))
    if alias_text and text:
        raise UnusableError(f"got --grep with {what}, which is {kind} --grep '{alias_text}'; allowed: one of them")
    if nodes.is_node(what):
        found = nodes.over_time(deployment, group, what)
        listed = [each for node in found for each in streams.of_prefix(deployment, group, node.prefix)]
        return Choice(group, listed[: streams.MOST_STREAMS], {node.host: node.name for node in found}, text)
    if kind in streams.HEAD_KINDS:
        [head] = nodes.over_time(deployment, group, nodes.HEAD_NODE)
        listed = streams.of_prefix(deployment, group, f"{head.prefix}{kind}")
    elif kind in streams.NODE_KINDS:
        listed = streams.newest(deployment, group)
    else:
        kinds = ", ".join(sorted({*streams.HEAD_KINDS, *streams.NODE_KINDS, *_ALIASES}))
        raise UnusableError(f"got {what}; allowed: {nodes.NAMES}, or one of {kinds}")
    listed = [each for each in listed if each.kind == kind][: streams.MOST_STREAMS]
    names = {each.host: each.name for each in nodes.present(deployment)}
    return Choice(group, listed, names, text or alias_text)


def choose_job(deployment: Deployment, number: int, nodes_of_job: Mapping[str, str], text: str) -> Choice:
    """Return the streams of the nodes that a job has: ``slurmd`` of each. A call for each node.

    Needs logs:DescribeLogGroups, logs:DescribeLogStreams and ec2:DescribeInstances.

    Args:
        deployment: Whose cluster it is.
        number: The job's number.
        nodes_of_job: Addresses of nodes, by Slurm's names. None: what ``slurmctld`` logged of the job.
        text: Only lines that contain it.
    """
    if not nodes_of_job:
        return choose(deployment, "slurmctld", text or f"JobId={number} ")
    group = streams.group(deployment)
    names = {nodes.host(address): name for name, address in nodes_of_job.items()}
    prefixes = [each.prefix for each in nodes.present(deployment) if each.host in names]
    listed = [each for prefix in prefixes for each in streams.of_prefix(deployment, group, f"{prefix}slurmd")]
    return Choice(group, [each for each in listed if each.kind == "slurmd"], names, text)
