"""The outputs of commands on nodes, as they reach CloudWatch Logs, and the log group that takes them.

How the agent cuts output into events: https://github.com/aws/amazon-ssm-agent,
agentlogstocloudwatch/cloudwatchlogspublisher/cloudwatchlogsservice.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from scripts.aws_errors import is_denied

RETENTION_DAYS = 7
LARGEST_EVENT = 200_000
"""Bytes of an event, at which the agent cuts a line that is longer."""


def prepare(logs: Any, group: str) -> None:
    """Have a log group that forgets, as far as this is allowed to. Another time than `RETENTION_DAYS` is left as it is.

    Needs logs:CreateLogGroup, logs:DescribeLogGroups and logs:PutRetentionPolicy.

    Args:
        logs: A client of CloudWatch Logs.
        group: The log group.
    """
    with _if_allowed(), suppress(logs.exceptions.ResourceAlreadyExistsException):
        logs.create_log_group(logGroupName=group)
    with _if_allowed():
        listed = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        if any(each["logGroupName"] == group and "retentionInDays" not in each for each in listed):
            logs.put_retention_policy(logGroupName=group, retentionInDays=RETENTION_DAYS)


@contextmanager
def _if_allowed() -> Iterator[None]:
    from botocore.exceptions import ClientError

    try:
        yield
    except ClientError as error:
        if not is_denied(error):
            raise


class OutputStream:
    """One output of a command, as it reaches its log stream.

    Attributes:
        mark: What stands at its end.
        began: Whether anything came.
        complete: Whether the mark came.
    """

    def __init__(self, logs: Any, group: str, name: str, mark: str) -> None:
        self.mark = mark
        self.began = self.complete = False
        self._logs = logs
        self._place = {"logGroupName": group, "logStreamName": name}
        self._token: dict[str, str] = {}

    def new(self) -> str:
        """Return what has come since the last call."""
        found = ""
        while not self.complete:
            try:
                page = self._logs.get_log_events(**self._place, **self._token, startFromHead=True)
            except self._logs.exceptions.ResourceNotFoundException:
                break  # there is no stream before the first line
            for event in page["events"]:
                found += "" if self.complete else self._text(event["message"])
            token = {"nextToken": page["nextForwardToken"]}
            if token == self._token:
                break
            self._token = token
        return found

    def _text(self, message: str) -> str:
        """Return what an event stands for: whole lines, maybe without the last one's end, or a part of a long line."""
        self.began = True
        shown, mark, _ = message.partition(self.mark)
        self.complete = bool(mark)
        part = mark or shown.endswith("\n") or len(shown.encode()) >= LARGEST_EVENT
        return shown if part else f"{shown}\n"
