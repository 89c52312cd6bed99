"""Amazon S3: buckets and their policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.resources.common import (
    already_exists,
    short_name,
    taken,
    undone_on_failure,
    unless_gone,
)
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

_BUCKET_NAME_LENGTH = 63


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
        _create_bucket(s3, name, context.region, **options)
        with undone_on_failure(lambda: s3.delete_bucket(Bucket=name)):
            for key, configuration in _CONFIGURATIONS.items():
                if key in properties:
                    configuration.put(s3, name, properties.pop(key))
        return Physical(name, _attributes(context, name))

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change what is configured."""
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


@dataclass(frozen=True)
class _Configuration:
    """How one configuration of a bucket is set and removed."""

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
    if "ExpirationInDays" in rule:
        request["Expiration"] = {"Days": rule.pop("ExpirationInDays")}
    _refuse_others("LifecycleConfiguration", rule)
    return request


def _logging(bucket: str, value: Properties) -> Properties:
    """Return where the log goes: without a destination, to the bucket itself."""
    destination = value.pop("DestinationBucketName", bucket)
    prefix = value.pop("LogFilePrefix", "")
    _refuse_others("LoggingConfiguration", value)
    return {"LoggingEnabled": {"TargetBucket": destination, "TargetPrefix": prefix}}


_CONFIGURATIONS: Mapping[str, _Configuration] = {
    "BucketEncryption": _simple(
        "put_bucket_encryption", "ServerSideEncryptionConfiguration", "delete_bucket_encryption", _encryption
    ),
    "LifecycleConfiguration": _simple(
        "put_bucket_lifecycle_configuration", "LifecycleConfiguration", "delete_bucket_lifecycle", _lifecycle
    ),
    "LoggingConfiguration": _Configuration(
        lambda s3, bucket, value: s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=_logging(bucket, value)),
        lambda s3, bucket: s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={}),
    ),
    "OwnershipControls": _simple(
        "put_bucket_ownership_controls", "OwnershipControls", "delete_bucket_ownership_controls"
    ),
    "PublicAccessBlockConfiguration": _simple(
        "put_public_access_block", "PublicAccessBlockConfiguration", "delete_public_access_block"
    ),
    "Tags": _simple("put_bucket_tagging", "Tagging", "delete_bucket_tagging", lambda tags: {"TagSet": tags}),
    "VersioningConfiguration": _Configuration(
        lambda s3, bucket, value: s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=value),
        lambda s3, bucket: s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"}),
    ),
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
}
