"""Amazon S3: buckets and their policies."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.common import already_exists, short_name, undone_on_failure, unless_gone, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

_BUCKET_NAME_LENGTH = 63


def make_bucket(s3: Any, name: str, region: str) -> None:
    """Make a bucket unless this account has it already."""
    if not _has_bucket(s3, name):
        _create_bucket(s3, name, region)


class Bucket(Model):
    """AWS::S3::Bucket."""

    mutable = (
        "BucketEncryption",
        "LifecycleConfiguration",
        "PublicAccessBlockConfiguration",
        "Tags",
        "VersioningConfiguration",
    )
    properties = ("AccessControl", "BucketName", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the bucket and configure it.

        Raises:
            UnsupportedError: Its access control is not Private, the default.
        """
        s3 = context.client("s3")
        name = properties.get("BucketName", short_name(context, _BUCKET_NAME_LENGTH).lower())
        if properties.get("AccessControl", "Private") != "Private":
            raise UnsupportedError(f"AccessControl {properties['AccessControl']}")
        if _has_bucket(s3, name):
            raise already_exists("AWS::S3::Bucket", name)
        _create_bucket(s3, name, context.region)
        with undone_on_failure(lambda: s3.delete_bucket(Bucket=name)):
            for key in self.mutable:
                if key in properties:
                    _configure(s3, name, key, properties[key])
        domain = f"{name}.s3.{context.region}.amazonaws.com{'.cn' if context.partition == 'aws-cn' else ''}"
        return Physical(name, {"Arn": f"arn:{context.partition}:s3:::{name}", "RegionalDomainName": domain})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        for key in changed:
            _configure(context.client("s3"), physical.ref, key, properties.get(key))
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the bucket; S3 refuses one that is not empty."""
        context.client("s3").delete_bucket(Bucket=physical.ref)


class BucketPolicy(Model):
    """AWS::S3::BucketPolicy."""

    properties = ("Bucket", "PolicyDocument")
    mutable = ("PolicyDocument",)

    def create(self, context: Context, properties: Properties) -> Physical:
        bucket = properties["Bucket"]
        with unless_gone("NoSuchBucketPolicy"):
            context.client("s3").get_bucket_policy(Bucket=bucket)
            raise ResourceError(f"The bucket policy already exists on bucket {bucket}.")
        self._put(context, bucket, properties["PolicyDocument"])
        return Physical(bucket)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        self._put(context, physical.ref, properties["PolicyDocument"])
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("s3").delete_bucket_policy(Bucket=physical.ref)

    def _put(self, context: Context, bucket: str, document: Mapping[str, Any]) -> None:
        context.client("s3").put_bucket_policy(Bucket=bucket, Policy=json.dumps(document))


def _configure(s3: Any, bucket: str, key: str, value: Any) -> None:
    """Set one configuration of a bucket, or remove it if there is no value."""
    match key:
        case "BucketEncryption" if value:
            s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=_encryption(value))
        case "BucketEncryption":
            s3.delete_bucket_encryption(Bucket=bucket)
        case "LifecycleConfiguration" if value:
            rules = [_lifecycle_rule(rule) for rule in value["Rules"]]
            s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})
        case "LifecycleConfiguration":
            s3.delete_bucket_lifecycle(Bucket=bucket)
        case "PublicAccessBlockConfiguration" if value:
            s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=value)
        case "PublicAccessBlockConfiguration":
            s3.delete_public_access_block(Bucket=bucket)
        case "Tags" if value:
            s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": value})
        case "Tags":
            s3.delete_bucket_tagging(Bucket=bucket)
        case "VersioningConfiguration":
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=value or {"Status": "Suspended"})


def _encryption(value: Mapping[str, Any]) -> Properties:
    renamed = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}
    rules = value["ServerSideEncryptionConfiguration"]
    return {"Rules": [{renamed.get(key, key): rule[key] for key in rule} for rule in rules]}


def _lifecycle_rule(rule: Mapping[str, Any]) -> Properties:
    request = without(rule, "ExpirationInDays", "Id", "Prefix")
    request["Filter"] = {"Prefix": rule.get("Prefix", "")}
    if "Id" in rule:
        request["ID"] = rule["Id"]
    if "ExpirationInDays" in rule:
        request["Expiration"] = {"Days": rule["ExpirationInDays"]}
    return request


def _has_bucket(s3: Any, name: str) -> bool:
    return name in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}


def _create_bucket(s3: Any, name: str, region: str) -> None:
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **where)


MODELS: Mapping[str, Model] = {
    "AWS::S3::Bucket": Bucket(),
    "AWS::S3::BucketPolicy": BucketPolicy(),
}
