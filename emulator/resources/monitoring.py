"""Amazon CloudWatch, its Logs, and Amazon SNS."""

from __future__ import annotations

import json
from collections.abc import Mapping

from emulator.resources.api import Api
from emulator.resources.common import already_exists, lowered, unless_gone, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from emulator.resources.tags import as_dictionary


def _alarm(action: str) -> Api:
    """Return a kind of alarm: the action makes one, or puts another in its place."""

    def put(context: Context, request: Properties) -> Properties:
        getattr(context.client("cloudwatch"), action)(**request)
        return {"AlarmArn": context.arn("cloudwatch", f"alarm:{request['AlarmName']}")}

    def change(context: Context, alarm: Physical, properties: Properties, _: set[str]) -> None:
        put(context, {**without(properties, "Tags"), "AlarmName": alarm.ref})

    return Api(
        "cloudwatch",
        "alarm",
        "AlarmName",
        {"Arn": "AlarmArn"},
        name=("AlarmName", 64),
        creation=put,
        modification=change,
        deletion=lambda context, alarm, _: context.client("cloudwatch").delete_alarms(AlarmNames=[alarm.ref]),
        tagged="Arn",
        mutable=None,
    )


def _put_dashboard(context: Context, request: Properties) -> Properties:
    answer: Properties = context.client("cloudwatch").put_dashboard(**request)
    if messages := answer.get("DashboardValidationMessages"):
        raise ResourceError(str(messages))
    return answer


def _change_dashboard(context: Context, dashboard: Physical, properties: Properties, _: set[str]) -> None:
    _put_dashboard(context, {**properties, "DashboardName": dashboard.ref})


def _create_group(context: Context, request: Properties) -> Properties:
    context.client("logs").create_log_group(**request)
    return {"Arn": context.arn("logs", f"log-group:{request['logGroupName']}:*")}


def _retain(context: Context, group: Physical, _: Properties, properties: Properties) -> None:
    logs = context.client("logs")
    if "RetentionInDays" in properties:
        logs.put_retention_policy(logGroupName=group.ref, retentionInDays=properties["RetentionInDays"])
    else:
        logs.delete_retention_policy(logGroupName=group.ref)


def _metric_filter(properties: Properties) -> Properties:
    """Return the parameters of a metric filter."""
    transformations = [lowered(each) for each in properties["MetricTransformations"]]
    for each in transformations:
        if "dimensions" in each:
            each["dimensions"] = as_dictionary(each["dimensions"])
    return {**lowered(properties), "metricTransformations": transformations}


def _delete_metric_filter(context: Context, metric_filter: Physical, properties: Properties) -> None:
    group = properties["LogGroupName"]
    context.client("logs").delete_metric_filter(logGroupName=group, filterName=metric_filter.ref)


def _subscription(properties: Properties) -> Properties:
    _check_topic(properties["TopicArn"], "TopicArn")
    return {**properties, "ReturnSubscriptionArn": True}


def _check_topic(arn: str, name: str) -> None:
    """Check that an ARN of a topic is one, in the words of SNS.

    Raises:
        ResourceError: It is not.
    """
    parts = len(arn.split(":"))
    if parts < _PARTS_OF_ARN:
        reason = f"An ARN must have at least {_PARTS_OF_ARN} elements, not {parts}"
        raise ResourceError(f"Invalid parameter: TopicArn Reason: {reason} ({name})")


_PARTS_OF_ARN = 6
_TOPIC_ATTRIBUTES = ("DisplayName", "KmsMasterKeyId")


def _create_topic(context: Context, request: Properties) -> Properties:
    sns, name = context.client("sns"), request["TopicName"]
    with unless_gone("NotFound"):
        sns.get_topic_attributes(TopicArn=context.arn("sns", name))
        raise already_exists("AWS::SNS::Topic", name)
    attributes = {key: request[key] for key in _TOPIC_ATTRIBUTES if key in request}
    return dict(sns.create_topic(Name=name, Attributes=attributes, Tags=request.get("Tags", [])))


def _change_topic(context: Context, topic: Physical, properties: Properties, changed: set[str]) -> None:
    for name in changed - {"Tags"}:
        context.client("sns").set_topic_attributes(
            TopicArn=topic.ref, AttributeName=name, AttributeValue=properties.get(name, "")
        )


def _set_topic_policy(context: Context, _: Physical, __: Properties, properties: Properties) -> None:
    document = json.dumps(properties["PolicyDocument"])
    for topic in properties["Topics"]:
        _check_topic(topic, "Topics")
        context.client("sns").set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=document)


_POLICY = ("PolicyDocument", "Topics")

MODELS: Mapping[str, Model] = {
    "AWS::CloudWatch::Alarm": _alarm("put_metric_alarm"),
    "AWS::CloudWatch::CompositeAlarm": _alarm("put_composite_alarm"),
    "AWS::CloudWatch::Dashboard": Api(
        "cloudwatch",
        "dashboard",
        "DashboardName",
        name=("DashboardName", 64),
        creation=_put_dashboard,
        modification=_change_dashboard,
        deletion=lambda context, each, _: context.client("cloudwatch").delete_dashboards(DashboardNames=[each.ref]),
        tags="",
        mutable=("DashboardBody", "Tags"),
    ),
    "AWS::Logs::LogGroup": Api(
        "logs",
        "log_group",
        "logGroupName",
        {"Arn": "Arn"},
        name=("LogGroupName", 64),
        parameters=lowered,
        creation=_create_group,
        later=("RetentionInDays",),
        configuration=_retain,
        tagged=lambda context, group: context.arn("logs", f"log-group:{group.ref}"),
        mutable=("RetentionInDays", "Tags"),
    ),
    "AWS::Logs::MetricFilter": Api(
        "logs",
        "metric_filter",
        "filterName",
        name=("FilterName", 64),
        parameters=_metric_filter,
        creation="put_metric_filter",
        deletion=_delete_metric_filter,
    ),
    "AWS::SNS::Subscription": Api(
        "sns",
        "subscription",
        "SubscriptionArn",
        parameters=_subscription,
        creation="subscribe",
        deletion="unsubscribe",
    ),
    "AWS::SNS::Topic": Api(
        "sns",
        "topic",
        "TopicArn",
        {"DisplayName": "DisplayName", "TopicArn": "TopicArn", "TopicName": "TopicName"},
        name=("TopicName", 64),
        creation=_create_topic,
        modification=_change_topic,
        properties=("TopicName", "Tags", *_TOPIC_ATTRIBUTES),
        mutable=("Tags", *_TOPIC_ATTRIBUTES),
    ),
    "AWS::SNS::TopicPolicy": Api(
        "sns",
        "topic_policy",
        creation=lambda context, _: {"TopicPolicyId": context.name},
        configuration=_set_topic_policy,
        deletion=lambda *_: None,  # SNS has no action that removes it: the topics keep it
        properties=_POLICY,
        mutable=_POLICY,
    ),
}
