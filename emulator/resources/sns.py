"""Amazon SNS: topics, their policies and subscriptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.common import already_exists, removed_tags, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class Topic(Model):
    """AWS::SNS::Topic."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the topic."""
        name = properties.pop("TopicName", context.name)
        attributes = taken(properties, ("DisplayName", "KmsMasterKeyId"))
        sns = context.client("sns")
        with unless_gone("NotFound"):
            sns.get_topic_attributes(TopicArn=f"arn:{context.partition}:sns:{context.region}:{context.account}:{name}")
            raise already_exists("AWS::SNS::Topic", name)
        arn = sns.create_topic(Name=name, Attributes=attributes, Tags=properties.pop("Tags", []))["TopicArn"]
        return Physical(arn, {"TopicArn": arn, "TopicName": name})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change display name, key and tags."""
        sns = context.client("sns")
        for name in changed & {"DisplayName", "KmsMasterKeyId"}:
            value = properties.get(name, "")
            sns.set_topic_attributes(TopicArn=physical.ref, AttributeName=name, AttributeValue=value)
            changed.remove(name)
        if "Tags" in changed:
            sns.untag_resource(ResourceArn=physical.ref, TagKeys=removed_tags(context, properties))
            sns.tag_resource(ResourceArn=physical.ref, Tags=properties.get("Tags", []))
            changed.remove("Tags")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the topic."""
        with unless_gone("NotFound"):
            context.client("sns").delete_topic(TopicArn=physical.ref)


class TopicPolicy(Model):
    """AWS::SNS::TopicPolicy."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Give the policy to the topics."""
        self._put(context, properties.pop("Topics"), properties.pop("PolicyDocument"))
        return Physical(context.name, {"Id": context.name})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Give the policy to the topics."""
        self._put(context, properties["Topics"], properties["PolicyDocument"])
        changed -= {"Topics", "PolicyDocument"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Leave the policy to the topics: SNS has no action that removes it."""

    def _put(self, context: Context, topics: list[str], document: Mapping[str, Any]) -> None:
        for topic in topics:
            context.client("sns").set_topic_attributes(
                TopicArn=topic, AttributeName="Policy", AttributeValue=json.dumps(document)
            )


class Subscription(Model):
    """AWS::SNS::Subscription. What it does cannot change in place here."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Subscribe an endpoint to a topic."""
        request = taken(properties, ("Endpoint", "Protocol", "TopicArn"))
        arn = context.client("sns").subscribe(**request, ReturnSubscriptionArn=True)["SubscriptionArn"]
        return Physical(arn, {"Arn": arn})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Cancel the subscription."""
        with unless_gone("NotFound"):
            context.client("sns").unsubscribe(SubscriptionArn=physical.ref)


MODELS: Mapping[str, Model] = {
    "AWS::SNS::Subscription": Subscription(),
    "AWS::SNS::Topic": Topic(),
    "AWS::SNS::TopicPolicy": TopicPolicy(),
}
