"""Amazon SQS: queues and their policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.common import (
    already_exists,
    as_dictionary,
    removed_tags,
    short_name,
    taken,
    taken_tags,
    unless_gone,
)
from emulator.resources.model import Context, Model, Physical, Properties

_NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"
_QUEUE_NAME_LENGTH = 80

_DEFAULTS: Mapping[str, Any] = {
    "ContentBasedDeduplication": False,
    "DelaySeconds": 0,
    "KmsDataKeyReusePeriodSeconds": 300,
    "KmsMasterKeyId": "",
    "MaximumMessageSize": 1048576,
    "MessageRetentionPeriod": 345600,
    "ReceiveMessageWaitTimeSeconds": 0,
    "RedriveAllowPolicy": "",
    "RedrivePolicy": "",
    "SqsManagedSseEnabled": True,
    "VisibilityTimeout": 30,
}
"""Attributes of a queue, with what each is unless a template says otherwise (SetQueueAttributes, API reference)."""


class Queue(Model):
    """AWS::SQS::Queue."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the queue."""
        sqs = context.client("sqs")
        attributes = taken(properties, (*_DEFAULTS, "FifoQueue"))
        ending = ".fifo" if attributes.get("FifoQueue") else ""
        name = properties.pop("QueueName", short_name(context, _QUEUE_NAME_LENGTH - len(ending)) + ending)
        with unless_gone(_NO_QUEUE):
            sqs.get_queue_url(QueueName=name)
            raise already_exists("AWS::SQS::Queue", name)
        url = sqs.create_queue(QueueName=name, Attributes=_texts(attributes), tags=taken_tags(properties))["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        return Physical(url, {"Arn": arn, "QueueName": name, "QueueUrl": url})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change attributes and tags."""
        sqs = context.client("sqs")
        if attributes := {key: properties.get(key, _DEFAULTS[key]) for key in changed.intersection(_DEFAULTS)}:
            sqs.set_queue_attributes(QueueUrl=physical.ref, Attributes=_texts(attributes))
        if "Tags" in changed:
            if gone := removed_tags(context, properties):
                sqs.untag_queue(QueueUrl=physical.ref, TagKeys=gone)
            if properties.get("Tags"):
                sqs.tag_queue(QueueUrl=physical.ref, Tags=as_dictionary(properties["Tags"]))
        changed -= {*_DEFAULTS, "Tags"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the queue."""
        with unless_gone(_NO_QUEUE):
            context.client("sqs").delete_queue(QueueUrl=physical.ref)


class QueuePolicy(Model):
    """AWS::SQS::QueuePolicy."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Give the policy to the queues."""
        self._put(context, properties.pop("Queues"), json.dumps(properties.pop("PolicyDocument")))
        return Physical(context.name, {"Id": context.name})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Give the policy to the queues, and none to those that are left out now."""
        queues = properties["Queues"]
        self._put(context, [each for each in context.previous["Queues"] if each not in queues], "")
        self._put(context, queues, json.dumps(properties["PolicyDocument"]))
        changed -= {"Queues", "PolicyDocument"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Take the policy from the queues."""
        with unless_gone(_NO_QUEUE):
            self._put(context, properties["Queues"], "")

    def _put(self, context: Context, queues: list[str], policy: str) -> None:
        for queue in queues:
            context.client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})


def _texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Write attributes as the API takes them: everything is text, objects are JSON."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}


MODELS: Mapping[str, Model] = {"AWS::SQS::Queue": Queue(), "AWS::SQS::QueuePolicy": QueuePolicy()}
