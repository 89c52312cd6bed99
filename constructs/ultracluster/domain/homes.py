"""Home directories on storage that outlives head nodes and clusters: rules of Amazon EFS and FSx for OpenZFS."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from ultracluster.domain.spec import Change, Growth, Setting, Spec
from ultracluster.domain.types import FROM_DAYS, FROM_SIZE, Existing, Gib, KmsKeyArn, Time, allowing, default
from ultracluster.domain.violations import Violation, below

HOME = "/home"
Kind = Literal["efs", "fsx-openzfs"]
OpenZfsDeploymentType = Literal["SINGLE_AZ_1", "SINGLE_AZ_HA_1", "SINGLE_AZ_2", "SINGLE_AZ_HA_2"]
OpenZfsCompression = Literal["LZ4", "ZSTD", "NONE"]

MAX_QUOTAS = 500
"""AWS::FSx::Volume OpenZFSConfiguration.UserAndGroupQuotas, maxItems."""
OPENZFS_PORTS = (111, 2049, 20001, 20002, 20003)
"""TCP and UDP ports of the servers
(https://docs.aws.amazon.com/fsx/latest/OpenZFSGuide/limit-access-security-groups.html)."""
NFS_PORT = 2049
VOLUME_NAME = "home"
VOLUME_PATH = f"/fsx/{VOLUME_NAME}"
"""Where servers have the volume: the root volume is called fsx."""

# https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemOpenZFSConfiguration.html
_FIRST = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
_SECOND = (160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240)
_THROUGHPUTS: dict[OpenZfsDeploymentType, tuple[int, ...]] = {
    "SINGLE_AZ_1": _FIRST,
    "SINGLE_AZ_HA_1": _FIRST,
    "SINGLE_AZ_2": _SECOND,
    "SINGLE_AZ_HA_2": _SECOND,
}


_ONE_GENERATION = {
    "us-east-1 us-east-2 us-west-2 ap-northeast-1 ap-southeast-1 ap-southeast-2 ap-south-1 ca-central-1 eu-central-1 "
    "eu-central-2 eu-south-2 eu-west-1": ("SINGLE_AZ_HA_1",),
    "ap-east-1 ap-east-2 ap-northeast-3 ap-southeast-3 ap-southeast-4 ap-southeast-5 ap-southeast-6 ap-southeast-7": (
        "SINGLE_AZ_2",
        "SINGLE_AZ_HA_2",
    ),
}
_NOT_OFFERED = {region: missing for regions, missing in _ONE_GENERATION.items() for region in regions.split()}
"""Deployment types that a Region lacks, seen in November 2026; other Regions are left to FSx, which no call asks:
https://docs.aws.amazon.com/fsx/latest/OpenZFSGuide/available-aws-regions.html,
https://github.com/awslabs/awsome-distributed-ai/issues/1097."""


def _listed(values: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, values[:-1]))} or {values[-1]}"


Throughput = Annotated[
    int,
    Field(ge=min(_FIRST), le=max(_SECOND)),
    allowing(f"{_listed(_FIRST)} with SINGLE_AZ_1; {_listed(_SECOND)} with SINGLE_AZ_2"),
]
_ID_PATTERNS: dict[Kind, tuple[str, str]] = {
    "efs": (r"fs-[0-9a-f]{8,17}", "the id of an EFS file system such as fs-0123456789abcdef0"),
    "fsx-openzfs": (r"fsvol-[0-9a-f]{17}", "the id of an OpenZFS volume such as fsvol-0123456789abcdef0"),
}
HomesId = Annotated[
    str, allowing("fs- and 8 to 17 hexadecimal digits, or fsvol- and 17"), Existing("AWS::EFS::FileSystem")
]
"""Of an EFS file system, or of a volume of OpenZFS."""
_SHARED_STORAGE = "https://docs.aws.amazon.com/parallelcluster/latest/ug/SharedStorage-v3.html"
_POLICY = "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html"

_CAPACITY = "https://docs.aws.amazon.com/fsx/latest/OpenZFSGuide/managing-storage-capacity.html"


class OpenZfsSpec(Spec):
    """An FSx for OpenZFS file system, on SSD storage in one zone."""

    aws: ClassVar = "AWS::FSx::FileSystem"

    deployment_type: Annotated[
        OpenZfsDeploymentType, Setting(Change.NEW_FILE_SYSTEM, ".OpenZFSConfiguration.DeploymentType")
    ] = "SINGLE_AZ_1"
    """HA has a second file server that takes over; 2 is faster. Most Regions lack SINGLE_AZ_HA_1 or those of 2."""
    capacity_gib: Annotated[
        Gib,
        Field(ge=64, le=524_288),
        FROM_SIZE,
        Setting(Change.AT_ONCE, ".StorageCapacity", growth=Growth(_CAPACITY, percent=10)),
    ] = default(256)
    """Storage in GiB."""
    throughput_mbps: Annotated[Throughput, Setting(Change.AT_ONCE, ".OpenZFSConfiguration.ThroughputCapacity")] = 64
    """MB/s of the file server. A change interrupts it for minutes; programs wait."""
    compression: Annotated[
        OpenZfsCompression, Setting(Change.AT_ONCE, "AWS::FSx::Volume.OpenZFSConfiguration.DataCompressionType")
    ] = "LZ4"
    """Compression of new data."""
    backup_retention_days: Annotated[
        Time,
        Field(ge=0, le=90),
        FROM_DAYS,
        Setting(Change.AT_ONCE, ".OpenZFSConfiguration.AutomaticBackupRetentionDays"),
    ] = default(7)
    """Days that daily backups are kept, 0: none."""
    quota_gib_per_user: Annotated[
        int | None,
        Field(ge=1, le=524_288),
        Setting(Change.AT_ONCE, "AWS::FSx::Volume.OpenZFSConfiguration.UserAndGroupQuotas"),
    ] = None
    """GiB that each of `users` may store; None: no limit."""


class HomesSpec(Spec):
    """A file system for /home, in the stack NAME-team. `efs` alone stands for `{type: efs}`."""

    type: Annotated[Kind, Setting(Change.NEW_CLUSTER, page=_SHARED_STORAGE)]
    """efs: Amazon EFS, which grows by itself; fsx-openzfs: FSx for OpenZFS, faster with small files, with quotas."""
    openzfs: OpenZfsSpec = OpenZfsSpec()
    """Size and speed of fsx-openzfs."""
    kms_key_arn: Annotated[KmsKeyArn | None, Setting(Change.NEW_FILE_SYSTEM, "AWS::EFS::FileSystem.KmsKeyId")] = None
    """Key that encrypts the file system; None: the key that the service manages."""
    retain: Annotated[bool, Setting(Change.AT_ONCE, page=_POLICY)] = True
    """Whether the file system stays, and costs, when its stack is destroyed."""
    file_system_id: Annotated[HomesId | None, Setting(Change.NEW_CLUSTER, page=_SHARED_STORAGE)] = None
    """An EFS file system, or an OpenZFS volume (fsvol-), to use instead of making one: reachable from the VPC's block,
    an EFS with a mount target in the zone. Nothing of the deployment changes or deletes it."""

    @property
    def is_made(self) -> bool:
        """Whether the deployment makes the file system."""
        return self.file_system_id is None

    @property
    def addresses(self) -> int:
        """Addresses of its network interfaces in the private subnet, at most."""
        return 1 if self.type == "efs" else 3

    def quotas(self, uids: Sequence[int]) -> dict[int, int]:
        """Return GiB by user id."""
        quota = self.openzfs.quota_gib_per_user
        return {} if quota is None else dict.fromkeys(uids, quota)


class _Shorthand:
    """Adds the text that stands for a type to a JSON schema."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        schema["anyOf"].insert(0, {"enum": list(get_args(Kind)), "type": "string"})
        return schema


def _written_out(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


Homes = Annotated[HomesSpec | None, BeforeValidator(_written_out), _Shorthand()]
"""What settings say: a mapping, or a type alone."""


def violations(spec: HomesSpec) -> list[Violation]:
    """Return what EFS, FSx or ParallelCluster would refuse anywhere, with paths relative to ``spec``."""
    return below((), _file_system_id(spec), _kms_key(spec), _openzfs(spec))


def place_violations(spec: HomesSpec, region: str) -> Iterator[Violation]:
    """Yield what FSx does not have in a Region, with paths relative to ``spec``."""
    if spec.type == "fsx-openzfs":
        yield from below(("openzfs",), _region(spec.openzfs, region))


def quota_violations(spec: HomesSpec, users: int) -> Iterator[Violation]:
    """Yield what quotas FSx refuses of a number of users, with paths relative to ``spec``."""
    if spec.type != "fsx-openzfs" or (quota := spec.openzfs.quota_gib_per_user) is None:
        return
    place = ("openzfs", "quota_gib_per_user")
    if users == 0:
        reason = "FSx has quotas of user ids alone, none for everybody"
        yield Violation(place, quota, "null without users", reason)
    elif users > MAX_QUOTAS:
        yield Violation(place, quota, f"null with {users} users", f"a volume has at most {MAX_QUOTAS} quotas")


def openzfs_violations(spec: OpenZfsSpec, region: str) -> list[Violation]:
    """Return what FSx would refuse in a Region, with paths relative to ``spec``."""
    return below((), _region(spec, region), _throughput(spec))


def _region(spec: OpenZfsSpec, region: str) -> Iterator[Violation]:
    missing = _NOT_OFFERED.get(region, ())
    if spec.deployment_type in missing:
        allowed = " or ".join(each for each in get_args(OpenZfsDeploymentType) if each not in missing)
        yield spec.violation("deployment_type", allowed, f"what FSx for OpenZFS has in {region}")


def _throughput(spec: OpenZfsSpec) -> Iterator[Violation]:
    offered = _THROUGHPUTS[spec.deployment_type]
    if spec.throughput_mbps not in offered:
        yield spec.violation("throughput_mbps", _listed(offered), f"the MB/s of {spec.deployment_type}")


def _file_system_id(spec: HomesSpec) -> Iterator[Violation]:
    if spec.file_system_id is None:
        return
    pattern, allowed = _ID_PATTERNS[spec.type]
    if not re.fullmatch(pattern, spec.file_system_id):
        yield spec.violation("file_system_id", allowed, f"what ParallelCluster mounts with type {spec.type}")


def _kms_key(spec: HomesSpec) -> Iterator[Violation]:
    if spec.file_system_id is not None and spec.kms_key_arn is not None:
        yield spec.violation("kms_key_arn", "null with file_system_id", "an existing file system is not changed")


def _openzfs(spec: HomesSpec) -> Iterator[Violation]:
    changed = spec.openzfs.changed()
    if spec.type == "fsx-openzfs":
        yield from below(("openzfs",), _throughput(spec.openzfs))
        if changed and spec.file_system_id is not None:
            reason = "an existing volume is not changed"
            yield Violation(("openzfs",), changed, "leave it out with file_system_id", reason)
    elif changed:
        yield Violation(("openzfs",), changed, "leave it out", "EFS has no such settings")
