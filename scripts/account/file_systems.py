"""File systems as FSx and EFS have them, with their volumes, mount targets and links to S3: asked in one way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from scripts.account.deployment import Account, Deployment, filters
from scripts.core.aws_errors import if_found

FSX: Final = "AWS::FSx::FileSystem"
EFS: Final = "AWS::EFS::FileSystem"


@dataclass(frozen=True)
class FileSystem:
    """A file system; what its service does not tell is empty, 0 or None.

    Attributes:
        type: LUSTRE, OPENZFS or another one of FSx, or EFS.
        state: Its lifecycle, in capitals.
        capacity_gib: Its storage capacity; EFS grows by itself.
        used_bytes: What files take, in EFS.
        deployment_type: Such as PERSISTENT_2, in FSx.
        mbps_per_tib: Throughput of Lustre; None: that of its deployment type.
        metadata_iops: Of Lustre's metadata; None: those that come with its capacity, or none.
        mbps: Throughput of OpenZFS.
        vpc_id: Its VPC; EFS has one for each mount target.
        mount_targets: How many there are, in EFS.
    """

    id: str
    type: str
    state: str = "AVAILABLE"
    created: datetime | None = None
    capacity_gib: int = 0
    used_bytes: int = 0
    deployment_type: str = ""
    storage_type: str = "SSD"
    mbps_per_tib: int | None = None
    metadata_iops: int | None = None
    mbps: int = 0
    vpc_id: str = ""
    subnet_ids: tuple[str, ...] = ()
    interface_ids: tuple[str, ...] = ()
    mount_targets: int = 0
    arn: str = ""

    @property
    def is_deleting(self) -> bool:
        """Whether it is being deleted."""
        return self.state == "DELETING"


class Volume(NamedTuple):
    """A volume of FSx: OPENZFS or ONTAP, its lifecycle, its file system, and the path where OpenZFS exports it."""

    type: str
    state: str
    file_system_id: str
    path: str


class MountTarget(NamedTuple):
    """A mount target of EFS, with its lifecycle, such as available."""

    id: str
    state: str
    zone_id: str
    vpc_id: str


def of_fsx(account: Account) -> list[FileSystem]:
    """Return the file systems of FSx in the Region."""
    return [_of_fsx(each) for each in account.list("fsx", "describe_file_systems")]


def of_efs(account: Account) -> list[FileSystem]:
    """Return the file systems of EFS in the Region."""
    return [_of_efs(each) for each in account.list("efs", "describe_file_systems")]


def get(account: Account, kind: str, name: str) -> FileSystem:
    """Return the file system of an id: `kind` is FSX or EFS.

    Raises:
        botocore.exceptions.ClientError: It does not exist.
    """
    if kind == EFS:
        return _of_efs(account.ask("efs", "describe_file_systems", FileSystemId=name)["FileSystems"][0])
    return _of_fsx(account.ask("fsx", "describe_file_systems", FileSystemIds=[name])["FileSystems"][0])


def find(account: Account, kind: str, name: str) -> FileSystem | None:
    """Return the same; None: it does not exist."""
    return if_found(lambda: get(account, kind, name))


def lustre_id(deployment: Deployment) -> str:
    """Return the id of a deployment's Lustre file system; empty: its stack has none, or does not exist."""
    return deployment.outputs(deployment.stack_name("storage")).get("FileSystemId", "")


def volume(account: Account, name: str) -> Volume:
    """Return the volume of an id.

    Raises:
        botocore.exceptions.ClientError: It does not exist.
    """
    [described] = account.ask("fsx", "describe_volumes", VolumeIds=[name])["Volumes"]
    path = described.get("OpenZFSConfiguration", {}).get("VolumePath", "")
    return Volume(described["VolumeType"], described["Lifecycle"], described["FileSystemId"], path)


def mount_targets(account: Account, name: str) -> list[MountTarget]:
    """Return the mount targets of a file system of EFS.

    Raises:
        botocore.exceptions.ClientError: It does not exist.
    """
    return [
        MountTarget(each["MountTargetId"], each["LifeCycleState"], each["AvailabilityZoneId"], each["VpcId"])
        for each in account.ask("efs", "describe_mount_targets", FileSystemId=name)["MountTargets"]
    ]


def links(account: Account, name: str) -> frozenset[str]:
    """Return the ids of the associations of a Lustre file system with S3."""
    own = filters({"file-system-id": [name]})
    answer = account.ask("fsx", "describe_data_repository_associations", Filters=own)
    return frozenset(each["AssociationId"] for each in answer["Associations"])


def _of_fsx(described: Mapping[str, Any]) -> FileSystem:
    lustre, openzfs = described.get("LustreConfiguration", {}), described.get("OpenZFSConfiguration", {})
    return FileSystem(
        described["FileSystemId"],
        described["FileSystemType"],
        described["Lifecycle"],
        described.get("CreationTime"),
        described.get("StorageCapacity", 0),
        deployment_type=(lustre or openzfs).get("DeploymentType", ""),
        storage_type=described.get("StorageType", "SSD"),
        mbps_per_tib=lustre.get("PerUnitStorageThroughput"),
        metadata_iops=lustre.get("MetadataConfiguration", {}).get("Iops"),
        mbps=openzfs.get("ThroughputCapacity", 0),
        vpc_id=described.get("VpcId", ""),
        subnet_ids=tuple(described.get("SubnetIds", ())),
        interface_ids=tuple(described.get("NetworkInterfaceIds", ())),
        arn=described.get("ResourceARN", ""),
    )


def _of_efs(described: Mapping[str, Any]) -> FileSystem:
    return FileSystem(
        described["FileSystemId"],
        "EFS",
        described["LifeCycleState"].upper(),
        described["CreationTime"],
        used_bytes=described["SizeInBytes"]["Value"],
        mount_targets=described["NumberOfMountTargets"],
        arn=described.get("FileSystemArn", ""),
    )
