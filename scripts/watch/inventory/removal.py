"""Tells whether leftovers exist, and deletes them, each type by the API of its service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from scripts.account import backups, databases, file_systems
from scripts.account.deployment import Deployment, filters
from scripts.account.file_systems import EFS, FSX
from scripts.account.resource_kinds import PREFIX, kind_of
from scripts.core.aws_errors import is_not_found, passes
from scripts.core.errors import OperationError
from scripts.watch.inventory.model import Leftover

_WITHOUT_BACKUP = {
    "OpenZFSConfiguration": {"SkipFinalBackup": True, "Options": ["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"]},
}
"""How FSx deletes a file system of OpenZFS without a last backup, which it takes unless told."""


class InUseError(Exception):
    """AWS has not deleted something yet: it is in use, is being deleted, or there were too many calls."""


def remove(deployment: Deployment, leftover: Leftover) -> None:
    """Delete a leftover, with all that is in it; one that does not exist any more is no error.

    Raises:
        InUseError: The same call may work some minutes later.
        OperationError: S3 refused to delete an object.
    """
    from botocore.exceptions import ClientError

    deployment.account.forget()  # what is there now decides
    try:
        _delete(deployment, leftover.type, leftover.id)
    except ClientError as error:
        if passes(str(error)):
            raise InUseError(str(error)) from error
        if not is_not_found(error):
            raise


def _delete(deployment: Deployment, resource_type: str, name: str) -> None:
    call = kind_of(resource_type).deleted
    if call is None:
        _DELETED[resource_type](deployment, name)
    else:
        getattr(deployment.account.client(call.service), call.operation)(**call.arguments(name))


def _instance(deployment: Deployment, name: str) -> None:
    ec2 = deployment.account.client("ec2")
    ec2.terminate_instances(InstanceIds=[name])
    [state] = _pages(ec2, "describe_instances", "Reservations[].Instances[].State.Name", InstanceIds=[name])
    if state != "terminated":
        raise InUseError(f"{name} is {state}")


def _file_system(deployment: Deployment, name: str) -> None:
    file_system = file_systems.get(deployment.account, FSX, name)
    if not file_system.is_deleting:
        how = _WITHOUT_BACKUP if file_system.type == "OPENZFS" else {}
        deployment.account.client("fsx").delete_file_system(FileSystemId=name, **how)
    raise InUseError(f"{name} is being deleted")


def _elastic_file_system(deployment: Deployment, name: str) -> None:
    account, efs = deployment.account, deployment.account.client("efs")
    file_system = file_systems.get(account, EFS, name)
    for each in file_systems.mount_targets(account, name):
        if each.state != "deleting":
            efs.delete_mount_target(MountTargetId=each.id)
    if not file_system.is_deleting:
        efs.delete_file_system(FileSystemId=name)
    raise InUseError(f"{name} is being deleted")


def _database(deployment: Deployment, name: str) -> None:
    rds = deployment.account.client("rds")
    database = databases.get(deployment.account, name)
    if database.is_protected:
        rds.modify_db_instance(DBInstanceIdentifier=name, DeletionProtection=False, ApplyImmediately=True)
    if not database.is_deleting:
        rds.delete_db_instance(DBInstanceIdentifier=name, SkipFinalSnapshot=True)
    raise InUseError(f"{name} is being deleted")


def empty(deployment: Deployment, bucket: str, prefix: str = "") -> None:
    """Delete every version of every object below a prefix, 1,000 in each call."""
    s3 = deployment.account.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        listed = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        objects = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in listed]
        if objects:
            answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
            if refused := answer.get("Errors"):
                raise OperationError(f"s3://{bucket}/{refused[0]['Key']}: {refused[0]['Message']}")


def _prefix(deployment: Deployment, name: str) -> None:
    bucket, _, prefix = name.removeprefix("s3://").partition("/")
    empty(deployment, bucket, prefix)


def _bucket(deployment: Deployment, name: str) -> None:
    empty(deployment, name)
    deployment.account.client("s3").delete_bucket(Bucket=name)


def free_group(deployment: Deployment, name: str) -> None:
    """Delete the detached network interfaces in a security group: while there are some, EC2 does not delete it.

    https://docs.aws.amazon.com/vpc/latest/userguide/deleting-security-groups.html
    """
    ec2 = deployment.account.client("ec2")
    detached = filters({"group-id": [name], "status": ["available"]})
    interfaces = "NetworkInterfaces[].NetworkInterfaceId"
    for each in _pages(ec2, "describe_network_interfaces", interfaces, Filters=detached):
        ec2.delete_network_interface(NetworkInterfaceId=each)


def _security_group(deployment: Deployment, name: str) -> None:
    """Delete a security group, after its rules: EC2 deletes no group that another one's rule names."""
    ec2 = deployment.account.client("ec2")
    [described] = ec2.describe_security_groups(GroupIds=[name])["SecurityGroups"]
    for key, revoke in (
        ("IpPermissions", ec2.revoke_security_group_ingress),
        ("IpPermissionsEgress", ec2.revoke_security_group_egress),
    ):
        if named := [each for each in described[key] if each["UserIdGroupPairs"]]:
            revoke(GroupId=name, IpPermissions=named)
    ec2.delete_security_group(GroupId=name)


def free_role(deployment: Deployment, name: str) -> None:
    """Detach a role's policies and instance profiles: while it has some, IAM does not delete it.

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


def _role(deployment: Deployment, name: str) -> None:
    free_role(deployment, name)
    deployment.account.client("iam").delete_role(RoleName=name)


def _profile(deployment: Deployment, name: str) -> None:
    iam = deployment.account.client("iam")
    for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
        iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
    iam.delete_instance_profile(InstanceProfileName=name)


def empty_zone(deployment: Deployment, name: str) -> None:
    """Delete the records of a hosted zone, but for those of the zone itself (NS, SOA), which go with it."""
    route53 = deployment.account.client("route53")
    records = list(_pages(route53, "list_resource_record_sets", "ResourceRecordSets[]", HostedZoneId=name))
    changes = [{"Action": "DELETE", "ResourceRecordSet": each} for each in records if each["Type"] not in ("NS", "SOA")]
    for first in range(0, len(changes), 1000):
        batch = {"Changes": changes[first : first + 1000]}
        route53.change_resource_record_sets(HostedZoneId=name, ChangeBatch=batch)


def _zone(deployment: Deployment, name: str) -> None:
    empty_zone(deployment, name)
    deployment.account.client("route53").delete_hosted_zone(Id=name)


def _log_group_exists(deployment: Deployment, name: str) -> bool:
    groups = deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=name)
    return name in [each["logGroupName"] for each in groups]


def _secret_exists(deployment: Deployment, name: str) -> bool:
    """Tell whether a secret exists that is not scheduled for deletion."""
    described = deployment.account.find("secretsmanager", "describe_secret", SecretId=name)
    return described is not None and "DeletedDate" not in described


_FOUND: dict[str, Callable[[Deployment, str], bool]] = {
    "AWS::Backup::BackupVault": lambda deployment, name: backups.has_vault(deployment.account, name),
    "AWS::Logs::LogGroup": _log_group_exists,
    "AWS::SecretsManager::Secret": _secret_exists,
}
"""Tells whether something exists, of those types of which a call alone does not."""


def exists(deployment: Deployment, resource_type: str, name: str) -> bool:
    """Tell whether something exists that a stack kept; of a type that no stack of ours keeps nothing does."""
    if own := _FOUND.get(resource_type):
        return own(deployment, name)
    call = kind_of(resource_type).found
    if call is None:
        return False
    return deployment.account.find(call.service, call.operation, **call.arguments(name)) is not None


def _pages(client: Any, operation: str, path: str, **arguments: Any) -> Iterator[Any]:
    return iter([*client.get_paginator(operation).paginate(**arguments).search(path)])


_DELETED: dict[str, Callable[[Deployment, str], None]] = {
    PREFIX: _prefix,
    "AWS::EC2::Instance": _instance,
    "AWS::EC2::SecurityGroup": _security_group,
    "AWS::EFS::FileSystem": _elastic_file_system,
    "AWS::FSx::FileSystem": _file_system,
    "AWS::IAM::InstanceProfile": _profile,
    "AWS::IAM::Role": _role,
    "AWS::RDS::DBInstance": _database,
    "AWS::Route53::HostedZone": _zone,
    "AWS::S3::Bucket": _bucket,
}
"""Deletes those of a type for which a call alone does not do it."""
