"""What holds data: file systems, buckets and repositories of images."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from tests.emulator.account import Account, Resource, tags
from tests.emulator.lives.case import PUBLIC_LIST, PUBLIC_READ, Case, case, part


@case("AWS::FSx::FileSystem")
def _file_system(account: Account) -> Case:
    vpc = account.vpc()

    def look(file_system: Resource) -> Any:
        found = account.client("fsx").describe_file_systems(FileSystemIds=[file_system.ref])["FileSystems"][0]
        lustre = part(found["LustreConfiguration"], "DataCompressionType", "PerUnitStorageThroughput")
        return found["StorageCapacity"], found["FileSystemTypeVersion"], lustre, found["Tags"]

    def lustre(compression: str) -> dict[str, Any]:
        return {
            "DataCompressionType": compression,
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
        }

    return Case(
        properties={
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": "2.15",
            "LustreConfiguration": lustre("LZ4"),
            "SecurityGroupIds": [account.group(vpc).ref],
            "StorageCapacity": 1200,
            "SubnetIds": [account.subnet(vpc).ref],
            "Tags": tags(Name="a"),
        },
        look=look,
        made=(1200, "2.15", {"DataCompressionType": "LZ4", "PerUnitStorageThroughput": 250}, tags(Name="a")),
        changes={"LustreConfiguration": lustre("NONE"), "StorageCapacity": 2400, "Tags": tags(Name="b")},
        changed=(2400, "2.15", {"DataCompressionType": "NONE", "PerUnitStorageThroughput": 250}, tags(Name="b")),
        attributes={"DNSName", "LustreMountName", "ResourceARN"},
    )


@case("AWS::FSx::DataRepositoryAssociation")
def _data_repository_association(account: Account) -> Case:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    uri = f"s3://{account.create('AWS::S3::Bucket').ref}/data"

    def look(link: Resource) -> Any:
        fsx = account.client("fsx")
        found = fsx.describe_data_repository_associations(AssociationIds=[link.ref])["Associations"][0]
        keys = ("FileSystemId", "FileSystemPath", "DataRepositoryPath", "Lifecycle", "S3", "Tags")
        return part(found, *keys)

    made = {
        "FileSystemId": file_system.ref,
        "FileSystemPath": "/data",
        "DataRepositoryPath": uri,
        "Lifecycle": "AVAILABLE",
        "S3": {"AutoImportPolicy": {"Events": ["NEW"]}},
        "Tags": [],
    }
    changes = {"S3": {"AutoExportPolicy": {"Events": ["CHANGED"]}}, "Tags": tags(Name="a")}
    return Case(
        properties={key: made[key] for key in ("FileSystemId", "FileSystemPath", "DataRepositoryPath", "S3")},
        look=look,
        made=made,
        changes=changes,
        changed={**made, **changes},
        attributes={"AssociationId", "ResourceARN"},
    )


def _read(action: Callable[..., Any], member: str, bucket: str) -> Any:
    """Return one configuration of a bucket; None if it has none."""
    try:
        return action(Bucket=bucket).get(member)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":
            raise
        return None


@case("AWS::S3::Bucket")
def _bucket(account: Account) -> Case:
    s3 = account.client("s3")
    readers = {
        "BucketEncryption": (s3.get_bucket_encryption, "ServerSideEncryptionConfiguration"),
        "LifecycleConfiguration": (s3.get_bucket_lifecycle_configuration, "Rules"),
        "LoggingConfiguration": (s3.get_bucket_logging, "LoggingEnabled"),
        "OwnershipControls": (s3.get_bucket_ownership_controls, "OwnershipControls"),
        "PublicAccessBlockConfiguration": (s3.get_public_access_block, "PublicAccessBlockConfiguration"),
        "Tags": (s3.get_bucket_tagging, "TagSet"),
        "VersioningConfiguration": (s3.get_bucket_versioning, "Status"),
    }

    def look(bucket: Resource) -> Any:
        s3.head_bucket(Bucket=bucket.ref)
        return {key: _read(*reader, bucket.ref) for key, reader in readers.items()}

    public_access = dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    encryption = {"SSEAlgorithm": "AES256"}
    ownership = {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    properties = {
        "BucketName": "b-1",
        "AccessControl": "LogDeliveryWrite",
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": encryption}
            ]
        },
        "LifecycleConfiguration": {
            "Rules": [
                {"Id": "a", "Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
                {"Id": "b", "Status": "Enabled", "Prefix": "tmp/", "ExpirationInDays": 3},
            ]
        },
        "LoggingConfiguration": {"LogFilePrefix": "log/"},
        "OwnershipControls": ownership,
        "PublicAccessBlockConfiguration": public_access,
        "Tags": tags(Name="a"),
        "VersioningConfiguration": {"Status": "Enabled"},
    }
    made = {
        "BucketEncryption": {
            "Rules": [{"BucketKeyEnabled": True, "ApplyServerSideEncryptionByDefault": encryption}],
        },
        "LifecycleConfiguration": [
            {
                "ID": "a",
                "Status": "Enabled",
                "Filter": {"Prefix": ""},
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
            },
            {"ID": "b", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}},
        ],
        "LoggingConfiguration": {"TargetBucket": "b-1", "TargetPrefix": "log/"},
        "OwnershipControls": ownership,
        "PublicAccessBlockConfiguration": public_access,
        "Tags": tags(Name="a"),
        "VersioningConfiguration": "Enabled",
    }
    return Case(
        properties=properties,
        look=look,
        made=made,
        changes=dict.fromkeys(made),
        changed={**dict.fromkeys(made), "VersioningConfiguration": "Suspended"},
        attributes={"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName", "WebsiteURL"},
    )


@case("AWS::S3::BucketPolicy")
def _bucket_policy(account: Account) -> Case:
    bucket = account.create("AWS::S3::Bucket")

    def look(_: Resource) -> Any:
        return json.loads(account.client("s3").get_bucket_policy(Bucket=bucket.ref)["Policy"])

    return Case(
        properties={"Bucket": bucket.ref, "PolicyDocument": PUBLIC_READ},
        look=look,
        made=PUBLIC_READ,
        changes={"PolicyDocument": PUBLIC_LIST},
        changed=PUBLIC_LIST,
        attributes={"Bucket"},
    )


@case("Custom::S3AutoDeleteObjects")
def _auto_delete_objects(account: Account) -> Case:
    s3 = account.client("s3")
    tag = tags(**{"aws-cdk:auto-delete-objects": "true"})
    versioning = {"Status": "Enabled"}
    bucket = account.create("AWS::S3::Bucket", Tags=tag, VersioningConfiguration=versioning).ref
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    s3.delete_object(Bucket=bucket, Key="k")

    def look(_: Resource) -> Any:
        found = s3.list_object_versions(Bucket=bucket)
        return [each["Key"] for each in (*found.get("Versions", []), *found.get("DeleteMarkers", []))]

    return Case(
        properties={"ServiceToken": account.function()["Arn"], "BucketName": bucket},
        look=look,
        made=["k", "k"],
        changes={},
        changed=["k", "k"],
        attributes=set(),
    )


@case("AWS::DLM::LifecyclePolicy")
def _lifecycle_policy(account: Account) -> Case:
    def details(hours: int) -> dict[str, Any]:
        rule = {"Interval": hours, "IntervalUnit": "HOURS"}
        schedule = {"Name": "a", "CopyTags": True, "CreateRule": rule, "RetainRule": {"Count": 7}}
        return {"ResourceTypes": ["VOLUME"], "TargetTags": tags(of="a"), "Schedules": [schedule]}

    def look(policy: Resource) -> Any:
        found = account.client("dlm").get_lifecycle_policy(PolicyId=policy.ref)["Policy"]
        return found["State"], found["PolicyDetails"]["Schedules"][0]["CreateRule"]["Interval"], found["Tags"]

    return Case(
        properties={
            "Description": "a",
            "ExecutionRoleArn": account.role()["Arn"],
            "State": "ENABLED",
            "PolicyDetails": details(24),
            "Tags": tags(Name="a", old="x"),
        },
        look=look,
        made=("ENABLED", 24, {"Name": "a", "old": "x"}),
        changes={"PolicyDetails": details(12), "State": "DISABLED", "Tags": tags(Name="b")},
        changed=("DISABLED", 12, {"Name": "b"}),
        attributes={"Arn", "Id"},
    )
