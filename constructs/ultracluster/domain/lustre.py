"""Rules of Amazon FSx for Lustre, and of mounting it with AWS ParallelCluster, that can be checked offline."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ultracluster.domain.spec import Change, Growth, Setting, Spec
from ultracluster.domain.types import (
    FEW,
    FROM_DAYS,
    FROM_SIZE,
    Directory,
    Existing,
    Gib,
    Items,
    KmsKeyArn,
    LogRetentionDays,
    Time,
    allowing,
    default,
)
from ultracluster.domain.violations import Path, Violation, below

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
THROUGHPUTS: dict[DeploymentType, tuple[int, ...]] = {
    "SCRATCH_2": (),
    "PERSISTENT_1": (50, 100, 200),
    "PERSISTENT_2": (125, 250, 500, 1000),
}


def _throughputs(deployment_type: DeploymentType) -> str:
    *smaller, largest = map(str, THROUGHPUTS[deployment_type] or ("null",))
    return f"{', '.join(smaller)} or {largest}" if smaller else largest


Throughput = Annotated[
    int,
    Field(ge=1, le=10_000),
    allowing("; ".join(f"{_throughputs(kind)} with {kind}" for kind, some in THROUGHPUTS.items() if some)),
]
_SMALLEST_GIB = 1200
_STEP_GIB = 2400
_CAPACITIES = f"{_SMALLEST_GIB}, {_STEP_GIB} or a multiple of {_STEP_GIB}"
_FIRST_METADATA_IOPS = (1500, 3000, 6000)
_METADATA_STEP = 12_000
_MOST_METADATA_IOPS = 192_000
_METADATA_STEPS = (
    f"{', '.join(map(str, _FIRST_METADATA_IOPS))}, {_METADATA_STEP} or a multiple of {_METADATA_STEP} "
    f"up to {_MOST_METADATA_IOPS}"
)
MetadataIops = Annotated[int, Field(ge=1, le=_MOST_METADATA_IOPS), allowing(_METADATA_STEPS)]
_INCLUDED_METADATA_IOPS = ((1200, 1500), (2400, 3000), (9600, 6000))
"""Largest capacity in GiB, and the metadata IOPS that come with it."""

_PATH = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._+=@-]+)+")
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
_SCRATCH = "/scratch"
"""aws-parallelcluster 3.16.1 pcluster/constants.py, DEFAULT_EPHEMERAL_DIR."""


_CAPACITY_PAGE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html"
_METADATA_PAGE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/switch-provisioning-mode.html"


class LustreSpec(Spec):
    """The FSx for Lustre file system, on SSD storage."""

    aws: ClassVar = "AWS::FSx::FileSystem"

    deployment_type: Annotated[
        DeploymentType, Setting(Change.NEW_FILE_SYSTEM, ".LustreConfiguration.DeploymentType")
    ] = "PERSISTENT_2"
    """PERSISTENT_2 for data to keep, SCRATCH_2 for data that can be lost."""
    capacity_gib: Annotated[
        Gib,
        Field(ge=1, le=2_147_483_647),
        allowing(_CAPACITIES),
        FROM_SIZE,
        Setting(Change.AT_ONCE, ".StorageCapacity", growth=Growth(_CAPACITY_PAGE)),
    ] = default(4800)
    """Storage in GiB."""
    throughput_mbps_per_tib: Annotated[
        Throughput | None, Setting(Change.NEW_FILE_SYSTEM, ".LustreConfiguration.PerUnitStorageThroughput")
    ] = 250
    """MB/s per TiB; None with SCRATCH_2. FSx changes it in place; whether CloudFormation lets it, AWS's sources say
    differently. Here it counts as a new file system, unless a change set in your account says otherwise."""
    compression: Annotated[Compression, Setting(Change.AT_ONCE, ".LustreConfiguration.DataCompressionType")] = "LZ4"
    """Compression of new files."""
    metadata_iops: Annotated[
        MetadataIops | None,
        Setting(
            Change.AT_ONCE,
            ".LustreConfiguration.MetadataConfiguration.Iops",
            growth=Growth(_METADATA_PAGE, unset=lambda each: included_metadata_iops(int(each["StorageCapacity"]))),
        ),
    ] = None
    """Provisioned metadata IOPS of PERSISTENT_2, at least what the capacity includes, and raised before the capacity
    in a deployment of their own; None: automatic, growing with the capacity."""
    backup_retention_days: Annotated[
        Time,
        Field(ge=0, le=90),
        FROM_DAYS,
        Setting(Change.AT_ONCE, ".LustreConfiguration.AutomaticBackupRetentionDays"),
    ] = default(7)
    """Days that automatic backups are kept, 0: none. FSx takes none of scratch file systems and those linked to S3."""
    kms_key_arn: Annotated[KmsKeyArn | None, Setting(Change.NEW_FILE_SYSTEM, ".KmsKeyId")] = None
    """Key that encrypts the file system; None: the key that FSx manages."""
    mount_dir: Annotated[Directory, Setting(Change.DRAINS, "SharedStorage.MountDir")] = "/fsx"
    """Where nodes mount it."""
    log_retention_days: Annotated[LogRetentionDays, Setting(Change.AT_ONCE, "AWS::Logs::LogGroup.RetentionInDays")] = 90
    """Days that its warnings and errors are kept in CloudWatch."""

    @property
    def persistent(self) -> bool:
        """Whether the data outlives a failed file server."""
        return self.deployment_type != "SCRATCH_2"


_LINKED_DIRECTORIES = "/ or an absolute path such as /data"
_PREFIXES = "empty, or a prefix such as runs/2026, without leading or doubled slashes"
_BUCKETS = "the name of a general purpose bucket: 3 to 63 of a-z, 0-9, hyphen and dot"
BucketName = Annotated[str, allowing(_BUCKETS), Existing("AWS::S3::Bucket")]


class DataRepository(Spec):
    """A directory of the file system that is linked to a prefix in S3 (a data repository association)."""

    aws: ClassVar = "AWS::FSx::DataRepositoryAssociation"

    path: Annotated[str, allowing(_LINKED_DIRECTORIES), Setting(Change.TWO_DEPLOYMENTS, ".FileSystemPath")]
    """Directory in the file system."""
    bucket: Annotated[BucketName | None, Setting(Change.TWO_DEPLOYMENTS, ".DataRepositoryPath")] = None
    """Name of an existing bucket in the same Region; None: a bucket of this deployment."""
    prefix: Annotated[str, allowing(_PREFIXES), Setting(Change.TWO_DEPLOYMENTS, ".DataRepositoryPath")] = ""
    """Prefix within the bucket."""
    import_events: Annotated[Items[FileEvent], FEW, Setting(Change.AT_ONCE, ".S3.AutoImportPolicy.Events")] = [
        "NEW",
        "CHANGED",
        "DELETED",
    ]
    """Changes in S3 that show in the file system."""
    export_events: Annotated[Items[FileEvent], FEW, Setting(Change.AT_ONCE, ".S3.AutoExportPolicy.Events")] = [
        "NEW",
        "CHANGED",
        "DELETED",
    ]
    """Changes in the file system that are written to S3."""


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
    return min(_METADATA_STEP * max(1, capacity_gib // 24_000), _MOST_METADATA_IOPS)


def growth_blocker(capacity_gib: tuple[int, int], metadata_iops: tuple[int | None, int | None]) -> str | None:
    """Return why FSx would refuse to change capacity and metadata IOPS of PERSISTENT_2 at once, and what it needs.

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


def violations(spec: LustreSpec) -> list[Violation]:
    """Return what FSx for Lustre or ParallelCluster would refuse, with paths relative to ``spec``."""
    return below(
        (), _capacity(spec), _throughput(spec), _metadata_iops(spec), _backups(spec), _key(spec), _mount_dir(spec)
    )


def mount_point_violations(path: Path, directory: str, *, example: str) -> list[Violation]:
    """Return why nothing may be mounted on a directory of a node."""
    if not _PATH.fullmatch(directory):
        return [Violation(path, directory, f"an absolute path such as {example}", "a mount point")]
    if directory in _RESERVED_MOUNT_DIRS:
        return [Violation(path, directory, f"another directory, such as {example}", "ParallelCluster reserves it")]
    if overlap(directory, _HOME):
        return [Violation(path, directory, "a directory outside /home", "the head node exports /home")]
    return []


def repository_violations(spec: LustreSpec, repositories: Sequence[DataRepository]) -> list[Violation]:
    """Return what FSx would refuse in the links to S3.

    Paths are relative to the object that holds ``data_repositories`` and ``file_system``.
    """
    broken: list[Violation] = []
    if len(repositories) > MAX_REPOSITORIES:
        allowed, reason = f"at most {MAX_REPOSITORIES}", "the number of data repository associations of one file system"
        broken.append(Violation(("data_repositories",), len(repositories), allowed, reason))
    broken += below(("file_system",), _backups_with_links(spec, repositories))
    for index, repository in enumerate(repositories):
        overlaps = [_overlaps(earlier, repository) for earlier in repositories[:index]]
        own = (_path(repository), _place_in_s3(repository), _events(repository))
        broken += below(("data_repositories", index), *own, *overlaps)
    return broken


def shared_storage_name(spec: LustreSpec, *, stack_name: str, subnet: Sequence[str]) -> str:
    """Return the ``Name`` under which ParallelCluster mounts the file system.

    ParallelCluster refuses an update that puts another file system under the same ``Name``, and takes one that
    changes both; it also fails on another mount directory under the same ``Name``. The name therefore changes with
    the mount directory, and whenever CloudFormation would make a new file system: when its type,
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


def _capacity(spec: LustreSpec) -> Iterator[Violation]:
    if spec.capacity_gib != _SMALLEST_GIB and (spec.capacity_gib <= 0 or spec.capacity_gib % _STEP_GIB != 0):
        yield spec.violation("capacity_gib", _CAPACITIES, "the sizes FSx for Lustre offers on SSD")


def _throughput(spec: LustreSpec) -> Iterator[Violation]:
    if spec.throughput_mbps_per_tib not in (THROUGHPUTS[spec.deployment_type] or (None,)):
        allowed, reason = _throughputs(spec.deployment_type), f"the MB/s per TiB of {spec.deployment_type}"
        yield spec.violation("throughput_mbps_per_tib", allowed, reason)


def _metadata_iops(spec: LustreSpec) -> Iterator[Violation]:
    if spec.metadata_iops is None:
        return
    if spec.deployment_type != "PERSISTENT_2":
        reason = "only PERSISTENT_2 has a metadata configuration"
        yield spec.violation("metadata_iops", f"null with {spec.deployment_type}", reason)
    elif spec.metadata_iops not in (
        *_FIRST_METADATA_IOPS,
        *range(_METADATA_STEP, _MOST_METADATA_IOPS + 1, _METADATA_STEP),
    ):
        allowed = f"null (automatic), {_METADATA_STEPS}"
        yield spec.violation("metadata_iops", allowed, "the steps of provisioned metadata IOPS")
    elif spec.metadata_iops < (included := included_metadata_iops(spec.capacity_gib)):
        reason = f"what comes with {spec.capacity_gib} GiB at no cost; FSx wants it of a file system that grows"
        yield spec.violation("metadata_iops", f"null (automatic), or at least {included}", reason)


def _backups(spec: LustreSpec) -> Iterator[Violation]:
    if spec.backup_retention_days and not spec.persistent:
        yield spec.violation("backup_retention_days", "0 with SCRATCH_2", "FSx backs up persistent file systems only")


def _key(spec: LustreSpec) -> Iterator[Violation]:
    if spec.kms_key_arn is not None and not spec.persistent:
        yield spec.violation("kms_key_arn", "null with SCRATCH_2", "FSx's own key encrypts scratch file systems")


def _mount_dir(spec: LustreSpec) -> Iterator[Violation]:
    broken = mount_point_violations(("mount_dir",), spec.mount_dir, example="/fsx")
    yield from broken
    if not broken and overlap(spec.mount_dir, _SCRATCH):
        reason = "nodes mount their own NVMe disks there"
        yield spec.violation("mount_dir", "a directory outside /scratch", reason)


def _backups_with_links(spec: LustreSpec, repositories: Sequence[DataRepository]) -> Iterator[Violation]:
    if repositories and spec.backup_retention_days:
        reason = "FSx takes no backups of a file system linked to S3"
        yield spec.violation("backup_retention_days", "0 with data repositories", reason)


def _path(repository: DataRepository) -> Iterator[Violation]:
    if repository.path != "/" and not _PATH.fullmatch(repository.path):
        yield repository.violation("path", _LINKED_DIRECTORIES, "a directory of the file system")


def _place_in_s3(repository: DataRepository) -> Iterator[Violation]:
    if repository.bucket is not None and not _BUCKET.fullmatch(repository.bucket):
        yield repository.violation("bucket", f"null or {_BUCKETS}", "Amazon S3's rules for bucket names")
    if repository.prefix and not _PREFIX.fullmatch(repository.prefix):
        yield repository.violation("prefix", _PREFIXES, "it follows s3://BUCKET/")


def _events(repository: DataRepository) -> Iterator[Violation]:
    for field in ("import_events", "export_events"):
        events = getattr(repository, field)
        if len(set(events)) != len(events):
            allowed = "any of NEW, CHANGED, DELETED, each once"
            yield repository.violation(field, allowed, "the file events that FSx knows")


def _overlaps(first: DataRepository, second: DataRepository) -> Iterator[Violation]:
    if overlap(first.path, second.path):
        allowed = f"a directory neither above nor below {first.path}"
        yield second.violation("path", allowed, "each directory can be linked once")
    if first.bucket == second.bucket and overlap(f"/{first.prefix}", f"/{second.prefix}"):
        allowed = f"a prefix neither above nor below {first.prefix!r} of the same bucket"
        yield second.violation("prefix", allowed, "each prefix can be linked once")
