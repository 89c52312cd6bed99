"""Reads what AWS recorded of a deployment.

What a missing permission hides is left out and told in `Reader.denied`; other errors are raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from typing import Any, TypeVar, cast

from scripts.account import log_streams, stacks
from scripts.account.causes import Evidence
from scripts.account.deployment import Deployment
from scripts.account.remote import nodes
from scripts.account.stacks import StackEvent
from scripts.core.aws_errors import is_denied, is_not_found
from scripts.core.errors import OperationError

LOG_PAGES = 10
"""Calls of FilterLogEvents for a group or a node and a time at most, of up to 1 MB or 10,000 events each.

https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
"""
NEWEST_SLICE = timedelta(minutes=5)
"""Logs are read from the end back: so much first, then twice as much each time, as each answer goes oldest first."""
LOG_TERMS = (
    "ERROR", "Error", "error", "WARNING", "FATAL", "FAILED", "failed", "Failed", "failure", "Failure", "timed out",
    "reason set to", "No space", "unreachable", "not baked", "AMI was created", "PROTECTED", "hung", "not resumed",
    "Timed-out", "attempts left", "static fleet capacity", "HeadNode setup complete",
    "invalid account", "association/QOS limit",
    "ultracluster: budget",
    "INVAL", "oom_kill", "not found on",
    "fatal", "unexpectedly rebooted", "missing from batch", "SLURMDBD NOW", "nfs: server", "evicted", "was lost;",
    "Stale", "read-only", "Aborting journal", "blocked for more", "oom-kill", "Killed process", "NEURON_HW_ERR",
    "entered RUNNING", "restored to", "Running as primary", "Registering slurmctld", "slurmdbd version",
)  # fmt: skip
"""A line is read if one of these is in it. All lines of causes.yaml, and those that end them, have one."""
_BOOT = frozenset({"bootstrap_error_msg", "cfn-init", "chef-client", "cloud-init", "cloud-init-output"})
_SYSTEM = frozenset({"syslog", "system-messages"})
_SLURM = frozenset({"slurmctld", "slurmd", "slurmdbd"})
KINDS = {
    "boot": _BOOT,
    "system": _SYSTEM,
    "daemon": (log_streams.HEAD_KINDS | log_streams.NODE_KINDS) - _BOOT - _SYSTEM - _SLURM,
    "slurm": _SLURM,
}
"""The ends of the names of log streams, IP.INSTANCE.END, by what kind of log they are.

https://docs.aws.amazon.com/parallelcluster/latest/ug/cloudwatch-logs-v3.html
"""
PROVIDER_GROUP = re.compile(r"/aws/lambda/pcluster-cfn-[\w-]+")
_T = TypeVar("_T")


@dataclass
class Reader:
    """Reads what AWS recorded.

    Attributes:
        deployment: Of this deployment.
        read: Stacks and log groups that were read.
        denied: What could not be read, and the action that is not allowed.
        cut_off: Of what only a part was read, as there is too much of it.
        spans: Log groups that were read, from when to when.
    """

    deployment: Deployment
    read: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)
    spans: list[tuple[str, datetime, datetime]] = field(default_factory=list)

    @cached_property
    def cluster_name(self) -> str:
        """ParallelCluster's name of the cluster."""
        return self.deployment.settings.cluster_spec.name

    def stack(self, name: str) -> dict[str, Any] | None:
        """Return a stack as CloudFormation describes it; None: it does not exist, or that is not allowed to know."""
        return self.try_fetch(
            f"stack {name}", "cloudformation:DescribeStacks", lambda: self.deployment.stack(name), None
        )

    def events(self, stack_id: str, since: datetime | None = None) -> list[StackEvent]:
        """Return the events of a stack, newest first, to the start of its newest operation or to a time.

        Needs cloudformation:DescribeStackEvents.
        """
        client = self.deployment.account.client("cloudformation")
        return self.try_fetch(
            f"events of {stack_id.split('/')[1]}",
            "cloudformation:DescribeStackEvents",
            lambda: list(stacks.events(client, stack_id, since)),
            [],
        )

    @cached_property
    def cluster_group(self) -> str:
        """The newest log group of the cluster; empty: there is none. Needs logs:DescribeLogGroups."""
        try:
            newest = partial(log_streams.newest_group, self.deployment)
            return self.try_fetch("log groups", "logs:DescribeLogGroups", newest, "")
        except OperationError:
            return ""

    def instances(self) -> list[dict[str, Any]] | None:
        """Return the cluster's instances, as EC2 describes them; None: not allowed. 1,000 in each call.

        Needs ec2:DescribeInstances.
        """
        return self.try_fetch("instances", "ec2:DescribeInstances", self.deployment.nodes, None)

    def cluster_lines(self, since: datetime, until: datetime) -> list[Evidence]:
        """Return what `lines` does of the cluster's log group, with the head node's however much other nodes log.

        At most two times `LOG_PAGES` calls, and one for the log groups.
        """
        group = self.cluster_group
        if not group:
            return []
        prefixes = (*self._head_node_prefixes(), "")
        lines = [line for prefix in prefixes for line in self.lines(group, since, until, prefix)]
        return sorted(
            {(line.source, line.time, line.text): line for line in lines}.values(), key=lambda line: line.time
        )

    def head_node_logs(self, since: datetime, until: datetime) -> bool | None:
        """Return whether the head node logged anything; None: it has no logs, or that is not allowed to know.

        At most `LOG_PAGES` calls, mostly one, and one for the log groups. Needs logs:FilterLogEvents.
        """
        prefixes = self._head_node_prefixes()
        if not prefixes or not self.cluster_group:
            return None
        pages = self._pages(self.cluster_group, prefixes[0], since, until, PaginationConfig={"PageSize": 1})
        return self.try_fetch(
            f"log group {self.cluster_group}",
            "logs:FilterLogEvents",
            lambda: any(page["events"] for page in islice(pages, LOG_PAGES)),
            None,
        )

    def _head_node_prefixes(self) -> list[str]:
        """Return how the names of the head node's log streams start; empty: it is not known."""
        heads = nodes.list_present(self.deployment)[:1] if self.instances() else []
        return [each.prefix for each in heads if each.name == nodes.HEAD_NODE]

    def lines(self, group: str, since: datetime, until: datetime, prefix: str = "") -> list[Evidence]:
        """Return the lines of a log group that tell of trouble, oldest first. Needs logs:FilterLogEvents.

        At most `LOG_PAGES` calls, the newest lines first; lines without any of `LOG_TERMS`, and streams of no known
        kind, or whose names do not start with the prefix, are left out.
        """
        events = self.try_fetch(
            f"log group {group}",
            "logs:FilterLogEvents",
            lambda: list(self._newest_events(group, prefix, since, until)),
            None,
        )
        if events is None:
            return []
        self.read.append(group)
        self.spans.append((group, since, until))
        return sorted((line for each in events if (line := _line(group, each))), key=lambda line: line.time)

    def _newest_events(self, group: str, prefix: str, since: datetime, until: datetime) -> Iterator[dict[str, Any]]:
        calls, length = 0, NEWEST_SLICE
        terms = " ".join(f'?"{each}"' for each in LOG_TERMS)
        while until > since:
            start = max(until - length, since)
            pages = self._pages(group, prefix, start, until, filterPattern=terms)
            is_whole = False
            for page in islice(pages, LOG_PAGES - calls):
                calls += 1
                yield from page["events"]
                is_whole = "nextToken" not in page
            if not is_whole:
                what = f"log group {group}" + (f", {prefix}*" if prefix else "")
                self.cut_off.append(f"{what}: everything only since {until:%Y-%m-%d %H:%M} UTC")
                return
            until, length = start, 2 * length

    def _pages(
        self, group: str, prefix: str, since: datetime, until: datetime, **options: Any
    ) -> Iterable[dict[str, Any]]:
        paginator = self.deployment.account.client("logs").get_paginator("filter_log_events")
        if prefix:
            options["logStreamNamePrefix"] = prefix
        times = {"startTime": int(since.timestamp() * 1000), "endTime": int(until.timestamp() * 1000)}
        return cast("Iterable[dict[str, Any]]", paginator.paginate(logGroupName=group, **times, **options))

    def try_fetch(self, what: str, action: str, ask: Callable[[], _T], otherwise: _T) -> _T:
        """Return an answer, or another value where a permission is missing or nothing exists."""
        from botocore.exceptions import ClientError

        try:
            return ask()
        except ClientError as error:
            if is_denied(error):
                self.denied.append(f"{what}: {action} is not allowed")
            elif not is_not_found(error):
                raise
            return otherwise


def _line(group: str, event: dict[str, Any]) -> Evidence | None:
    """Return a line of a log; None: it is of no known kind, or tells of no trouble."""
    stream, text = event["logStreamName"], event["message"].strip()
    end = stream.rpartition(".")[2]
    kinds = [kind for kind, ends in KINDS.items() if end in ends]
    kind = "provider" if PROVIDER_GROUP.fullmatch(group) else kinds[0] if kinds else ""
    if not kind or not any(term in text for term in LOG_TERMS):
        return None
    time = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
    return Evidence(kind=kind, source=f"{group} {stream}", time=time, text=text)
