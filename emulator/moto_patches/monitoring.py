"""Amazon CloudWatch with its Logs, and AWS CloudTrail."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
from typing import Any

from moto.cloudtrail.responses import CloudTrailResponse
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult, EmptyResult
from moto.logs.responses import LogsResponse


class CloudWatch(CloudWatchResponse):
    """CloudWatch with composite alarms, which are only listed when they are asked for, and dashboards with tags."""

    def put_composite_alarm(self) -> ActionResult:
        unused: dict[str, Any] = dict.fromkeys(
            (
                "namespace",
                "metric_name",
                "comparison_operator",
                "evaluation_periods",
                "period",
                "threshold",
                "statistic",
            )
        )
        self.cloudwatch_backend.put_metric_alarm(
            self._get_param("AlarmName"),
            **unused,
            description=self._get_param("AlarmDescription"),
            dimensions=[],
            alarm_actions=self._get_param("AlarmActions", []),
            ok_actions=self._get_param("OKActions", []),
            insufficient_data_actions=self._get_param("InsufficientDataActions", []),
            actions_enabled=self._get_param("ActionsEnabled", True),
            rule=self._get_param("AlarmRule"),
            tags=self._get_param("Tags", []),
        )
        return EmptyResult()

    def describe_alarms(self) -> ActionResult:
        answer: Any = super().describe_alarms()
        types = self._get_param("AlarmTypes", ["MetricAlarm"])
        wanted = {"MetricAlarm": "MetricAlarms", "CompositeAlarm": "CompositeAlarms"}
        return ActionResult({wanted[each]: answer.result[wanted[each]] for each in types})


class Logs(LogsResponse):
    """CloudWatch Logs that finds events by the beginning of their streams' names, and in the order of their times.

    https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
    """

    def filter_log_events(self) -> str:
        group, prefix = self._get_param("logGroupName"), self._get_param("logStreamNamePrefix")
        names = self._get_param("logStreamNames", [])
        if prefix and group in self.logs_backend.groups:
            names = [each for each in self.logs_backend.groups[group].streams if each.startswith(prefix)] or [prefix]
        events, token, searched = self.logs_backend.filter_log_events(
            group,
            names,
            self._get_param("startTime"),
            self._get_param("endTime"),
            self._get_param("limit"),
            self._get_param("nextToken"),
            self._get_param("filterPattern"),
            interleaved=True,
        )
        return json.dumps({"events": events, "nextToken": token, "searchedLogStreams": searched})


class CloudTrail(CloudTrailResponse):
    """CloudTrail that knows of no event yet: it delivers about five minutes after a call.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/how-cloudtrail-works.html
    """

    def lookup_events(self) -> ActionResult:
        return ActionResult({"Events": []})
