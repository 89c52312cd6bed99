"""What AWS recorded of a deployment, and how its logs are read.

What may not be read is left out and told in `Reader.unread`; other errors are raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from scripts.deployment import Deployment

LOG_PAGES = 10
"""Calls of FilterLogEvents for a group and a time at most, of up to 1 MB or 10,000 events each.

https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
"""
LOG_TERMS = (
    "ERROR", "Error", "error", "WARNING", "FATAL", "FAILED", "failed", "Failed", "failure", "Failure", "timed out",
    "reason set to", "No space", "unreachable", "not baked", "AMI was created", "PROTECTED", "hung",
)  # fmt: skip
"""A line is read if one of these is in it. All patterns of causes.yaml meant for logs are on such lines."""
KINDS = {
    "boot": (
        "bootstrap_error_msg",
        "cfn-init",
        "chef-client",
        "cloud-init",
        "cloud-init-output",
        "syslog",
        "system-messages",
    ),
    "daemon": (
        "clustermgtd",
        "clustermgtd_events",
        "clusterstatusmgtd",
        "compute_console_output",
        "computemgtd",
        "slurm_fleet_status_manager",
        "slurm_resume",
        "slurm_suspend",
    ),
    "slurm": ("slurmctld", "slurmd"),
}
"""The ends of the names of log streams, IP.INSTANCE.END, by what kind of log they are.

https://docs.aws.amazon.com/parallelcluster/latest/ug/cloudwatch-logs-v3.html
"""
PROVIDER_GROUP = re.compile(r"/aws/lambda/pcluster-cfn-[\w-]+")
_DENIED = re.compile(r"AccessDenied|Unauthorized|NotAuthorized")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Evidence:
    """One thing that AWS recorded.

    Attributes:
        kind: ``event``, ``provider``, or one of `KINDS`.
        place: The stack, or log group and stream.
        time: When.
        text: What. Of an event: status, type and name of the resource, and the reason.
        resource: Of an event the logical id of the resource.
    """

    kind: str
    place: str
    time: datetime
    text: str
    resource: str = ""


@dataclass
class Reader:
    """Reads what AWS recorded.

    Attributes:
        deployment: Of this deployment.
        unread: What could not be read, and the action that is missing; a log group is cut off after `LOG_PAGES`.
        read: What was read: stacks and log groups.
    """

    deployment: Deployment
    unread: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    def cluster_group(self) -> str:
        """Return the newest log group of the cluster; empty: there is none. Needs logs:DescribeLogGroups.

        Its name is that of the cluster with the time of its creation.
        """
        prefix = f"/aws/parallelcluster/{self.deployment.settings.cluster_spec.name}-"
        groups: list[Any] = self.tried(
            "log groups",
            "logs:DescribeLogGroups",
            lambda: self.deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix),
            [],
        )
        names = [each["logGroupName"] for each in groups]
        return max((each for each in names if re.fullmatch(r"\d{12}", each.removeprefix(prefix))), default="")

    def lines(self, group: str, since: datetime, until: datetime) -> list[Evidence]:
        """Return the lines of a log group that tell of trouble, oldest first. Needs logs:FilterLogEvents.

        At most `LOG_PAGES` calls; lines without any of `LOG_TERMS`, and streams of no known kind, are left out.
        """
        pages = (
            self.deployment.account.client("logs")
            .get_paginator("filter_log_events")
            .paginate(
                logGroupName=group,
                startTime=int(since.timestamp() * 1000),
                endTime=int(until.timestamp() * 1000),
                filterPattern=" ".join(f'?"{each}"' for each in LOG_TERMS),
            )
        )
        taken: list[Any] = self.tried(
            f"log group {group}", "logs:FilterLogEvents", lambda: list(islice(pages, LOG_PAGES)), []
        )
        if taken:
            self.read.append(group)
        if len(taken) == LOG_PAGES and "nextToken" in taken[-1]:
            self.unread.append(f"log group {group}: only the first {LOG_PAGES} pages since {since:%Y-%m-%d %H:%M} UTC")
        found = [line for page in taken for each in page["events"] if (line := _line(group, each))]
        return sorted(found, key=lambda line: line.time)

    def tried(self, what: str, action: str, ask: Callable[[], _T], otherwise: _T) -> _T:
        """Return an answer; where there is none for lack of a right, or as nothing is there, what else is given."""
        from botocore.exceptions import ClientError

        try:
            return ask()
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if _DENIED.search(code):
                missing = f"{what}: {action} is not allowed"
                self.unread.extend([missing] if missing not in self.unread else [])
            elif code != "ResourceNotFoundException":
                raise
            return otherwise


def _line(group: str, event: dict[str, Any]) -> Evidence | None:
    """Return a line of a log; None: it is of no kind that is looked at, or tells of no trouble."""
    stream, text = event["logStreamName"], event["message"].strip()
    end = stream.rpartition(".")[2]
    found = [kind for kind, ends in KINDS.items() if end in ends]
    kind = "provider" if PROVIDER_GROUP.fullmatch(group) else found[0] if found else ""
    if not kind or not any(term in text for term in LOG_TERMS):
        return None
    return Evidence(kind, f"{group} {stream}", datetime.fromtimestamp(event["timestamp"] / 1000, UTC), text)
