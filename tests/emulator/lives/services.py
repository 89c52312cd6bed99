"""Functions, logs, parameters, queues, topics, placement groups."""

from __future__ import annotations

from typing import Any

from tests.emulator.account import Account, Resource, tags
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
