"""Amazon CloudWatch, its Logs, and Amazon SNS."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
from collections.abc import Mapping

from emulator.resources.common import already_exists, as_dictionary, lowered, retag, taken, unless_gone, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError


class Alarm(Model):
    """AWS::CloudWatch::Alarm and AWS::CloudWatch::CompositeAlarm: a call makes it, or puts another in its place."""

    mutable = None

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def create(self, context: Context, properties: Properties) -> Physical:
        name = properties.get("AlarmName", context.name)
        self._put(context, name, properties)
        return Physical(name, {"Arn": context.arn("cloudwatch", f"alarm:{name}")})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        retag(context, "cloudwatch", physical.attributes["Arn"], properties, changed)
        self._put(context, physical.ref, without(properties, "Tags"))
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("cloudwatch").delete_alarms(AlarmNames=[physical.ref])

    def _put(self, context: Context, name: str, properties: Properties) -> None:
        getattr(context.client("cloudwatch"), self._operation)(**{**properties, "AlarmName": name})


class Dashboard(Model):
    """AWS::CloudWatch::Dashboard."""

    mutable = ("DashboardBody", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        name = properties.get("DashboardName", context.name)
        self._put(context, name, properties)
        return Physical(name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        self._put(context, physical.ref, properties)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("cloudwatch").delete_dashboards(DashboardNames=[physical.ref])

    def _put(self, context: Context, name: str, properties: Properties) -> None:
        answer = context.client("cloudwatch").put_dashboard(**{**properties, "DashboardName": name})
        if messages := answer.get("DashboardValidationMessages"):
            raise ResourceError(str(messages))


class LogGroup(Model):
    """AWS::Logs::LogGroup."""

    mutable = ("RetentionInDays", "Tags")
    properties = ("LogGroupName", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        name = properties.get("LogGroupName", context.name)
        tags = as_dictionary(properties.get("Tags", []))
        context.client("logs").create_log_group(logGroupName=name, tags=tags)
        self._retain(context, name, properties)
        return Physical(name, {"Arn": context.arn("logs", f"log-group:{name}:*")})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        self._retain(context, physical.ref, properties)
        retag(context, "logs", context.arn("logs", f"log-group:{physical.ref}"), properties, changed)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("logs").delete_log_group(logGroupName=physical.ref)

    def _retain(self, context: Context, name: str, properties: Properties) -> None:
        logs = context.client("logs")
        if "RetentionInDays" in properties:
            logs.put_retention_policy(logGroupName=name, retentionInDays=properties["RetentionInDays"])
        else:
            logs.delete_retention_policy(logGroupName=name)


class MetricFilter(Model):
    """AWS::Logs::MetricFilter."""

    def create(self, context: Context, properties: Properties) -> Physical:
        request = lowered(properties)
        request["metricTransformations"] = [_transformation(each) for each in properties["MetricTransformations"]]
        context.client("logs").put_metric_filter(filterName=context.name, **request)
        return Physical(context.name)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("logs").delete_metric_filter(logGroupName=properties["LogGroupName"], filterName=physical.ref)


def _transformation(properties: Properties) -> Properties:
    request = lowered(properties)
    if "dimensions" in request:
        request["dimensions"] = as_dictionary(request["dimensions"])
    return request


class Topic(Model):
    """AWS::SNS::Topic."""

    mutable = ("DisplayName", "KmsMasterKeyId", "Tags")
    properties = ("TopicName", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        sns, name = context.client("sns"), properties.get("TopicName", context.name)
        with unless_gone("NotFound"):
            sns.get_topic_attributes(TopicArn=context.arn("sns", name))
            raise already_exists("AWS::SNS::Topic", name)
        attributes = taken(properties, ("DisplayName", "KmsMasterKeyId"))
        made = sns.create_topic(Name=name, Attributes=attributes, Tags=properties.get("Tags", []))
        return Physical(made["TopicArn"], {"TopicName": name})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        for name in changed - {"Tags"}:
            context.client("sns").set_topic_attributes(
                TopicArn=physical.ref, AttributeName=name, AttributeValue=properties.get(name, "")
            )
        retag(context, "sns", physical.ref, properties, changed)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("sns").delete_topic(TopicArn=physical.ref)


class TopicPolicy(Model):
    """AWS::SNS::TopicPolicy."""

    properties = mutable = ("PolicyDocument", "Topics")

    def create(self, context: Context, properties: Properties) -> Physical:
        for topic in properties["Topics"]:
            context.client("sns").set_topic_attributes(
                TopicArn=topic, AttributeName="Policy", AttributeValue=json.dumps(properties["PolicyDocument"])
            )
        return Physical(context.name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        self.create(context, properties)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Leave the policy to the topics: SNS has no action that removes it."""


class Subscription(Model):
    """AWS::SNS::Subscription. What it does cannot change in place here."""

    def create(self, context: Context, properties: Properties) -> Physical:
        return Physical(context.client("sns").subscribe(**properties, ReturnSubscriptionArn=True)["SubscriptionArn"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("sns").unsubscribe(SubscriptionArn=physical.ref)


MODELS: Mapping[str, Model] = {
    "AWS::CloudWatch::Alarm": Alarm("put_metric_alarm"),
    "AWS::CloudWatch::CompositeAlarm": Alarm("put_composite_alarm"),
    "AWS::CloudWatch::Dashboard": Dashboard(),
    "AWS::Logs::LogGroup": LogGroup(),
    "AWS::Logs::MetricFilter": MetricFilter(),
    "AWS::SNS::Subscription": Subscription(),
    "AWS::SNS::Topic": Topic(),
    "AWS::SNS::TopicPolicy": TopicPolicy(),
}
