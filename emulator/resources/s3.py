"""Amazon S3: buckets, their policies, and CDK's emptying of buckets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.resources.common import (
    already_exists,
    look_for_provider,
    short_name,
    taken,
    undone_on_failure,
    unless_gone,
)
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

_BUCKET_NAME_LENGTH = 63

_AUTO_DELETE_TAG = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}


def make_bucket(s3: Any, name: str, region: str) -> None:
    """Make a bucket unless this account has it already."""
    if not _has_bucket(s3, name):
        _create_bucket(s3, name, region)


class Bucket(Model):
    """AWS::S3::Bucket."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the bucket and configure it."""
        s3 = context.client("s3")
        name = properties.pop("BucketName", short_name(context, _BUCKET_NAME_LENGTH).lower())
        if _has_bucket(s3, name):
            raise already_exists("AWS::S3::Bucket", name)
        options: dict[str, Any] = {}
        if "AccessControl" in properties:
            options["ACL"] = _canned_acl(properties.pop("AccessControl"))
        if "ObjectLockEnabled" in properties:
            options["ObjectLockEnabledForBucket"] = properties.pop("ObjectLockEnabled")
        _create_bucket(s3, name, context.region, **options)
        with undone_on_failure(lambda: s3.delete_bucket(Bucket=name)):
            for key, configuration in _CONFIGURATIONS.items():
                if key in properties:
                    configuration.put(s3, name, properties.pop(key))
        return Physical(name, _attributes(context, name))

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Configure the bucket anew."""
        s3 = context.client("s3")
        if "AccessControl" in changed:
            s3.put_bucket_acl(Bucket=physical.ref, ACL=_canned_acl(properties.get("AccessControl", "Private")))
            changed.remove("AccessControl")
        for key in changed.intersection(_CONFIGURATIONS):
            if key in properties:
                _CONFIGURATIONS[key].put(s3, physical.ref, properties[key])
            else:
                _CONFIGURATIONS[key].remove(s3, physical.ref)
            changed.remove(key)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the bucket; S3 refuses one that is not empty."""
        with unless_gone("NoSuchBucket"):
            context.client("s3").delete_bucket(Bucket=physical.ref)


class BucketPolicy(Model):
    """AWS::S3::BucketPolicy."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Put the policy."""
        bucket = properties.pop("Bucket")
        with unless_gone("NoSuchBucketPolicy"):
            context.client("s3").get_bucket_policy(Bucket=bucket)
            raise ResourceError(f"The bucket policy already exists on bucket {bucket}.")
        self._put(context, bucket, properties.pop("PolicyDocument"))
        return Physical(bucket, {"Bucket": bucket})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Put another policy in its place."""
        self._put(context, physical.ref, properties["PolicyDocument"])
        changed.discard("PolicyDocument")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the policy."""
        with unless_gone("NoSuchBucket"):
            context.client("s3").delete_bucket_policy(Bucket=physical.ref)

    def _put(self, context: Context, bucket: str, document: Mapping[str, Any]) -> None:
        context.client("s3").put_bucket_policy(Bucket=bucket, Policy=json.dumps(document))


class AutoDeleteObjects(Model):
    """Custom::S3AutoDeleteObjects: what CDK's Node function does, which is not run here.

    Before its bucket is deleted it empties it, if the bucket still has CDK's tag.
    """

    def create(self, context: Context, properties: Properties) -> Physical:
        """Do nothing but look for the function and the bucket."""
        look_for_provider(context, properties)
        bucket = properties.pop("BucketName")
        context.client("s3").head_bucket(Bucket=bucket)
        return Physical(bucket)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Stand for another bucket; CloudFormation then deletes this resource of the old one, which empties that."""
        changed -= {"ServiceToken", "BucketName"}
        return Physical(properties["BucketName"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete every version of every object."""
        s3 = context.client("s3")
        with unless_gone("NoSuchBucket", "NoSuchTagSet"):
            if _AUTO_DELETE_TAG not in s3.get_bucket_tagging(Bucket=physical.ref)["TagSet"]:
                return
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=physical.ref):
                objects = [
                    {"Key": each["Key"], "VersionId": each["VersionId"]}
                    for each in (*page.get("Versions", []), *page.get("DeleteMarkers", []))
                ]
                if objects:
                    s3.delete_objects(Bucket=physical.ref, Delete={"Objects": objects})


@dataclass(frozen=True)
class _Configuration:
    """How one configuration of a bucket is set and taken away."""

    put: Callable[[Any, str, Any], None]
    remove: Callable[[Any, str], None]


def _simple(
    put: str, argument: str, remove: str, convert: Callable[[Any], Any] = lambda value: value
) -> _Configuration:
    """Return a configuration that one action of the API sets, as one argument, and another one deletes."""
    return _Configuration(
        lambda s3, bucket, value: getattr(s3, put)(Bucket=bucket, **{argument: convert(value)}),
        lambda s3, bucket: getattr(s3, remove)(Bucket=bucket),
    )


def _resettable(
    put: str, argument: str, nothing: Any, convert: Callable[[Any], Any] = lambda value: value
) -> _Configuration:
    """Return a configuration that cannot be deleted, only set to `nothing`."""
    return _Configuration(
        lambda s3, bucket, value: getattr(s3, put)(Bucket=bucket, **{argument: convert(value)}),
        lambda s3, bucket: getattr(s3, put)(Bucket=bucket, **{argument: nothing}),
    )


def _encryption(value: Properties) -> Properties:
    renamed = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}
    rules = value.pop("ServerSideEncryptionConfiguration")
    _refuse_others("BucketEncryption", value)
    return {"Rules": [{renamed.get(key, key): rule[key] for key in rule} for rule in rules]}


def _refuse_others(name: str, remaining: Properties) -> None:
    if remaining:
        raise UnsupportedError(f"{name}: properties {', '.join(sorted(remaining))}")


def _lifecycle(value: Properties) -> Properties:
    rules = [_lifecycle_rule(rule) for rule in value.pop("Rules")]
    _refuse_others("LifecycleConfiguration", value)
    return {"Rules": rules}


def _lifecycle_rule(rule: Properties) -> Properties:
    request = taken(rule, ("Status", "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration"))
    if "Id" in rule:
        request["ID"] = rule.pop("Id")
    request["Filter"] = {"Prefix": rule.pop("Prefix", "")}
    renamed = {"ExpirationDate": "Date", "ExpirationInDays": "Days"}
    expiration = taken(rule, (*renamed, "ExpiredObjectDeleteMarker"))
    if expiration:
        request["Expiration"] = {renamed.get(key, key): each for key, each in expiration.items()}
    if "NoncurrentVersionExpirationInDays" in rule:
        request["NoncurrentVersionExpiration"] = {"NoncurrentDays": rule.pop("NoncurrentVersionExpirationInDays")}
    if "Transitions" in rule:
        request["Transitions"] = [_transition(each, "Days") for each in rule.pop("Transitions")]
    if "NoncurrentVersionTransitions" in rule:
        request["NoncurrentVersionTransitions"] = [
            _transition(each, "NoncurrentDays") for each in rule.pop("NoncurrentVersionTransitions")
        ]
    _refuse_others("LifecycleConfiguration", rule)
    return request


def _transition(value: Properties, days: str) -> Properties:
    renamed = {"TransitionDate": "Date", "TransitionInDays": days}
    transition = taken(value, (*renamed, "NewerNoncurrentVersions", "StorageClass"))
    _refuse_others("LifecycleConfiguration", value)
    return {renamed.get(key, key): each for key, each in transition.items()}


def _notifications(value: Properties) -> Properties:
    request: Properties = {}
    for key, target, name in (
        ("LambdaConfigurations", "Function", "LambdaFunction"),
        ("QueueConfigurations", "Queue", "Queue"),
        ("TopicConfigurations", "Topic", "Topic"),
    ):
        if key in value:
            request[f"{name}Configurations"] = [_notification(each, target, f"{name}Arn") for each in value.pop(key)]
    if "EventBridgeConfiguration" in value:
        event_bridge = value.pop("EventBridgeConfiguration")
        if event_bridge.pop("EventBridgeEnabled", True):
            request["EventBridgeConfiguration"] = {}
        _refuse_others("NotificationConfiguration", event_bridge)
    _refuse_others("NotificationConfiguration", value)
    return request


def _notification(value: Properties, target: str, arn: str) -> Properties:
    request = {"Events": [value.pop("Event")], arn: value.pop(target)}
    if "Filter" in value:
        condition = value.pop("Filter")
        key = condition.pop("S3Key")
        request["Filter"] = {"Key": {"FilterRules": key.pop("Rules")}}
        _refuse_others("NotificationConfiguration", {**condition, **key})
    _refuse_others("NotificationConfiguration", value)
    return request


def _logging(bucket: str, value: Properties) -> Properties:
    """Return where the log goes: without a destination, to the bucket itself."""
    destination = value.pop("DestinationBucketName", bucket)
    prefix = value.pop("LogFilePrefix", "")
    _refuse_others("LoggingConfiguration", value)
    return {"LoggingEnabled": {"TargetBucket": destination, "TargetPrefix": prefix}}


def _cors(value: Properties) -> Properties:
    renamed = {"ExposedHeaders": "ExposeHeaders", "Id": "ID", "MaxAge": "MaxAgeSeconds"}
    rules = value.pop("CorsRules")
    _refuse_others("CorsConfiguration", value)
    return {"CORSRules": [{renamed.get(key, key): rule[key] for key in rule} for rule in rules]}


_CONFIGURATIONS: Mapping[str, _Configuration] = {
    "BucketEncryption": _simple(
        "put_bucket_encryption", "ServerSideEncryptionConfiguration", "delete_bucket_encryption", _encryption
    ),
    "CorsConfiguration": _simple("put_bucket_cors", "CORSConfiguration", "delete_bucket_cors", _cors),
    "LifecycleConfiguration": _simple(
        "put_bucket_lifecycle_configuration", "LifecycleConfiguration", "delete_bucket_lifecycle", _lifecycle
    ),
    "LoggingConfiguration": _Configuration(
        lambda s3, bucket, value: s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=_logging(bucket, value)),
        lambda s3, bucket: s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={}),
    ),
    "NotificationConfiguration": _resettable(
        "put_bucket_notification_configuration", "NotificationConfiguration", {}, _notifications
    ),
    "OwnershipControls": _simple(
        "put_bucket_ownership_controls", "OwnershipControls", "delete_bucket_ownership_controls"
    ),
    "PublicAccessBlockConfiguration": _simple(
        "put_public_access_block", "PublicAccessBlockConfiguration", "delete_public_access_block"
    ),
    "Tags": _simple("put_bucket_tagging", "Tagging", "delete_bucket_tagging", lambda tags: {"TagSet": tags}),
    "VersioningConfiguration": _resettable("put_bucket_versioning", "VersioningConfiguration", {"Status": "Suspended"}),
}


def _has_bucket(s3: Any, name: str) -> bool:
    return name in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}


def _create_bucket(s3: Any, name: str, region: str, **options: Any) -> None:
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **where, **options)


def _canned_acl(access_control: str) -> str:
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in access_control)
    return words.removeprefix("-")


def _attributes(context: Context, name: str) -> dict[str, str]:
    suffix = "amazonaws.com.cn" if context.partition == "aws-cn" else "amazonaws.com"
    return {
        "Arn": f"arn:{context.partition}:s3:::{name}",
        "DomainName": f"{name}.s3.{suffix}",
        "DualStackDomainName": f"{name}.s3.dualstack.{context.region}.{suffix}",
        "RegionalDomainName": f"{name}.s3.{context.region}.{suffix}",
        "WebsiteURL": f"http://{name}.s3-website-{context.region}.{suffix}",
    }


MODELS: Mapping[str, Model] = {
    "AWS::S3::Bucket": Bucket(),
    "AWS::S3::BucketPolicy": BucketPolicy(),
    "Custom::S3AutoDeleteObjects": AutoDeleteObjects(),
}
