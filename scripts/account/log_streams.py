"""The logs of a cluster's nodes in CloudWatch Logs, where ParallelCluster has them sent.

A stream is named ``ip-10-0-1-2.i-0123456789abcdef0.slurmd``: host, instance and kind, which stands for one of its files
(https://github.com/aws/aws-parallelcluster-cookbook, aws-parallelcluster-environment/files/cloudwatch). It outlives the
node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from scripts.account.deployment import Deployment
from scripts.core.errors import OperationError

HEAD_KINDS = frozenset(
    {
        "clustermgtd",
        "clustermgtd_events",
        "clusterstatusmgtd",
        "compute_console_output",
        "slurm_fleet_status_manager",
        "slurm_resume",
        "slurm_resume_events",
        "slurm_suspend",
        "slurmctld",
        "slurmdbd",
    }
)
"""Kinds of logs that only head nodes have.

https://docs.aws.amazon.com/parallelcluster/latest/ug/cloudwatch-logs-v3.html
"""
NODE_KINDS = frozenset(
    {
        "bootstrap_error_msg",
        "cfn-init",
        "chef-client",
        "cloud-init",
        "cloud-init-output",
        "computemgtd",
        "slurm_health_check",
        "slurm_health_check_events",
        "slurmd",
        "supervisord",
        "syslog",
        "system-messages",
    }
)
"""Kinds of logs that other nodes have. ``system-messages`` is ``syslog`` on Amazon Linux."""
MOST_STREAMS = 100
"""FilterLogEvents takes no more in a call.

https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
"""
MOST_LISTED = 500
"""Streams that `list_newest` returns at most: 10 calls."""
MOST_CALLS = 20
"""Calls of FilterLogEvents for a period, of up to 1 MB each."""
EVENTS_PER_CALL = 10_000
_FIRST_PERIOD = timedelta(minutes=5)
_GROWTH = 4


@dataclass(frozen=True)
class Stream:
    """A log stream of a node.

    Attributes:
        name: Its name.
        host: Such as ``ip-10-0-1-2``.
        instance_id: The EC2 instance.
        kind: Such as ``slurmd``.
        latest: When its newest event was, up to an hour behind; None: it has none.
    """

    name: str
    host: str
    instance_id: str
    kind: str
    latest: datetime | None


@dataclass(frozen=True)
class LogEvent:
    """An event of the log stream of a name; its id is unique in the log group."""

    id: str
    time: datetime
    stream: str
    message: str


def newest_group(deployment: Deployment) -> str:
    """Return the newest log group of the cluster, which may be deleted. Needs logs:DescribeLogGroups.

    Its name ends with the time of creation, to the minute.

    Raises:
        OperationError: There is none.
    """
    prefix = f"/aws/parallelcluster/{deployment.settings.cluster_spec.name}-"
    listed = deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix)
    names = [each["logGroupName"] for each in listed]
    groups = sorted(name for name in names if re.fullmatch(r"\d{12}", name.removeprefix(prefix)))
    if not groups:
        raise OperationError(
            f"There is no log group {prefix}YYYYMMDDHHMM in {deployment.settings.region}",
            f"./ultracluster status {deployment.name} shows whether there is a cluster",
        )
    return str(groups[-1])


def list_command(deployment: Deployment) -> str:
    """Return the command that lists the nodes and kinds of logs."""
    return f"./ultracluster logs {deployment.name} --list"


def list_by_prefix(deployment: Deployment, log_group: str, prefix: str) -> list[Stream]:
    """Return the streams whose names start with a prefix, 50 a call. Needs logs:DescribeLogStreams."""
    paginator = deployment.account.client("logs").get_paginator("describe_log_streams")
    return _streams(paginator.paginate(logGroupName=log_group, logStreamNamePrefix=prefix))


def list_newest(deployment: Deployment, log_group: str) -> tuple[list[Stream], bool]:
    """Return the streams with the newest events, newest first, and whether these are all.

    `MOST_LISTED`, 50 a call. Needs logs:DescribeLogStreams.
    """
    paginator = deployment.account.client("logs").get_paginator("describe_log_streams")
    pages = paginator.paginate(
        logGroupName=log_group,
        orderBy="LastEventTime",
        descending=True,
        PaginationConfig={"MaxItems": MOST_LISTED, "PageSize": 50},
    )
    return _streams(pages), pages.resume_token is None


@dataclass(frozen=True)
class Source:
    """Log streams, and a filter for their events.

    Attributes:
        deployment: Whose account it is.
        log_group: Where the streams are.
        streams: The streams, `MOST_STREAMS` at most.
        names: Short names of nodes by host; others have the name of the host.
        text: Only events that contain it; CloudWatch filters.
        is_wanted: A further filter, on messages.
    """

    deployment: Deployment
    log_group: str
    streams: Sequence[Stream]
    names: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    is_wanted: Callable[[str], bool] = lambda _: True

    def read(self, since: datetime, until: datetime) -> tuple[list[LogEvent], bool]:
        """Return the events of a period in the order of their time, and whether these are all: not the newest, if not.

        Needs logs:FilterLogEvents.
        """
        if not self.streams:
            return [], True
        options: dict[str, Any] = {
            "logGroupName": self.log_group,
            "logStreamNames": [each.name for each in self.streams],
            "startTime": _milliseconds(since),
            "endTime": _milliseconds(until),
            "PaginationConfig": {"PageSize": EVENTS_PER_CALL},
        }
        if self.text:
            escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
            options["filterPattern"] = f'"{escaped}"'
        paginator = self.deployment.account.client("logs").get_paginator("filter_log_events")
        pages = list(islice(paginator.paginate(**options), MOST_CALLS))
        events = [_event(each) for page in pages for each in page["events"]]
        events = [each for each in events if self.is_wanted(each.message)]
        return sorted(events, key=lambda event: event.time), "nextToken" not in pages[-1]

    def last(self, count: int, since: datetime, until: datetime) -> tuple[list[LogEvent], bool]:
        """Return the newest events of a period, ``count`` or more if there are so many, and whether these are all.

        Reads the last minutes, and longer periods until there are enough.
        """
        events, is_whole = self.read(max(since, until - _FIRST_PERIOD), until)
        length = _FIRST_PERIOD
        while is_whole and len(events) < count and length < until - since:
            length *= _GROWTH
            longer, is_whole = self.read(max(since, until - length), until)
            if is_whole:
                events = longer
        return events, is_whole


def _event(described: dict[str, Any]) -> LogEvent:
    return LogEvent(
        described["eventId"],
        _time(described["timestamp"]),
        described["logStreamName"],
        described["message"].rstrip("\n"),
    )


def _streams(pages: Iterable[Any]) -> list[Stream]:
    streams = []
    for page in pages:
        for each in page["logStreams"]:
            host, _, rest = each["logStreamName"].partition(".")
            instance_id, _, kind = rest.partition(".")
            latest = each.get("lastEventTimestamp")
            if kind:
                time = _time(latest) if latest else None
                streams.append(Stream(each["logStreamName"], host, instance_id, kind, time))
    return streams


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)
