"""Amazon FSx and Amazon EFS."""

from __future__ import annotations

import json
from collections.abc import Mapping

from emulator.resources.api import Api
from emulator.resources.common import taken, without
from emulator.resources.model import Context, Model, Physical, Properties

_NESTED = ("LustreConfiguration", "OpenZFSConfiguration")
_ARN = {"ResourceARN": "ResourceARN"}


def _change_file_system(context: Context, physical: Physical, properties: Properties, changed: set[str]) -> None:
    request = taken(properties, changed - {"Tags"})
    for nested in set(_NESTED) & request.keys():
        old, new = context.previous.get(nested, {}), request[nested]
        request[nested] = {key: new[key] for key in new if new[key] != old.get(key)}
    if request:
        context.client("fsx").update_file_system(FileSystemId=physical.ref, **request)


def _change_volume(context: Context, physical: Physical, properties: Properties, changed: set[str]) -> None:
    request = taken(properties, changed - {"Tags"})
    if "OpenZFSConfiguration" in request:
        request["OpenZFSConfiguration"] = without(request["OpenZFSConfiguration"], "ParentVolumeId")
    if request:
        context.client("fsx").update_volume(VolumeId=physical.attributes["VolumeId"], **request)


def _elastic(properties: Properties) -> Properties:
    """Return the parameters that EFS makes a file system with."""
    backup = properties.get("BackupPolicy", {}).get("Status") == "ENABLED"
    return {**without(properties, "BackupPolicy"), "Backup": backup}


def _set_policy(context: Context, physical: Physical, old: Properties, properties: Properties) -> None:
    if not old and "FileSystemPolicy" in properties:
        policy = json.dumps(properties["FileSystemPolicy"])
        context.client("efs").put_file_system_policy(FileSystemId=physical.ref, Policy=policy)


def _create_mount_target(context: Context, request: Properties) -> Properties:
    made: Properties = context.client("efs").create_mount_target(**request)
    context.client("ec2").modify_network_interface_attribute(
        NetworkInterfaceId=made["NetworkInterfaceId"],
        Description={"Value": f"EFS mount target for {made['FileSystemId']} ({made['MountTargetId']})"},
    )
    return made


MODELS: Mapping[str, Model] = {
    "AWS::FSx::DataRepositoryAssociation": Api(
        "fsx",
        "data_repository_association",
        "AssociationId",
        _ARN,
        modification="update_data_repository_association",
        tagged="ResourceARN",
        mutable=("S3", "Tags"),
    ),
    "AWS::FSx::FileSystem": Api(
        "fsx",
        "file_system",
        attributes={**_ARN, "DNSName": "DNSName", "LustreMountName": "MountName", "RootVolumeId": "RootVolumeId"},
        modification=_change_file_system,
        tagged="ResourceARN",
        mutable=("FileSystemTypeVersion", "StorageCapacity", "Tags", *_NESTED),
    ),
    "AWS::FSx::Volume": Api(
        "fsx",
        "volume",
        "ResourceARN",
        {**_ARN, "VolumeId": "VolumeId"},
        id="VolumeId",
        modification=_change_volume,
        tagged="ResourceARN",
        mutable=("Name", "OpenZFSConfiguration", "Tags"),
    ),
    "AWS::EFS::FileSystem": Api(
        "efs",
        "file_system",
        attributes={"FileSystemId": "FileSystemId", "Arn": "FileSystemArn"},
        name=("CreationToken", 64),
        parameters=_elastic,
        later=("FileSystemPolicy",),
        configuration=_set_policy,
        tags="FileSystemTags",
        mutable=("FileSystemTags",),
    ),
    "AWS::EFS::MountTarget": Api("efs", "mount_target", creation=_create_mount_target),
}
