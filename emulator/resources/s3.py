"""Amazon S3: buckets and their policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.api import Api
from emulator.resources.common import already_exists, renamed, unless_gone, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

_CONFIGURATIONS = (
    "BucketEncryption",
    "LifecycleConfiguration",
    "PublicAccessBlockConfiguration",
    "Tags",
    "VersioningConfiguration",
)


def make_bucket(s3: Any, name: str, region: str) -> None:
    """Make a bucket unless this account has it already."""
    if not _has_bucket(s3, name):
        _create_bucket(s3, name, region)


def _create(context: Context, request: Properties) -> Properties:
    """Make a bucket.

    Raises:
        UnsupportedError: Its access control is not Private, the default.
    """
    s3, name = context.client("s3"), request["BucketName"]
    if request.get("AccessControl", "Private") != "Private":
        raise UnsupportedError(f"AccessControl {request['AccessControl']}")
    if _has_bucket(s3, name):
        raise already_exists("AWS::S3::Bucket", name)
    _create_bucket(s3, name, context.region)
    domain = f"{name}.s3.{context.region}.amazonaws.com{'.cn' if context.partition == 'aws-cn' else ''}"
    return {"Bucket": name, "Arn": f"arn:{context.partition}:s3:::{name}", "RegionalDomainName": domain}


def _set(context: Context, bucket: Physical, old: Properties, new: Properties) -> None:
    for key in _CONFIGURATIONS:
        if old.get(key) != new.get(key):
            _configure(context.client("s3"), bucket.ref, key, new.get(key))


def _create_policy(context: Context, request: Properties) -> Properties:
    bucket = request["Bucket"]
    with unless_gone("NoSuchBucketPolicy"):
        context.client("s3").get_bucket_policy(Bucket=bucket)
        raise ResourceError(f"The bucket policy already exists on bucket {bucket}.")
    _put_policy(context, bucket, request)
    return request


def _put_policy(context: Context, bucket: str, properties: Properties) -> None:
    context.client("s3").put_bucket_policy(Bucket=bucket, Policy=json.dumps(properties["PolicyDocument"]))


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
    if "Transitions" in rule:
        names = {"TransitionInDays": "Days", "TransitionDate": "Date"}
        request["Transitions"] = [renamed(each, **names) for each in rule["Transitions"]]
    return request


def _has_bucket(s3: Any, name: str) -> bool:
    return name in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}


def _create_bucket(s3: Any, name: str, region: str) -> None:
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **where)


MODELS: Mapping[str, Model] = {
    "AWS::S3::Bucket": Api(
        "s3",
        "bucket",
        "Bucket",
        {"Arn": "Arn", "RegionalDomainName": "RegionalDomainName"},
        name=("BucketName", 63),
        creation=_create,
        configuration=_set,
        tags="",
        properties=("AccessControl", "BucketName", *_CONFIGURATIONS),
        mutable=_CONFIGURATIONS,
    ),
    "AWS::S3::BucketPolicy": Api(
        "s3",
        "bucket_policy",
        "Bucket",
        creation=_create_policy,
        modification=lambda context, policy, properties, _: _put_policy(context, policy.ref, properties),
        properties=("Bucket", "PolicyDocument"),
        mutable=("PolicyDocument",),
    ),
}
