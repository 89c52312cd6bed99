"""Shared storage beside the file system of the deployment: what exists, and EBS volumes, made or existing.

Limits are those of aws-parallelcluster 3.16.1 (``schemas/cluster_schema.py``, ``config/cluster_config.py``,
``constants.py``).
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ultracluster.domain.cluster_configuration import Mount
from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import (
    FROM_SIZE,
    TOKENS,
    Directory,
    Existing,
    KmsKeyArn,
    OptionalGib,
    default,
    text,
)
from ultracluster.domain.violations import Violation, below

_PAGE = "https://docs.aws.amazon.com/parallelcluster/latest/ug/SharedStorage-v3.html"
Kind = Literal["efs", "fsx_lustre", "fsx_openzfs", "fsx_ontap", "ebs"]
KINDS: dict[Kind, Literal["FsxLustre", "FsxOpenZfs", "FsxOntap", "Efs", "Ebs"]] = {
    "efs": "Efs",
    "fsx_lustre": "FsxLustre",
    "fsx_openzfs": "FsxOpenZfs",
    "fsx_ontap": "FsxOntap",
    "ebs": "Ebs",
}
"""Fields of `SharedStorageSpec`, with what ParallelCluster calls them."""
MADE_GIB = 40
"""Size of an EBS volume of which none is said (constants.py, EBS_VOLUME_SIZE_DEFAULT)."""
MAX_EBS, MAX_EFS, MAX_FSX = 5, 20, 20
_FILE_SYSTEM = r"^fs-[0-9a-f]{8,17}$", "the id of a file system such as fs-0123456789abcdef0"
_VOLUME = r"^fsvol-[0-9a-f]{17}$", "the id of a volume such as fsvol-0123456789abcdef0"
FileSystemId = Annotated[str, text(*_FILE_SYSTEM), Existing("AWS::FSx::FileSystem"), TOKENS]
ElasticFileSystemId = Annotated[str, text(*_FILE_SYSTEM), Existing("AWS::EFS::FileSystem"), TOKENS]
OpenZfsVolumeId = Annotated[str, text(*_VOLUME), Existing("AWS::FSx::Volume"), TOKENS]
OntapVolumeId = Annotated[str, text(*_VOLUME), Existing("AWS::FSx::StorageVirtualMachine"), TOKENS]
AccessPointId = Annotated[
    str,
    text(r"^fsap-[0-9a-f]{8,17}$", "the id of an access point such as fsap-0123456789abcdef0"),
    Existing("AWS::EFS::AccessPoint"),
    TOKENS,
]
EbsVolumeId = Annotated[
    str,
    text(r"^vol-([0-9a-f]{8}|[0-9a-f]{17})$", "the id of a volume such as vol-0123456789abcdef0"),
    Existing("AWS::EC2::Volume"),
    TOKENS,
]
SnapshotId = Annotated[
    str,
    text(r"^snap-([0-9a-f]{8}|[0-9a-f]{17})$", "the id of a snapshot such as snap-0123456789abcdef0"),
    Existing("AWS::EC2::Snapshot"),
    TOKENS,
]
VolumeType = Literal["gp3", "gp2", "io1", "io2", "st1", "sc1"]
Retention = Literal["delete", "retain", "snapshot"]


class ElasticFileSystemSpec(Spec):
    """An Amazon EFS file system that exists, mounted with encryption."""

    aws: ClassVar = "SharedStorage.EfsSettings"

    file_system_id: Annotated[ElasticFileSystemId, Setting(Change.BY_KEY, ".FileSystemId")]
    """Its id. It has a mount target in each zone of nodes."""
    access_point_id: Annotated[AccessPointId | None, Setting(Change.BY_KEY, ".AccessPointId")] = None
    """Access point to mount by; None: none."""
    iam_authorization: Annotated[bool, Setting(Change.BY_KEY, ".IamAuthorization")] = False
    """Whether nodes mount it in their roles, which its policy must allow."""


class LustreMountSpec(Spec):
    """An FSx for Lustre file system that exists."""

    file_system_id: Annotated[FileSystemId, Setting(Change.BY_KEY, "SharedStorage.FsxLustreSettings.FileSystemId")]
    """Its id."""


class OpenZfsMountSpec(Spec):
    """A volume of FSx for OpenZFS that exists."""

    volume_id: Annotated[OpenZfsVolumeId, Setting(Change.BY_KEY, "SharedStorage.FsxOpenZfsSettings.VolumeId")]
    """Its id."""


class OntapMountSpec(Spec):
    """A volume of FSx for NetApp ONTAP that exists, mounted by NFS."""

    volume_id: Annotated[OntapVolumeId, Setting(Change.BY_KEY, "SharedStorage.FsxOntapSettings.VolumeId")]
    """Its id. It has a junction path."""


class EbsVolumeSpec(Spec):
    """An EBS volume of the head node, which nodes mount by NFS from there: for tools, not for data of training."""

    aws: ClassVar = "SharedStorage.EbsSettings"

    volume_id: Annotated[EbsVolumeId | None, Setting(Change.NEW_CLUSTER, ".VolumeId")] = None
    """A volume that exists, in the zone of the head node; None: one is made."""
    snapshot_id: Annotated[SnapshotId | None, Setting(Change.NEW_CLUSTER, ".SnapshotId")] = None
    """Snapshot that one is made of; None: it is empty."""
    size_gib: Annotated[OptionalGib, Field(ge=1, le=65_536), FROM_SIZE, Setting(Change.NEW_CLUSTER, ".Size")] = default(
        None
    )
    """Size of one that is made, of a snapshot that of the snapshot or more; None: 40 GiB."""
    type: Annotated[VolumeType, Setting(Change.NEW_CLUSTER, ".VolumeType")] = "gp3"
    """Type of one that is made."""
    iops: Annotated[int | None, Field(ge=100, le=256_000), Setting(Change.AT_ONCE, ".Iops")] = None
    """Operations a second of gp3, io1 and io2; None: 3,000 of gp3, 100 of io1 and io2."""
    throughput_mibps: Annotated[int | None, Field(ge=125, le=2000), Setting(Change.AT_ONCE, ".Throughput")] = None
    """MiB/s of gp3; None: 125."""
    kms_key_arn: Annotated[KmsKeyArn | None, Setting(Change.NEW_CLUSTER, ".KmsKeyId")] = None
    """Key that encrypts one that is made; None: the one that EBS manages. It is always encrypted."""
    retention: Annotated[Retention, Setting(Change.AT_ONCE, ".DeletionPolicy")] = "retain"
    """What happens to one that was made, when the cluster ends."""


class SharedStorageSpec(Spec):
    """Storage that all nodes mount, of one kind."""

    name: Annotated[
        str,
        text(r"^[A-Za-z][A-Za-z0-9-]{0,29}$", "1 to 30 letters, digits and -, a letter first"),
        Setting(Change.BY_KEY, "SharedStorage.Name"),
    ]
    """ParallelCluster's name of it. With another file system, or another directory, give another name."""
    mount_dir: Annotated[Directory, Setting(Change.BY_KEY, "SharedStorage.MountDir")]
    """Where all nodes mount it."""
    efs: Annotated[ElasticFileSystemSpec | None, Setting(Change.BY_KEY, page=_PAGE)] = None
    """An EFS file system; None: it is of another kind."""
    fsx_lustre: Annotated[LustreMountSpec | None, Setting(Change.BY_KEY, page=_PAGE)] = None
    """An FSx for Lustre file system; None: it is of another kind."""
    fsx_openzfs: Annotated[OpenZfsMountSpec | None, Setting(Change.BY_KEY, page=_PAGE)] = None
    """A volume of FSx for OpenZFS; None: it is of another kind."""
    fsx_ontap: Annotated[OntapMountSpec | None, Setting(Change.BY_KEY, page=_PAGE)] = None
    """A volume of FSx for NetApp ONTAP; None: it is of another kind."""
    ebs: Annotated[EbsVolumeSpec | None, Setting(Change.NO_LOGIN_NODES, page=_PAGE)] = None
    """An EBS volume of the head node; None: it is of another kind."""

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that it has; one, if it is right."""
        return [kind for kind in KINDS if getattr(self, kind) is not None]


def mount_of(storage: SharedStorageSpec) -> Mount:
    """Return what ParallelCluster is told of storage of one kind."""
    [kind] = storage.kinds
    spec: Spec = getattr(storage, kind)
    if storage.ebs is not None:
        return Mount("Ebs", storage.name, storage.mount_dir, storage.ebs.volume_id, ebs_settings(storage.ebs))
    keys = {str(each.key(type(spec))).rpartition(".")[2]: getattr(spec, name) for name, each in spec.declared()}
    file_system_id = keys.pop("FileSystemId", None) or keys.pop("VolumeId")
    further = {key: value for key, value in keys.items() if value}
    return Mount(KINDS[kind], storage.name, storage.mount_dir, file_system_id, further)


def ebs_settings(volume: EbsVolumeSpec) -> dict[str, Any]:
    """Return ParallelCluster's keys of a volume that is made; none: it exists."""
    if volume.volume_id is not None:
        return {}
    keys = {str(each.key(EbsVolumeSpec)).rpartition(".")[2]: getattr(volume, name) for name, each in volume.declared()}
    made = {key: value for key, value in keys.items() if value is not None}
    return {**made, "Encrypted": True, "DeletionPolicy": volume.retention.capitalize()}


def violations(storage: Sequence[SharedStorageSpec]) -> list[Violation]:
    """Return what ParallelCluster or EBS refuses, but for names and directories, which are checked with all others."""
    return [
        *below((), *(below((index,), _of_one(each)) for index, each in enumerate(storage))),
        *below((), _counts(storage)),
    ]


def _of_one(storage: SharedStorageSpec) -> Iterator[Violation]:
    kinds = storage.kinds
    if len(kinds) != 1:
        yield Violation((), kinds, f"one of {', '.join(KINDS)}", "it is storage of one kind")
    if storage.ebs is not None:
        yield from below(("ebs",), ebs_violations(storage.ebs))


def ebs_violations(volume: EbsVolumeSpec) -> Iterator[Violation]:
    """Yield what EBS or ParallelCluster refuses of a volume."""
    made = {"snapshot_id", "size_gib", "type", "iops", "throughput_mibps", "kms_key_arn", "retention"}
    if volume.volume_id is not None:
        for field in sorted(made & volume.changed().keys()):
            yield volume.violation(field, "leave it out with volume_id", "an existing volume is not changed")
        return
    if volume.snapshot_id is not None and volume.size_gib is None:
        reason = "ParallelCluster makes 40 GiB otherwise, and a volume is not smaller than its snapshot"
        yield volume.violation("size_gib", "the size of the snapshot, or more", reason)
    if volume.iops is not None and volume.type not in ("gp3", "io1", "io2"):
        yield volume.violation("iops", "null", f"{volume.type} has no such choice")
    if volume.throughput_mibps is not None and volume.type != "gp3":
        yield volume.violation("throughput_mibps", "null", f"{volume.type} has no such choice")


def _counts(storage: Sequence[SharedStorageSpec]) -> Iterator[Violation]:
    for kinds, most, words in (
        (("ebs",), MAX_EBS, "EBS volumes"),
        (("efs",), MAX_EFS, "EFS file systems"),
        (("fsx_lustre", "fsx_openzfs", "fsx_ontap"), MAX_FSX - 1, "file systems of FSx beside that of the deployment"),
    ):
        number = sum(kind in each.kinds for each in storage for kind in kinds)
        if number > most:
            yield Violation((), number, f"at most {most} {words}", "limit of ParallelCluster")
