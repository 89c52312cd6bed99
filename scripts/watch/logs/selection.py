"""Selects log streams of a cluster by a name or a job's number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from scripts.account import log_streams
from scripts.account.log_streams import Source, Stream
from scripts.account.remote import nodes
from scripts.core.errors import OperationError, UnusableError
from scripts.core.terminal import Say

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

_ALIASES = {"health": ("slurmctld", "ultracluster: ")}
"""Names for lines of a kind that contain a text."""


def select(deployment: Deployment, what: str, text: str, say: Say) -> Source:
    """Select the streams of a node or a kind, those with the newest events: `streams.MOST_STREAMS` at most.

    Needs logs:DescribeLogGroups, logs:DescribeLogStreams and ec2:DescribeInstances, and what `nodes.over_time` needs.

    Raises:
        UnusableError: There is no such node or kind.
        OperationError: There are no such logs.
    """
    group = log_streams.newest_group(deployment)
    kind, alias_text = _ALIASES.get(what, (what, ""))
    if alias_text and text:
        raise UnusableError(f"got --grep with {what}, which is {kind} --grep '{alias_text}'; allowed: one of them")
    if nodes.is_node(what):
        instances = nodes.over_time(deployment, group, what, say)
        listed = [each for node in instances for each in log_streams.list_by_prefix(deployment, group, node.prefix)]
        return Source(deployment, group, _most(listed, say), {node.host: node.name for node in instances}, text)
    if kind in log_streams.HEAD_KINDS:
        listed = _of_head_node(deployment, group, kind, say)
    elif kind in log_streams.NODE_KINDS:
        newest, is_all = log_streams.list_newest(deployment, group)
        listed = [each for each in newest if each.kind == kind]
        if not is_all:
            say(
                f"There are more than {log_streams.MOST_LISTED} log streams. Of the newest, {len(listed)} are "
                f"{kind}; give a node's name for others."
            )
    else:
        kinds = ", ".join(sorted({*log_streams.HEAD_KINDS, *log_streams.NODE_KINDS, *_ALIASES}))
        allowed = f"{nodes.NAMES}, or one of {kinds}"
        raise UnusableError(f"got {what}; allowed: {allowed}", log_streams.list_command(deployment))
    return Source(deployment, group, _most(listed, say), _names(deployment, say), text or alias_text)


def select_job(deployment: Deployment, nodes_of_job: Mapping[str, str], text: str, say: Say) -> Source:
    """Select ``slurmd`` of the nodes of a job, whose addresses are given by Slurm's names. A call for each node.

    Needs logs:DescribeLogGroups, logs:DescribeLogStreams and ec2:DescribeInstances.
    """
    group = log_streams.newest_group(deployment)
    if not nodes_of_job:
        return Source(deployment, group, [], {}, text)
    names = {nodes.host(address): name for name, address in nodes_of_job.items()}
    prefixes = [each.prefix for each in nodes.try_list(deployment, say) if each.host in names]
    listed = [each for prefix in prefixes for each in log_streams.list_by_prefix(deployment, group, f"{prefix}slurmd")]
    return Source(deployment, group, [each for each in listed if each.kind == "slurmd"], names, text)


def select_controller_lines(deployment: Deployment, job: str, text: str, say: Say) -> Source:
    """Select the lines of ``slurmctld`` about a job, which is ``12``, or ``12_3`` of an array.

    Needs what `select` needs.

    Raises:
        OperationError: There are no logs of ``slurmctld``.
    """
    group = log_streams.newest_group(deployment)
    listed = _of_head_node(deployment, group, "slurmctld", say)
    if not listed:
        raise OperationError(f"{group} has no logs of slurmctld", log_streams.list_command(deployment))
    job_in_line = re.compile(rf"JobId={job}(?!\d)")

    def is_wanted(line: str) -> bool:
        return bool(job_in_line.search(line)) and text in line

    return Source(deployment, group, listed, _names(deployment, say), f"JobId={job}", is_wanted)


def _of_head_node(deployment: Deployment, group: str, kind: str, say: Say) -> list[Stream]:
    [head] = nodes.over_time(deployment, group, nodes.HEAD_NODE, say)
    return [each for each in log_streams.list_by_prefix(deployment, group, f"{head.prefix}{kind}") if each.kind == kind]


def _names(deployment: Deployment, say: Say) -> dict[str, str]:
    return {each.host: each.name for each in nodes.try_list(deployment, say)}


def _most(listed: Sequence[Stream], say: Say) -> Sequence[Stream]:
    if len(listed) > log_streams.MOST_STREAMS:
        say(f"These are {log_streams.MOST_STREAMS} of {len(listed)} log streams; give a node's name for others.")
    return listed[: log_streams.MOST_STREAMS]
