"""The logs of a cluster's nodes, as ParallelCluster has them sent to CloudWatch Logs.

A stream is named ``ip-10-0-1-2.i-0123456789abcdef0.slurmd``: host, instance and kind, which stands for a file of it
(https://github.com/aws/aws-parallelcluster-cookbook, aws-parallelcluster-environment/files/cloudwatch). It outlives the
node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from scripts.deployment import Deployment
from scripts.operations.command import OperationError

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
"""Those that head nodes alone have."""
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
"""Those that other nodes have, too or alone. ``system-messages`` is Amazon Linux's ``syslog``."""
MOST_STREAMS = 100
"""FilterLogEvents looks at no more at once.

https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
"""
MOST_LOOKED_AT = 500
"""Streams that `newest` looks at: 10 calls."""
_OVERLAP = timedelta(minutes=1)
"""How late an event may reach the log after one that is younger."""


@dataclass(frozen=True)
class Stream:
    """A log stream of a node.

    Attributes:
        name: Its name.
        host: Such as ``ip-10-0-1-2``.
        instance_id: The EC2 instance.
        kind: Such as ``slurmd``.
        latest: When its newest event was, up to an hour behind; ``None``: it has none.
    """

    name: str
    host: str
    instance_id: str
    kind: str
    latest: datetime | None


@dataclass(frozen=True)
class Event:
    """An event of a log stream.

    Attributes:
        id: Its id, unique in the log group.
        time: When it happened.
        stream: The name of its stream.
        message: What it says.
    """

    id: str
    time: datetime
    stream: str
    message: str


def group(deployment: Deployment) -> str:
    """Return the newest log group of the cluster, gone or not. Needs logs:DescribeLogGroups.

    ParallelCluster ends its name with the time of creation, to the minute.

    Raises:
        OperationError: There is none.
    """
    prefix = f"/aws/parallelcluster/{deployment.settings.cluster_spec.name}-"
    listed = deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix)
    names = [each["logGroupName"] for each in listed]
    found = sorted(name for name in names if re.fullmatch(r"\d{12}", name.removeprefix(prefix)))
    if not found:
        raise OperationError(f"There is no log group {prefix}YYYYMMDDHHMM in {deployment.settings.region}")
    return str(found[-1])


def of_prefix(deployment: Deployment, log_group: str, prefix: str) -> list[Stream]:
    """Return the streams whose names begin so, 50 a call. Needs logs:DescribeLogStreams."""
    paginator = deployment.account.client("logs").get_paginator("describe_log_streams")
    return _streams(paginator.paginate(logGroupName=log_group, logStreamNamePrefix=prefix))


def newest(deployment: Deployment, log_group: str) -> list[Stream]:
    """Return the streams with the newest events, newest first: `MOST_LOOKED_AT`, 50 a call.

    Needs logs:DescribeLogStreams.
    """
    paginator = deployment.account.client("logs").get_paginator("describe_log_streams")
    pages = paginator.paginate(
        logGroupName=log_group,
        orderBy="LastEventTime",
        descending=True,
        PaginationConfig={"MaxItems": MOST_LOOKED_AT, "PageSize": 50},
    )
    return _streams(pages)


def events(
    deployment: Deployment, log_group: str, names: Sequence[str], *, since: datetime | None = None, text: str = ""
) -> list[Event]:
    """Return events in the order of their time. 10,000 or 1 MB a call; needs logs:FilterLogEvents.

    Args:
        deployment: Whose account it is.
        log_group: Where they are.
        names: The streams, `MOST_STREAMS` at most.
        since: Only those from then on.
        text: Only those that contain it.
    """
    options: dict[str, Any] = {"logGroupName": log_group, "logStreamNames": list(names)}
    if since:
        options["startTime"] = int(since.timestamp() * 1000)
    if text:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        options["filterPattern"] = f'"{escaped}"'
    paginator = deployment.account.client("logs").get_paginator("filter_log_events")
    found = [
        Event(each["eventId"], _time(each["timestamp"]), each["logStreamName"], each["message"].rstrip("\n"))
        for page in paginator.paginate(**options)
        for each in page["events"]
    ]
    return sorted(found, key=lambda event: event.time)


class Tail:
    """The events that are new, call by call."""

    def __init__(self, deployment: Deployment, log_group: str, *, since: datetime, text: str = "") -> None:
        """Begin with the events from a time on, of those that contain a text."""
        self._deployment = deployment
        self._log_group = log_group
        self._since = since
        self._text = text
        self._seen: dict[str, datetime] = {}

    def new(self, names: Sequence[str]) -> list[Event]:
        """Return the events of streams that no call has returned yet. One call or more; needs logs:FilterLogEvents."""
        if not names:
            return []
        listed = events(self._deployment, self._log_group, names, since=self._since, text=self._text)
        found = [event for event in listed if event.id not in self._seen]
        self._seen |= {event.id: event.time for event in found}
        if found:
            self._since = max(self._since, found[-1].time - _OVERLAP)
        self._seen = {id_: time for id_, time in self._seen.items() if time >= self._since}
        return found


def _streams(pages: Iterable[Any]) -> list[Stream]:
    found = []
    for page in pages:
        for each in page["logStreams"]:
            host, _, rest = each["logStreamName"].partition(".")
            instance_id, _, kind = rest.partition(".")
            latest = each.get("lastEventTimestamp")
            if kind:
                found.append(Stream(each["logStreamName"], host, instance_id, kind, _time(latest) if latest else None))
    return found


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
