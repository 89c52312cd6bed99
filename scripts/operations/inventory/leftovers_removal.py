"""Removes what is left of a deployment (`scripts.operations.inventory.leftovers`), each type by its service's API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from scripts.deployment import Deployment
from scripts.operations.clock import Clock
from scripts.operations.command import OperationError
from scripts.operations.inventory.leftovers_model import EXISTS, PREFIX, Found

_LOOK, _LIMIT = 10.0, 1800.0
"""Seconds between two looks whether something is gone, and seconds to look at most."""


def remove(deployment: Deployment, found: Found, clock: Clock) -> None:
    """Remove one thing, with all that is in it.

    Raises:
        OperationError: It did not go in time.
        botocore.exceptions.ClientError: AWS refused it; the call is named in the message.
    """
    _REMOVERS[found.type](deployment, found.id, clock)


def terminate(deployment: Deployment, ids: list[str], clock: Clock) -> None:
    """Terminate instances and wait until they are gone; trn1 takes up to a quarter of an hour.

    1,000 in each call. Needs ec2:TerminateInstances and ec2:DescribeInstances.

    Raises:
        OperationError: Some are still there after 30 minutes.
    """
    ec2 = deployment.account.client("ec2")
    batches = [ids[first : first + 1000] for first in range(0, len(ids), 1000)]
    for batch in batches:
        ec2.terminate_instances(InstanceIds=batch)

    def gone() -> bool:
        pages = [ec2.describe_instances(InstanceIds=batch) for batch in batches]
        found = [each for page in pages for reservation in page["Reservations"] for each in reservation["Instances"]]
        return all(each["State"]["Name"] == "terminated" for each in found)

    if not clock.until(gone, every=_LOOK, limit=_LIMIT):
        raise OperationError(f"of {len(ids)} instances some have not terminated after {_LIMIT / 60:.0f} minutes")


def delete_file_system(deployment: Deployment, file_system_id: str, clock: Clock) -> None:
    """Delete a file system without a backup and wait until it is gone.

    Needs fsx:DeleteFileSystem and fsx:DescribeFileSystems.

    Raises:
        OperationError: It is still there after 30 minutes, or FSx could not delete it.
    """
    fsx = deployment.account.client("fsx")
    [found] = fsx.describe_file_systems(FileSystemIds=[file_system_id])["FileSystems"]
    if found["Lifecycle"] != "DELETING":
        fsx.delete_file_system(FileSystemId=file_system_id)

    def gone() -> bool:
        return not EXISTS["AWS::FSx::FileSystem"](deployment, file_system_id)

    if not clock.until(gone, every=_LOOK, limit=_LIMIT):
        raise OperationError(f"file system {file_system_id} is still there after {_LIMIT / 60:.0f} minutes")


def empty(deployment: Deployment, bucket: str, prefix: str = "") -> None:
    """Delete every version of every object below a prefix, 1,000 in each call.

    Needs s3:ListBucketVersions, s3:DeleteObject and s3:DeleteObjectVersion.

    Raises:
        OperationError: S3 refused to delete some.
    """
    s3 = deployment.account.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        listed = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        objects = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in listed]
        if objects:
            answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
            if refused := answer.get("Errors"):
                raise OperationError(f"s3://{bucket}/{refused[0]['Key']}: {refused[0]['Message']}")


def _instance(deployment: Deployment, name: str, clock: Clock) -> None:
    terminate(deployment, [name], clock)


def _prefix(deployment: Deployment, name: str, _clock: Clock) -> None:
    bucket, _, prefix = name.removeprefix("s3://").partition("/")
    empty(deployment, bucket, prefix)


def _bucket(deployment: Deployment, name: str, _clock: Clock) -> None:
    empty(deployment, name)
    deployment.account.client("s3").delete_bucket(Bucket=name)


def _role(deployment: Deployment, name: str, _clock: Clock) -> None:
    """Delete a role; IAM wants it without policies and in no instance profile.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteRole.html
    """
    iam = deployment.account.client("iam")
    for policy in _pages(iam, "list_attached_role_policies", "AttachedPolicies[].PolicyArn", RoleName=name):
        iam.detach_role_policy(RoleName=name, PolicyArn=policy)
    for policy in _pages(iam, "list_role_policies", "PolicyNames[]", RoleName=name):
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    profiles = "InstanceProfiles[].InstanceProfileName"
    for profile in _pages(iam, "list_instance_profiles_for_role", profiles, RoleName=name):
        iam.remove_role_from_instance_profile(InstanceProfileName=profile, RoleName=name)
    iam.delete_role(RoleName=name)


def _profile(deployment: Deployment, name: str, _clock: Clock) -> None:
    iam = deployment.account.client("iam")
    for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=name)


def _zone(deployment: Deployment, name: str, _clock: Clock) -> None:
    """Delete a hosted zone with its records; those of the zone itself (NS, SOA) go with it."""
    route53 = deployment.account.client("route53")
    records = list(_pages(route53, "list_resource_record_sets", "ResourceRecordSets[]", HostedZoneId=name))
    changes = [{"Action": "DELETE", "ResourceRecordSet": each} for each in records if each["Type"] not in ("NS", "SOA")]
    for first in range(0, len(changes), 1000):
        batch = {"Changes": changes[first : first + 1000]}
        route53.change_resource_record_sets(HostedZoneId=name, ChangeBatch=batch)
    route53.delete_hosted_zone(Id=name)


def _pages(client: Any, operation: str, path: str, **arguments: str) -> Iterator[Any]:
    return iter([*client.get_paginator(operation).paginate(**arguments).search(path)])


def _call(service: str, operation: str, parameter: str) -> Callable[[Deployment, str, Clock], None]:
    def remover(deployment: Deployment, name: str, _clock: Clock) -> None:
        getattr(deployment.account.client(service), operation)(**{parameter: name})

    return remover


_REMOVERS: dict[str, Callable[[Deployment, str, Clock], None]] = {
    PREFIX: _prefix,
    "AWS::DynamoDB::Table": _call("dynamodb", "delete_table", "TableName"),
    "AWS::EC2::Instance": _instance,
    "AWS::EC2::LaunchTemplate": _call("ec2", "delete_launch_template", "LaunchTemplateId"),
    "AWS::EC2::NetworkInterface": _call("ec2", "delete_network_interface", "NetworkInterfaceId"),
    "AWS::EC2::PlacementGroup": _call("ec2", "delete_placement_group", "GroupName"),
    "AWS::EC2::SecurityGroup": _call("ec2", "delete_security_group", "GroupId"),
    "AWS::EC2::Volume": _call("ec2", "delete_volume", "VolumeId"),
    "AWS::FSx::FileSystem": delete_file_system,
    "AWS::IAM::InstanceProfile": _profile,
    "AWS::IAM::Role": _role,
    "AWS::Lambda::Function": _call("lambda", "delete_function", "FunctionName"),
    "AWS::Logs::LogGroup": _call("logs", "delete_log_group", "logGroupName"),
    "AWS::Route53::HostedZone": _zone,
    "AWS::S3::Bucket": _bucket,
    "AWS::SSM::Parameter": _call("ssm", "delete_parameter", "Name"),
}
