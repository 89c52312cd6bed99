"""Functions, logs, parameters, queues, topics, placement groups."""

from __future__ import annotations

import json
from typing import Any

from emulator.aws import ACCOUNT
from tests.emulator.account import REGION, Account, Resource, tags
from tests.emulator.lives.case import Case, case, part


@case("AWS::Lambda::Function")
def _function(account: Account) -> Case:
    def look(function: Resource) -> Any:
        found = account.client("lambda").get_function(FunctionName=function.ref)
        environment = found["Configuration"].get("Environment", {}).get("Variables", {})
        configuration = part(found["Configuration"], "Handler", "MemorySize", "Runtime", "Timeout")
        return configuration, environment, found.get("Tags", {})

    made = {"Handler": "index.handler", "MemorySize": 256, "Runtime": "python3.12", "Timeout": 60}
    return Case(
        properties={
            **made,
            "Code": {"ZipFile": "def handler(event, context): return 1"},
            "Environment": {"Variables": {"A": "1"}},
            "Role": account.role()["Arn"],
            "Tags": tags(Name="a"),
        },
        look=look,
        made=(made, {"A": "1"}, {"Name": "a"}),
        changes={"Code": account.archive(), "Environment": None, "MemorySize": None, "Tags": tags(Name="b")},
        changed=({**made, "MemorySize": 128}, {}, {"Name": "b"}),
        attributes={"Arn"},
    )


@case("AWS::Lambda::Permission")
def _permission(account: Account) -> Case:
    function = account.function().ref

    def look(_: Resource) -> Any:
        policy = json.loads(account.client("lambda").get_policy(FunctionName=function)["Policy"])
        return [(each["Action"], each["Principal"]) for each in policy["Statement"]]

    permission = [("lambda:InvokeFunction", {"Service": "s3.amazonaws.com"})]
    return Case(
        properties={"Action": "lambda:InvokeFunction", "FunctionName": function, "Principal": "s3.amazonaws.com"},
        look=look,
        made=permission,
        changes={},
        changed=permission,
        attributes={"Id"},
    )


@case("AWS::Lambda::LayerVersion")
def _layer_version(account: Account) -> Case:
    def look(layer: Resource) -> Any:
        found = account.client("lambda").list_layer_versions(LayerName=layer.properties["LayerName"])["LayerVersions"]
        return [(each["LayerVersionArn"], each["CompatibleRuntimes"]) for each in found]

    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:l:1"
    return Case(
        properties={"LayerName": "l", "Content": account.archive(), "CompatibleRuntimes": ["python3.12"]},
        look=look,
        made=[(arn, ["python3.12"])],
        changes={},
        changed=[(arn, ["python3.12"])],
        attributes={"LayerVersionArn"},
    )


@case("AWS::Logs::LogGroup")
def _log_group(account: Account) -> Case:
    logs = account.client("logs")

    def look(group: Resource) -> Any:
        return [
            (each.get("retentionInDays"), logs.list_tags_for_resource(resourceArn=each["logGroupArn"])["tags"])
            for each in logs.describe_log_groups(logGroupNamePrefix=group.ref)["logGroups"]
        ]

    return Case(
        properties={"RetentionInDays": 7, "Tags": tags(Name="a", other="b")},
        look=look,
        made=[(7, {"Name": "a", "other": "b"})],
        changes={"RetentionInDays": None, "Tags": tags(Name="c")},
        changed=[(None, {"Name": "c"})],
        attributes={"Arn"},
    )


@case("AWS::Logs::MetricFilter")
def _metric_filter(account: Account) -> Case:
    group = account.create("AWS::Logs::LogGroup").ref

    def look(_: Resource) -> Any:
        found = account.client("logs").describe_metric_filters(logGroupName=group)["metricFilters"]
        return [(each["filterPattern"], each["metricTransformations"]) for each in found]

    transformation = {"MetricName": "m", "MetricNamespace": "n", "MetricValue": "1", "DefaultValue": 0}
    transformed = [{"metricName": "m", "metricNamespace": "n", "metricValue": "1", "defaultValue": 0.0}]
    return Case(
        properties={"FilterPattern": "a", "LogGroupName": group, "MetricTransformations": [transformation]},
        look=look,
        made=[("a", transformed)],
        changes={"FilterPattern": "b"},
        changed=[("b", transformed)],
        attributes=set(),
    )


@case("AWS::SSM::Parameter")
def _parameter(account: Account) -> Case:
    ssm = account.client("ssm")

    def look(parameter: Resource) -> Any:
        found = ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=parameter.ref)["TagList"]
        return ssm.get_parameter(Name=parameter.ref)["Parameter"]["Value"], found

    return Case(
        properties={"Name": "/a/b", "Type": "String", "Value": "v", "Tags": {"a": "1", "b": "2"}},
        look=look,
        made=("v", tags(a="1", b="2")),
        changes={"Value": "w", "Tags": {"b": "3"}},
        changed=("w", tags(b="3")),
        attributes={"Type", "Value"},
    )


@case("AWS::SNS::Topic")
def _topic(account: Account) -> Case:
    sns = account.client("sns")

    def look(topic: Resource) -> Any:
        name = sns.get_topic_attributes(TopicArn=topic.ref)["Attributes"]["DisplayName"]
        return name, sns.list_tags_for_resource(ResourceArn=topic.ref)["Tags"]

    return Case(
        properties={"DisplayName": "d", "Tags": tags(Name="a")},
        look=look,
        made=("d", tags(Name="a")),
        changes={"DisplayName": "e", "Tags": tags(Name="b")},
        changed=("e", tags(Name="b")),
        attributes={"TopicArn", "TopicName"},
    )


@case("AWS::SNS::Subscription")
def _subscription(account: Account) -> Case:
    topic = account.create("AWS::SNS::Topic").ref

    def look(subscription: Resource) -> Any:
        found = account.client("sns").get_subscription_attributes(SubscriptionArn=subscription.ref)["Attributes"]
        return found["Endpoint"], found["Protocol"]

    return Case(
        properties={"Endpoint": "me@example.com", "Protocol": "email", "TopicArn": topic},
        look=look,
        made=("me@example.com", "email"),
        changes={},
        changed=None,
        attributes={"Arn"},
    )


@case("AWS::EC2::PlacementGroup")
def _placement_group(account: Account) -> Case:
    def look(group: Resource) -> Any:
        found = account.client("ec2").describe_placement_groups(GroupNames=[group.ref])["PlacementGroups"][0]
        return found["Strategy"]

    return Case(
        properties={"Strategy": "cluster"},
        look=look,
        made="cluster",
        changes={},
        changed="cluster",
        attributes={"GroupName"},
    )
