"""Amazon FSx for Lustre and OpenZFS: file systems, volumes, their links to buckets, and their backups."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from moto.core.exceptions import JsonRESTError
from moto.fsx.exceptions import FileSystemNotFound
from moto.fsx.models import Backup, FileSystem

from emulator.moto_patches.fsx_mounted import Mounted, chosen
from emulator.resources.model import NOT_EMULATED

_KINDS = ("OPENZFS", "WINDOWS", "ONTAP", "LUSTRE")
LUSTRE_PORT, NFS_PORT = 988, 2049

_METADATA_IOPS = ((1200, 1500), (2400, 3000), (9600, 6000))
"""Largest capacity in GiB, and the metadata IOPS that come with it; beyond, 12000 for each 24000 GiB, up to 192000.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html#dne-metadata-performance
"""


class Fsx(Mounted):
    """FSx whose file systems have a network interface per subnet, a mount name, a VPC and ids of AWS's length.

    They can be updated, linked to buckets, and backed up: a backup is an entry of a list, in which nothing is copied.
    OpenZFS has a root volume, and volumes in it.
    """

    def create_file_system(self) -> str:
        if self._get_param("FileSystemType") not in _KINDS:
            constraint = f"Member must satisfy enum value set: [{', '.join(_KINDS)}]"
            given = self._get_param("FileSystemType")
            message = f"1 validation error detected: Value '{given}' at 'fileSystemType' failed to satisfy constraint:"
            raise JsonRESTError("ValidationException", f"{message} {constraint}")
        self._check_network()
        short = json.loads(super().create_file_system())["FileSystem"]["FileSystemId"]
        file_system = self.fsx_backend.file_systems.pop(short)
        file_system.file_system_id = chosen(self._body) or f"fs-{uuid4().hex[:17]}"
        file_system.dns_name = file_system.dns_name.replace(short, file_system.file_system_id)
        arn = file_system.resource_arn.replace(short, file_system.file_system_id)
        self.fsx_backend.tagger.copy_tags(file_system.resource_arn, arn)
        file_system.resource_arn = arn
        vars(file_system)["version"] = self._body.get("FileSystemTypeVersion")
        self.fsx_backend.file_systems[file_system.file_system_id] = file_system
        ec2 = self._ec2_backend
        self._interfaces[file_system.file_system_id] = [
            ec2.create_network_interface(
                subnet_id,
                private_ip_address=[],
                group_ids=file_system.security_group_ids,
                description=f"Created By Amazon FSx for {file_system.file_system_id}",
            ).id
            for subnet_id in file_system.subnet_ids
        ]
        if file_system.file_system_type == "OPENZFS":
            options = file_system.open_zfs_configuration or {}
            root = self._add_volume(
                file_system.file_system_id, "fsx", "/fsx", options.get("RootVolumeConfiguration", {})
            )
            file_system.open_zfs_configuration = {**options, "RootVolumeId": root["VolumeId"]}
        return json.dumps({"FileSystem": self._described(file_system)})

    def describe_file_systems(self) -> str:
        for file_system_id in self._body.get("FileSystemIds") or []:
            self._file_system(file_system_id)
        answer = json.loads(super().describe_file_systems())
        answer["FileSystems"] = [
            self._described(self._file_system(each["FileSystemId"])) for each in answer["FileSystems"]
        ]
        return json.dumps(answer)

    def update_file_system(self) -> str:
        file_system = self._file_system(self._body["FileSystemId"])
        changes = self._body.get("LustreConfiguration", {})
        if metadata := (file_system.lustre_configuration or {}).get("MetadataConfiguration"):
            self._check_metadata(metadata, file_system.storage_capacity)
        if capacity := self._body.get("StorageCapacity"):
            if capacity <= file_system.storage_capacity:
                raise JsonRESTError(
                    "BadRequest",
                    f"The storage capacity can only be increased. Current storage capacity: "
                    f"{file_system.storage_capacity} GiB, requested: {capacity} GiB.",
                )
            if file_system.file_system_type == "OPENZFS" and capacity * 10 < file_system.storage_capacity * 11:
                # https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystem.html, without the message
                message = f"The storage capacity must be at least 10 percent more than {file_system.storage_capacity}."
                raise JsonRESTError("BadRequest", message)
            file_system.storage_capacity = capacity
        if version := self._body.get("FileSystemTypeVersion"):
            vars(file_system)["version"] = version
        file_system.lustre_configuration = {**(file_system.lustre_configuration or {}), **changes}
        if openzfs := self._body.get("OpenZFSConfiguration"):
            file_system.open_zfs_configuration = {**(file_system.open_zfs_configuration or {}), **openzfs}
        vars(file_system).setdefault("actions", []).insert(0, self._action())
        return json.dumps({"FileSystem": self._described(file_system)})

    def _action(self) -> dict[str, Any]:
        """Return the record of an update: https://docs.aws.amazon.com/fsx/latest/APIReference/API_AdministrativeAction.html."""
        wanted = {key: value for key, value in self._body.items() if key not in ("ClientRequestToken", "FileSystemId")}
        return {
            "AdministrativeActionType": "FILE_SYSTEM_UPDATE",
            "ProgressPercent": 100,
            "RequestTime": time.time(),
            "Status": "COMPLETED",
            "TargetFileSystemValues": wanted,
        }

    def delete_file_system(self) -> str:
        """Take a final backup, if that is asked for.

        https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystemLustreConfiguration.html
        """
        file_system_id = self._body["FileSystemId"]
        volumes = [each for each in self._volumes.values() if each["FileSystemId"] == file_system_id]
        openzfs = self._body.get("OpenZFSConfiguration", {})
        if len(volumes) > 1 and "DELETE_CHILD_VOLUMES_AND_SNAPSHOTS" not in openzfs.get("Options", []):
            raise JsonRESTError("BadRequest", f"File system {file_system_id} has child volumes.")
        options = self._body.get("LustreConfiguration", {})
        response = {}
        if not options.get("SkipFinalBackup", True):
            tags = options.get("FinalBackupTags", [])
            final = self._back_up(file_system_id, {"Tags": tags})
            response = {"FinalBackupId": final.backup_id, "FinalBackupTags": tags}
        if volumes and not openzfs.get("SkipFinalBackup", False):  # unlike that of Lustre
            self._back_up(file_system_id, {"Tags": openzfs.get("FinalBackupTags", [])})
        super().delete_file_system()
        for volume in volumes:
            del self._volumes[volume["VolumeId"]]
        for interface_id in self._interfaces.pop(file_system_id):
            self._ec2_backend.delete_network_interface(interface_id)
        for association in list(self._associations_of(file_system_id)):
            del self._associations[association["AssociationId"]]
        return json.dumps({"FileSystemId": file_system_id, "Lifecycle": "DELETING", "LustreResponse": response})

    # Volumes of OpenZFS

    def create_volume(self) -> str:
        options = self._body.get("OpenZFSConfiguration")
        if options is None and self._body.get("OntapConfiguration") is not None:
            volume = self.of_ontap()
            self._volumes[volume["VolumeId"]] = volume
            return json.dumps({"Volume": self._described_volume(volume)})
        if options is None:
            raise JsonRESTError("BadRequest", NOT_EMULATED.format(f"volumes of {self._body['VolumeType']}"))
        parent = self._volume(options["ParentVolumeId"])
        path = f"{parent['OpenZFSConfiguration']['VolumePath']}/{self._body['Name']}"
        volume = self._add_volume(parent["FileSystemId"], self._body["Name"], path, options, chosen(self._body))
        self.fsx_backend.tagger.tag_resource(volume["ResourceARN"], self._body.get("Tags", []))
        return json.dumps({"Volume": self._described_volume(volume)})

    def describe_volumes(self) -> str:
        wanted = self._body.get("VolumeIds")
        volumes = [self._volume(each) for each in wanted] if wanted else list(self._volumes.values())
        for condition in self._body.get("Filters", []):
            if condition.get("Name") != "file-system-id":
                raise JsonRESTError("BadRequest", f"Invalid filter: {condition.get('Name')}")
            volumes = [each for each in volumes if each["FileSystemId"] in condition.get("Values", [])]
        return json.dumps({"Volumes": [self._described_volume(each) for each in volumes]})

    def update_volume(self) -> str:
        volume = self._volume(self._body["VolumeId"])
        volume["Name"] = self._body.get("Name", volume["Name"])
        volume["OpenZFSConfiguration"] |= self._body.get("OpenZFSConfiguration", {})
        return json.dumps({"Volume": self._described_volume(volume)})

    def delete_volume(self) -> str:
        volume = self._volume(self._body["VolumeId"])
        del self._volumes[volume["VolumeId"]]
        return json.dumps({"VolumeId": volume["VolumeId"], "Lifecycle": "DELETING"})

    # Backups

    def create_backup(self) -> str:
        if "FileSystemId" not in self._body:
            raise JsonRESTError("BadRequest", NOT_EMULATED.format("CreateBackup without FileSystemId"))
        return json.dumps({"Backup": self._described_backup(self._back_up(self._body["FileSystemId"], self._body))})

    def describe_backups(self) -> str:
        """Tell of backups; a new one is still being created when it is looked at first."""
        wanted = self._body.get("BackupIds")
        backups = [self._backup(each) for each in wanted] if wanted else list(self.fsx_backend.backups.values())
        for condition in self._body.get("Filters", []):
            wanted_values = condition.get("Values", [])
            backups = [each for each in backups if _filtered(each, condition.get("Name", "")) in wanted_values]
        described = [self._described_backup(each) for each in backups]
        for each in backups:
            each.lifecycle = "AVAILABLE"  # for who looks again
        return json.dumps({"Backups": described})

    def delete_backup(self) -> str:
        backup = self._backup(self._body["BackupId"])
        if backup.lifecycle == "CREATING":
            raise JsonRESTError("BackupInProgress", "The backup is still being created.")
        del self.fsx_backend.backups[backup.backup_id]
        return json.dumps({"BackupId": backup.backup_id, "Lifecycle": "DELETED"})

    # Data repository associations

    def create_data_repository_association(self) -> str:
        file_system = self._file_system(self._body["FileSystemId"])
        association_id = f"dra-{uuid4().hex[:17]}"
        keys = ("BatchImportMetaDataOnCreate", "DataRepositoryPath", "FileSystemPath", "ImportedFileChunkSize", "S3")
        association: dict[str, Any] = {
            "AssociationId": association_id,
            "ResourceARN": f"arn:{self.partition}:fsx:{self.region}:{self.current_account}"
            f":association/{file_system.file_system_id}/{association_id}",
            "FileSystemId": file_system.file_system_id,
            "Lifecycle": "AVAILABLE",
            "CreationTime": time.time(),
            **{key: self._body[key] for key in keys if key in self._body},
        }
        self._associations[association_id] = association
        self.fsx_backend.tagger.tag_resource(association["ResourceARN"], self._body.get("Tags", []))
        return json.dumps({"Association": self._described_association(association)})

    def describe_data_repository_associations(self) -> str:
        wanted = self._body.get("AssociationIds")
        associations = [self._association(each) for each in wanted] if wanted else list(self._associations.values())
        for condition in self._body.get("Filters", []):
            if condition.get("Name") != "file-system-id":
                raise JsonRESTError("BadRequest", f"Invalid filter: {condition.get('Name')}")
            associations = [each for each in associations if each["FileSystemId"] in condition.get("Values", [])]
        return json.dumps({"Associations": [self._described_association(each) for each in associations]})

    def update_data_repository_association(self) -> str:
        association = self._association(self._body["AssociationId"])
        association |= {key: self._body[key] for key in ("ImportedFileChunkSize", "S3") if key in self._body}
        return json.dumps({"Association": self._described_association(association)})

    def delete_data_repository_association(self) -> str:
        association = self._association(self._body["AssociationId"])
        del self._associations[association["AssociationId"]]
        return json.dumps({"AssociationId": association["AssociationId"], "Lifecycle": "DELETING"})

    # Helpers

    def _check_metadata(self, now: dict[str, Any], capacity: int) -> None:
        """Refuse fewer metadata IOPS than there are, and growth that wants more of them first, even in one request.

        https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreMetadataConfiguration.html,
        https://github.com/hashicorp/terraform-provider-aws/issues/44432. The words of the messages are not public, but
        for the beginning of the last one.
        """
        has = now.get("Iops") or _included_metadata_iops(capacity)
        wanted = self._body.get("LustreConfiguration", {}).get("MetadataConfiguration")
        if wanted and (wanted.get("Iops") or _included_metadata_iops(capacity)) < has:
            raise JsonRESTError("BadRequest", f"Metadata IOPS can only be increased from {has}.")
        needed = _included_metadata_iops(self._body.get("StorageCapacity") or capacity)
        if needed > has and (wanted or now["Mode"] == "USER_PROVISIONED"):
            raise JsonRESTError(
                "BadRequest",
                f"Unable to increase the storage capacity: it requires at least {needed} Metadata IOPS, and the file "
                f"system has {has}.",
            )

    def _add_volume(
        self, file_system_id: str, name: str, path: str, options: dict[str, Any], chosen_id: str = ""
    ) -> dict[str, Any]:
        volume_id = chosen_id or f"fsvol-{uuid4().hex[:17]}"
        volume = {
            "VolumeId": volume_id,
            "VolumeType": "OPENZFS",
            "FileSystemId": file_system_id,
            "Name": name,
            "Lifecycle": "AVAILABLE",
            "CreationTime": time.time(),
            "ResourceARN": f"arn:{self.partition}:fsx:{self.region}:{self.current_account}"
            f":volume/{file_system_id}/{volume_id}",
            "OpenZFSConfiguration": {**options, "VolumePath": path},
        }
        self._volumes[volume_id] = volume
        return volume

    def _described_volume(self, volume: dict[str, Any]) -> dict[str, Any]:
        return {**volume, "Tags": self.fsx_backend.list_tags_for_resource(volume["ResourceARN"])}

    def _volume(self, volume_id: str) -> dict[str, Any]:
        if volume_id not in self._volumes:
            raise JsonRESTError("VolumeNotFound", f"Volume '{volume_id}' does not exist.")
        return self._volumes[volume_id]

    def _check_network(self) -> None:
        """Refuse groups that let no Lustre traffic in, or none of NFS.

        The code is documented (CreateFileSystem, InvalidNetworkSettings); the message is as users report it:
        https://github.com/kubernetes-sigs/aws-fsx-csi-driver/issues/32.
        """
        group_ids = self._body.get("SecurityGroupIds", [])
        groups = [self._ec2_backend.get_security_group_from_id(group_id) for group_id in group_ids]
        if None in groups:
            message = f"The security group ID '{group_ids[groups.index(None)]}' does not exist"
            raise JsonRESTError("InvalidNetworkSettings", message)
        if self._body["FileSystemType"] == "OPENZFS":
            if groups and not any(_lets_in(each, NFS_PORT) for each in groups):
                message = f"The security groups do not permit NFS traffic on port {NFS_PORT}"
                raise JsonRESTError("InvalidNetworkSettings", message)
        elif groups and not any(_lets_in(each, LUSTRE_PORT) for each in groups):
            raise JsonRESTError(
                "InvalidNetworkSettings",
                "The file system cannot be created because the default security group in the subnet provided or the "
                f"provided security groups do not permit Lustre LNET network traffic on port {LUSTRE_PORT}",
            )

    def _back_up(self, file_system_id: str, request: dict[str, Any]) -> Backup:
        """Start a backup.

        Refused as documented (https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateBackup.html), with the code
        of another refused kind (https://github.com/aws/aws-sdk/issues/183).
        """
        described = self._described(self._file_system(file_system_id))
        deployment_type = described.get("LustreConfiguration", {}).get("DeploymentType", "")
        linked = any(self._associations_of(file_system_id))
        if described["FileSystemType"] == "LUSTRE" and (linked or not deployment_type.startswith("PERSISTENT")):
            raise JsonRESTError(
                "UnsupportedOperation",
                "Backups are supported only for file systems with a Persistent deployment type that are not linked to "
                "a data repository.",
            )
        others = [each for each in self.fsx_backend.backups.values() if each.file_system_id == file_system_id]
        if any(each.lifecycle == "CREATING" for each in others):
            raise JsonRESTError("BackupInProgress", "Another backup is already under way.")
        backup = self.fsx_backend.create_backup(file_system_id, None, None, None)
        del self.fsx_backend.backups[backup.backup_id]
        backup.backup_id = f"backup-{uuid4().hex[:17]}"
        backup.resource_arn = f"{backup.resource_arn.rpartition('/')[0]}/{backup.backup_id}"
        vars(backup)["file_system"] = described
        self.fsx_backend.backups[backup.backup_id] = backup
        self.fsx_backend.tagger.tag_resource(backup.resource_arn, request.get("Tags", []))
        return backup

    def _backup(self, backup_id: str) -> Backup:
        if backup_id not in self.fsx_backend.backups:
            raise JsonRESTError("BackupNotFound", f"Backup '{backup_id}' does not exist.")
        return self.fsx_backend.backups[backup_id]

    def _described_backup(self, backup: Backup) -> dict[str, Any]:
        return {
            "BackupId": backup.backup_id,
            "Lifecycle": backup.lifecycle,
            "Type": "USER_INITIATED",
            "ProgressPercent": 100 if backup.lifecycle == "AVAILABLE" else 0,
            "CreationTime": backup.creation_time,
            "ResourceARN": backup.resource_arn,
            "Tags": self.fsx_backend.list_tags_for_resource(backup.resource_arn),
            "FileSystem": vars(backup)["file_system"],
            "OwnerId": self.current_account,
            "ResourceType": "FILE_SYSTEM",
        }

    def _described(self, file_system: FileSystem) -> dict[str, Any]:
        ec2 = self._ec2_backend
        described: dict[str, Any] = {
            **file_system.to_dict(),
            "OwnerId": self.current_account,
            "Lifecycle": "AVAILABLE",
            "VpcId": ec2.get_subnet(file_system.subnet_ids[0]).vpc_id,
            "NetworkInterfaceIds": self._interfaces[file_system.file_system_id],
        }
        if version := vars(file_system)["version"]:
            described["FileSystemTypeVersion"] = version
        if actions := vars(file_system).get("actions"):
            described["AdministrativeActions"] = actions
        if file_system.file_system_type == "LUSTRE":
            described["LustreConfiguration"] = {
                **(file_system.lustre_configuration or {}),
                "MountName": file_system.file_system_id[-8:],
            }
        return described

    def _described_association(self, association: dict[str, Any]) -> dict[str, Any]:
        return {**association, "Tags": self.fsx_backend.list_tags_for_resource(association["ResourceARN"])}

    def _file_system(self, file_system_id: str) -> FileSystem:
        if file_system_id not in self.fsx_backend.file_systems:
            raise FileSystemNotFound(file_system_id)
        return self.fsx_backend.file_systems[file_system_id]

    def _association(self, association_id: str) -> dict[str, Any]:
        if association_id not in self._associations:
            raise JsonRESTError(
                "DataRepositoryAssociationNotFound", f"Data repository association '{association_id}' does not exist."
            )
        return self._associations[association_id]

    def _associations_of(self, file_system_id: str) -> Iterator[dict[str, Any]]:
        return (each for each in self._associations.values() if each["FileSystemId"] == file_system_id)

    @property
    def _interfaces(self) -> dict[str, list[str]]:
        interfaces: dict[str, list[str]] = vars(self.fsx_backend).setdefault("network_interfaces", {})
        return interfaces

    @property
    def _volumes(self) -> dict[str, dict[str, Any]]:
        volumes: dict[str, dict[str, Any]] = vars(self.fsx_backend).setdefault("volumes", {})
        return volumes

    @property
    def _associations(self) -> dict[str, dict[str, Any]]:
        associations: dict[str, dict[str, Any]] = vars(self.fsx_backend).setdefault("associations", {})
        return associations


def _included_metadata_iops(capacity: int) -> int:
    larger = min(12_000 * max(1, capacity // 24_000), 192_000)
    return next((iops for largest, iops in _METADATA_IOPS if capacity <= largest), larger)


def _lets_in(group: Any, port: int) -> bool:
    return any(
        rule.ip_protocol == "-1" or (rule.ip_protocol == "tcp" and rule.from_port <= port <= rule.to_port)
        for rule in group.ingress_rules
    )


def _filtered(backup: Backup, name: str) -> str:
    """Return what a filter of DescribeBackups looks at."""
    file_system = vars(backup)["file_system"]
    values = {
        "file-system-id": backup.file_system_id,
        "backup-type": "USER_INITIATED",
        "file-system-type": file_system["FileSystemType"],
    }
    if name not in values:
        raise JsonRESTError("BadRequest", f"Invalid filter: {name}")
    return str(values[name])
