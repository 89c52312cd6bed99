"""Rules of Amazon FSx for Lustre, and of mounting it with AWS ParallelCluster, that can be checked offline."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from ultracluster.domain.faults import Fault

DeploymentType = Literal["SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2"]
Compression = Literal["LZ4", "NONE"]
FileEvent = Literal["NEW", "CHANGED", "DELETED"]

VERSION = "2.15"
"""Lustre version of every file system: the one AWS recommends for new ones, and that metadata modes need."""

PORTS = ((988, 988), (1018, 1023))
"""TCP port ranges between clients and servers
(https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html)."""

SECURITY_GROUP_DESCRIPTION = "FSx for Lustre: the file system and its clients"

MAX_REPOSITORIES = 8

# https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html
_THROUGHPUTS: dict[DeploymentType, tuple[int, ...]] = {
    "SCRATCH_2": (),
    "PERSISTENT_1": (50, 100, 200),
    "PERSISTENT_2": (125, 250, 500, 1000),
}
_SMALLEST_GIB = 1200
_STEP_GIB = 2400
_MOST_METADATA_IOPS = 192_000
_METADATA_IOPS = (1500, 3000, 6000, *range(12_000, _MOST_METADATA_IOPS + 1, 12_000))
_INCLUDED_METADATA_IOPS = ((1200, 1500), (2400, 3000), (9600, 6000))
"""Largest capacity in GiB, and the metadata IOPS that come with it."""
_EVENTS: tuple[FileEvent, ...] = ("NEW", "CHANGED", "DELETED")
_MAX_BACKUP_DAYS = 90

_KMS_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+")
_PATH = re.compile(r"(/[A-Za-z0-9._+=@-]+)+")
_PREFIX = re.compile(r"([^/\x00-\x1f\x7f\x85\u2028\u2029]+/)*[^/\x00-\x1f\x7f\x85\u2028\u2029]+/?")

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(
    r"(?!xn--|sthree-|amzn-s3-demo-)(?!\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)(?!.*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$)"
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
)

# aws-parallelcluster 3.16.1 pcluster/validators/cluster_validators.py, SharedStorageMountDirValidator
_RESERVED_MOUNT_DIRS = frozenset(
    {
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib64",
        "/media",
        "/mnt",
        "/opt",
        "/opt/parallelcluster",
        "/opt/parallelcluster/shared",
        "/opt/parallelcluster/shared_login_nodes",
        "/opt/slurm",
        "/opt/intel",
        "/proc",
        "/root",
        "/run",
        "/sbin",
        "/srv",
        "/sys",
        "/tmp",  # noqa: S108 a name, not a file
        "/usr",
        "/var",
    }
)
_HOME = "/home"
# aws-parallelcluster 3.16.1 pcluster/constants.py, DEFAULT_EPHEMERAL_DIR
_SCRATCH = "/scratch"


@dataclass(frozen=True)
class LustreSpec:
    """A file system on SSD storage, and where the cluster mounts it.

    Attributes:
        deployment_type: Changing it makes a new file system.
        capacity_gib: 1200, 2400 or a multiple of 2400; can grow in place.
        throughput_mbps_per_tib: MB/s per TiB of a persistent type, None for scratch. FSx changes it in place,
            CloudFormation makes a new file system.
        compression: Can change in place.
        metadata_iops: Provisioned number, None for automatic; PERSISTENT_2 only; at least what comes with the
            capacity. Can grow in place, before the capacity (``growth_fault``).
        backup_retention_days: 0 for no automatic backups, at most 90; can change in place.
        kms_key_arn: None for the key that FSx manages; persistent types only. Changing it makes a new file system.
        mount_dir: Directory on every node of the cluster.
    """

    deployment_type: DeploymentType
    capacity_gib: int
    throughput_mbps_per_tib: int | None
    compression: Compression
    metadata_iops: int | None
    backup_retention_days: int
    kms_key_arn: str | None
    mount_dir: str

    @property
    def persistent(self) -> bool:
        """Whether the data outlives a failed file server."""
        return self.deployment_type != "SCRATCH_2"


@dataclass(frozen=True)
class DataRepository:
    """A directory of the file system linked to a prefix of an S3 bucket (a data repository association).

    Attributes:
        path: Directory in the file system, or ``/`` for all of it.
        bucket: None for the bucket that is created with the file system.
        prefix: Key prefix without a leading slash; empty for the whole bucket.
        import_events: Events in S3 that are brought into the file system by themselves.
        export_events: Events in the file system that are carried to S3 by themselves.
    """

    path: str
    bucket: str | None
    prefix: str
    import_events: tuple[FileEvent, ...]
    export_events: tuple[FileEvent, ...]


def overlap(one: str, other: str) -> bool:
    """Return whether two directories are the same, or one lies in the other."""
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def included_metadata_iops(capacity_gib: int) -> int:
    """Return the metadata IOPS that come with a capacity of PERSISTENT_2, and that automatic mode gives.

    AWS's table has 1500 for 1200 GiB, 3000 for 2400, 6000 for 4800 to 9600, 12000 for 12000 to 45600, and from 48000 on
    12000 for each 24000 GiB, to which the range before rounds down, too; 192000 is the most there is
    (https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html#dne-metadata-performance).
    """
    for largest_gib, iops in _INCLUDED_METADATA_IOPS:
        if capacity_gib <= largest_gib:
            return iops
    return min(12_000 * max(1, capacity_gib // 24_000), _MOST_METADATA_IOPS)


def growth_fault(capacity_gib: tuple[int, int], metadata_iops: tuple[int | None, int | None]) -> str | None:
    """Return why FSx would refuse to change capacity and metadata IOPS of PERSISTENT_2 at once, and what it takes.

    FSx wants the IOPS of the new capacity before it grows, and refuses one request for both, as the first version of
    Terraform's provider sent it; CloudFormation's way is assumed to be the same
    (https://github.com/hashicorp/terraform-provider-aws/issues/44432,
    https://github.com/hashicorp/terraform-provider-aws/pull/44456).

    Args:
        capacity_gib: Before and after.
        metadata_iops: Before and after; None for automatic.
    """
    needed = included_metadata_iops(capacity_gib[1])
    has = metadata_iops[0] or included_metadata_iops(capacity_gib[0])
    if capacity_gib[1] <= capacity_gib[0] or metadata_iops[0] == metadata_iops[1] or has >= needed:
        return None
    return f"{capacity_gib[1]} GiB need {needed} metadata IOPS first, and the file system has {has}"


def faults(spec: LustreSpec) -> list[Fault]:
    """Return what FSx for Lustre or ParallelCluster would refuse, with paths relative to ``spec``."""
    return [
        *_capacity_faults(spec),
        *_performance_faults(spec),
        *_protection_faults(spec),
        *_mount_dir_faults(spec.mount_dir),
    ]


def mount_point_faults(path: tuple[str | int, ...], directory: str, *, example: str) -> list[Fault]:
    """Return why nothing may be mounted on a directory of a node."""
    if not _is_plain_path(directory):
        return [Fault(path, directory, f"an absolute path such as {example}", "a mount point")]
    if directory in _RESERVED_MOUNT_DIRS:
        return [Fault(path, directory, f"another directory, such as {example}", "ParallelCluster reserves it")]
    if overlap(directory, _HOME):
        return [Fault(path, directory, "a directory outside /home", "the head node exports /home")]
    return []


def repository_faults(spec: LustreSpec, repositories: Sequence[DataRepository]) -> list[Fault]:
    """Return what FSx would refuse in the links to S3.

    Paths are relative to the object that holds ``data_repositories`` and ``file_system``.
    """
    found: list[Fault] = []
    if len(repositories) > MAX_REPOSITORIES:
        found.append(
            Fault(
                path=("data_repositories",),
                got=len(repositories),
                allowed=f"at most {MAX_REPOSITORIES}",
                reason="the number of data repository associations of one file system",
            )
        )
    if repositories and spec.backup_retention_days:
        found.append(
            Fault(
                path=("file_system", "backup_retention_days"),
                got=spec.backup_retention_days,
                allowed="0 with data repositories",
                reason="FSx takes no backups of a file system that is linked to S3",
            )
        )
    for index, repository in enumerate(repositories):
        found += _repository_faults(("data_repositories", index), repository)
    for (_, first), (index, second) in combinations(enumerate(repositories), 2):
        found += _pair_faults(("data_repositories", index), first, second)
    return found


def shared_storage_name(spec: LustreSpec, *, stack_name: str, subnet: Sequence[str]) -> str:
    """Return the ``Name`` under which ParallelCluster mounts the file system.

    ParallelCluster refuses an update that puts another file system under the same ``Name``, and takes one that
    changes both; it also fails on another mount directory under the same ``Name``. The name is therefore another one
    with another mount directory, and whenever CloudFormation would make a new file system: its type,
    key, throughput, Lustre version, subnet or security group changes
    (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-fsx-filesystem.html).

    Args:
        spec: The file system.
        stack_name: Stack of the file system.
        subnet: Whatever makes the subnet and its VPC another one: their CIDRs and the zone id, or their ids.

    Returns:
        16 characters; ParallelCluster takes up to 30 (aws-parallelcluster 3.16.1
        pcluster/validators/cluster_validators.py, SharedStorageNameValidator).
    """
    identity = [
        stack_name,
        list(subnet),
        SECURITY_GROUP_DESCRIPTION,
        VERSION,
        spec.deployment_type,
        spec.kms_key_arn,
        spec.throughput_mbps_per_tib,
        spec.mount_dir,
    ]
    return f"fsx-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]}"


def _capacity_faults(spec: LustreSpec) -> list[Fault]:
    capacity = spec.capacity_gib
    if capacity == _SMALLEST_GIB or (capacity > 0 and capacity % _STEP_GIB == 0):
        return []
    return [
        Fault(
            path=("capacity_gib",),
            got=capacity,
            allowed=f"{_SMALLEST_GIB}, {_STEP_GIB} or a multiple of {_STEP_GIB}",
            reason="the sizes FSx for Lustre offers on SSD",
        )
    ]


def _performance_faults(spec: LustreSpec) -> list[Fault]:
    if spec.deployment_type not in _THROUGHPUTS:
        return [
            Fault(
                path=("deployment_type",),
                got=spec.deployment_type,
                allowed=_one_of(_THROUGHPUTS),
                reason="the types of FSx for Lustre on SSD that take data repository associations",
            )
        ]
    found: list[Fault] = []
    throughputs = _THROUGHPUTS[spec.deployment_type]
    if spec.throughput_mbps_per_tib not in (throughputs or (None,)):
        found.append(
            Fault(
                path=("throughput_mbps_per_tib",),
                got=spec.throughput_mbps_per_tib,
                allowed=_one_of(throughputs) if throughputs else "null",
                reason=f"the MB/s per TiB of {spec.deployment_type}" if throughputs else "SCRATCH_2 has a fixed one",
            )
        )
    if spec.metadata_iops is not None and spec.deployment_type != "PERSISTENT_2":
        found.append(
            Fault(
                path=("metadata_iops",),
                got=spec.metadata_iops,
                allowed=f"null with {spec.deployment_type}",
                reason="only PERSISTENT_2 has a metadata configuration",
            )
        )
    elif spec.metadata_iops is not None and spec.metadata_iops not in _METADATA_IOPS:
        found.append(
            Fault(
                path=("metadata_iops",),
                got=spec.metadata_iops,
                allowed="null (automatic), 1500, 3000, 6000, 12000 or a multiple of 12000 up to 192000",
                reason="the steps of provisioned metadata IOPS",
            )
        )
    elif spec.metadata_iops is not None and spec.metadata_iops < included_metadata_iops(spec.capacity_gib):
        found.append(
            Fault(
                path=("metadata_iops",),
                got=spec.metadata_iops,
                allowed=f"null (automatic), or at least {included_metadata_iops(spec.capacity_gib)}",
                reason=f"what comes with {spec.capacity_gib} GiB at no cost; FSx wants it of a file system that grows",
            )
        )
    if spec.compression not in ("LZ4", "NONE"):
        found.append(
            Fault(path=("compression",), got=spec.compression, allowed="LZ4 or NONE", reason="what FSx offers")
        )
    return found


def _protection_faults(spec: LustreSpec) -> list[Fault]:
    found: list[Fault] = []
    if not 0 <= spec.backup_retention_days <= _MAX_BACKUP_DAYS:
        found.append(
            Fault(
                path=("backup_retention_days",),
                got=spec.backup_retention_days,
                allowed=f"0 (off) to {_MAX_BACKUP_DAYS}",
                reason="how long FSx keeps automatic backups",
            )
        )
    elif spec.backup_retention_days and not spec.persistent:
        found.append(
            Fault(
                path=("backup_retention_days",),
                got=spec.backup_retention_days,
                allowed="0 with SCRATCH_2",
                reason="FSx backs up persistent file systems only",
            )
        )
    if spec.kms_key_arn is not None and not spec.persistent:
        found.append(
            Fault(
                path=("kms_key_arn",),
                got=spec.kms_key_arn,
                allowed="null with SCRATCH_2",
                reason="scratch file systems are encrypted with FSx's own key",
            )
        )
    elif spec.kms_key_arn is not None and not _KMS_KEY_ARN.fullmatch(spec.kms_key_arn):
        found.append(
            Fault(
                path=("kms_key_arn",),
                got=spec.kms_key_arn,
                allowed="null or arn:aws:kms:REGION:ACCOUNT:key/ID",
                reason="the ARN of a key, not of an alias",
            )
        )
    return found


def _mount_dir_faults(mount_dir: str) -> list[Fault]:
    path = ("mount_dir",)
    found = mount_point_faults(path, mount_dir, example="/fsx")
    if not found and overlap(mount_dir, _SCRATCH):
        return [Fault(path, mount_dir, "a directory outside /scratch", "nodes mount their own NVMe disks there")]
    return found


def _repository_faults(at: tuple[str | int, ...], repository: DataRepository) -> list[Fault]:
    found: list[Fault] = []
    if repository.path != "/" and not _is_plain_path(repository.path):
        found.append(
            Fault(
                path=(*at, "path"),
                got=repository.path,
                allowed="/ or an absolute path such as /data",
                reason="a directory of the file system",
            )
        )
    if repository.bucket is not None and not _BUCKET.fullmatch(repository.bucket):
        found.append(
            Fault(
                path=(*at, "bucket"),
                got=repository.bucket,
                allowed="null or the name of a general purpose bucket: 3 to 63 of a-z, 0-9, hyphen and dot",
                reason="Amazon S3's rules for bucket names",
            )
        )
    if repository.prefix and not _PREFIX.fullmatch(repository.prefix):
        found.append(
            Fault(
                path=(*at, "prefix"),
                got=repository.prefix,
                allowed="empty, or a prefix such as runs/2026 without leading or doubled slashes",
                reason="it follows s3://BUCKET/",
            )
        )
    for field, events in (("import_events", repository.import_events), ("export_events", repository.export_events)):
        if len(set(events)) != len(events) or not set(events) <= set(_EVENTS):
            found.append(
                Fault(
                    path=(*at, field),
                    got=list(events),
                    allowed="any of NEW, CHANGED, DELETED, each once",
                    reason="the file events that FSx knows",
                )
            )
    return found


def _pair_faults(at: tuple[str | int, ...], first: DataRepository, second: DataRepository) -> list[Fault]:
    found: list[Fault] = []
    if overlap(first.path, second.path):
        found.append(
            Fault(
                path=(*at, "path"),
                got=second.path,
                allowed=f"a directory neither above nor below {first.path}",
                reason="each directory can be linked once",
            )
        )
    if first.bucket == second.bucket and overlap(f"/{first.prefix}", f"/{second.prefix}"):
        found.append(
            Fault(
                path=(*at, "prefix"),
                got=second.prefix,
                allowed=f"a prefix neither above nor below {first.prefix!r} of the same bucket",
                reason="each prefix can be linked once",
            )
        )
    return found


def _is_plain_path(path: str) -> bool:
    return bool(_PATH.fullmatch(path)) and not {".", ".."} & set(path.split("/"))


def _one_of(values: Iterable[object]) -> str:
    *most, last = (str(value) for value in values)
    return f"{', '.join(most)} or {last}"
