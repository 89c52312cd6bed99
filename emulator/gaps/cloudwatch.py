"""Amazon CloudWatch: composite alarms, and tags of dashboards."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import re
from typing import Any

from moto.cloudwatch.exceptions import ValidationError
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult, EmptyResult

_REFERENCE = re.compile(r"(?:ALARM|OK|INSUFFICIENT_DATA)\(\s*\"?([^\"()]+?)\"?\s*\)")


class CloudWatch(CloudWatchResponse):
    """CloudWatch with composite alarms, which are only listed when they are asked for, and dashboards with tags."""

    def put_composite_alarm(self) -> ActionResult:
        rule = self._get_param("AlarmRule")
        known = {each for alarm in self.cloudwatch_backend.describe_alarms() for each in (alarm.name, alarm.alarm_arn)}
        if missing := [each for each in _REFERENCE.findall(rule) if each not in known]:
            raise ValidationError(
                f"Could not save the composite alarm as alarms {missing} in the alarm rule do not exist"
            )
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
            rule=rule,
            tags=self._get_param("Tags", []),
        )
        return EmptyResult()

    def describe_alarms(self) -> ActionResult:
        answer: Any = super().describe_alarms()
        types = self._get_param("AlarmTypes", ["MetricAlarm"])
        wanted = {"MetricAlarm": "MetricAlarms", "CompositeAlarm": "CompositeAlarms"}
        return ActionResult({wanted[each]: answer.result[wanted[each]] for each in types})

    def put_dashboard(self) -> ActionResult:
        answer = super().put_dashboard()
        dashboard = self.cloudwatch_backend.dashboards[self._get_param("DashboardName")]
        self.cloudwatch_backend.tagger.tag_resource(dashboard.arn, self._get_param("Tags", []))
        return answer

    def tag_resource(self) -> ActionResult:
        arn = self._get_param("ResourceARN")
        if ":dashboard/" not in arn:
            return super().tag_resource()
        self.cloudwatch_backend.tagger.tag_resource(arn, self._get_param("Tags"))
        return EmptyResult()
