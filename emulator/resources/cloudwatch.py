"""Amazon CloudWatch: alarms and dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import retag, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError

_ACTIONS = ("ActionsEnabled", "AlarmActions", "AlarmDescription", "InsufficientDataActions", "OKActions")
_METRIC = (
    *_ACTIONS,
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluateLowSampleCountPercentile",
    "EvaluationPeriods",
    "ExtendedStatistic",
    "MetricName",
    "Metrics",
    "Namespace",
    "Period",
    "Statistic",
    "Threshold",
    "ThresholdMetricId",
    "TreatMissingData",
    "Unit",
)
_COMPOSITE = (
    *_ACTIONS,
    "ActionsSuppressor",
    "ActionsSuppressorExtensionPeriod",
    "ActionsSuppressorWaitPeriod",
    "AlarmRule",
)


class _Alarm(Model):
    """An alarm of either kind: one call of the API makes it, or puts another in its place."""

    operation: str
    keys: tuple[str, ...]

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the alarm."""
        name = properties.pop("AlarmName", context.name)
        self._put(context, name, properties)
        arn = f"arn:{context.partition}:cloudwatch:{context.region}:{context.account}:alarm:{name}"
        return Physical(name, {"Arn": arn})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the alarm, and its tags."""
        retag(context, "cloudwatch", physical.attributes["Arn"], properties, changed)
        properties.pop("Tags", None)
        self._put(context, physical.ref, properties)
        changed -= {*self.keys}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the alarm."""
        with unless_gone("ResourceNotFound", "ResourceNotFoundException"):
            context.client("cloudwatch").delete_alarms(AlarmNames=[physical.ref])

    def _put(self, context: Context, name: str, properties: Properties) -> None:
        request: dict[str, Any] = taken(properties, (*self.keys, "Tags"))
        getattr(context.client("cloudwatch"), self.operation)(AlarmName=name, **request)


class Alarm(_Alarm):
    """AWS::CloudWatch::Alarm."""

    operation = "put_metric_alarm"
    keys = _METRIC


class CompositeAlarm(_Alarm):
    """AWS::CloudWatch::CompositeAlarm."""

    operation = "put_composite_alarm"
    keys = _COMPOSITE


class Dashboard(Model):
    """AWS::CloudWatch::Dashboard."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the dashboard."""
        name = properties.pop("DashboardName", context.name)
        self._put(context, name, properties)
        return Physical(name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the dashboard, and its tags."""
        arn = f"arn:{context.partition}:cloudwatch::{context.account}:dashboard/{physical.ref}"
        retag(context, "cloudwatch", arn, properties, changed)
        properties.pop("Tags", None)
        self._put(context, physical.ref, properties)
        changed -= {"DashboardBody"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the dashboard."""
        with unless_gone("ResourceNotFound", "DashboardNotFoundError"):
            context.client("cloudwatch").delete_dashboards(DashboardNames=[physical.ref])

    def _put(self, context: Context, name: str, properties: Properties) -> None:
        answer = context.client("cloudwatch").put_dashboard(
            DashboardName=name, **taken(properties, ("DashboardBody", "Tags"))
        )
        if messages := answer.get("DashboardValidationMessages"):
            raise ResourceError(str(messages))


MODELS: Mapping[str, Model] = {
    "AWS::CloudWatch::Alarm": Alarm(),
    "AWS::CloudWatch::CompositeAlarm": CompositeAlarm(),
    "AWS::CloudWatch::Dashboard": Dashboard(),
}
