"""File systems that all nodes of a cluster mount."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IDependable

from ultracluster.arguments import wrong_types
from ultracluster.domain import storage
from ultracluster.domain.cluster_configuration import Mount
from ultracluster.domain.homes import HOME
from ultracluster.domain.lustre import LustreSpec
from ultracluster.domain.storage import EbsVolumeSpec
from ultracluster.domain.violations import InvalidArguments, Violation, below, is_token, kinds_of
from ultracluster.lustre import LustreFileSystem
from ultracluster.signatures import readable

_LUSTRE_MOUNT_DIR = LustreSpec().mount_dir
_METHODS: Mapping[str, str] = {
    "aws_cdk.aws_efs": "efs",
    "aws_cdk.aws_fsx": "lustre",
    "ultracluster.homes.ElasticFileSystem": "efs",
    "ultracluster.homes.ImportedOpenZfsVolume": "openzfs",
    "ultracluster.homes.OpenZfsFileSystem": "openzfs",
    "ultracluster.lustre.ILustreFileSystem": "lustre",
}
"""The methods of `SharedStorage` by the classes that are for one alone, or by modules. FSx for Lustre is the only kind
for which ``aws_fsx`` has constructs."""
_FILE_SYSTEMS = {
    "efs": "an ElasticFileSystem, or a file system of aws_efs",
    "lustre": "a LustreFileSystem, or one of aws_fsx",
    "openzfs": "an OpenZfsFileSystem, or OpenZfsFileSystem.from_volume_attributes(...)",
}


class IFileSystem(Protocol):
    """What clients need to know of a file system.

    `ultracluster.LustreFileSystem`, and file systems of ``aws_fsx`` and ``aws_efs``, made or imported, have it.
    """

    @property
    def file_system_id(self) -> str:
        """Id of the file system, such as ``fs-0123456789abcdef0``."""

    @property
    def connections(self) -> ec2.Connections:
        """Its security groups; what carries them reaches it."""


class IOpenZfsVolume(Protocol):
    """What clients need to know of a volume of FSx for OpenZFS, such as that of `ultracluster.OpenZfsFileSystem`."""

    @property
    def volume_id(self) -> str:
        """Id of the volume, such as ``fsvol-0123456789abcdef0``."""

    @property
    def connections(self) -> ec2.Connections:
        """The security groups of its file system; what carries them reaches it."""


@readable
@dataclass(frozen=True, kw_only=True)
class SharedStorage:
    """A file system, and where all nodes mount it. Nodes carry its security groups.

    Attributes:
        mount: What ParallelCluster is told of it. [change: nodes drain]
        security_groups: Groups that nodes carry to reach it. Default: none. [change: at once]
        dependencies: What has to be there before a node mounts it, such as mount targets and rules of security groups.
            Default: none. [change: at once]
    """

    mount: Mount
    security_groups: Sequence[ec2.ISecurityGroup] = ()
    dependencies: Sequence[IDependable] = ()

    @classmethod
    def lustre(cls, file_system: IFileSystem, mount_dir: str = _LUSTRE_MOUNT_DIR, *, name: str | None = None) -> Self:
        """Return an FSx for Lustre file system.

        Its security groups allow TCP 988 and 1018-1023 between those that carry them, as ``aws_fsx`` makes them.

        Args:
            file_system: Made in this app, or imported.
            mount_dir: Where nodes mount it, such as ``/fsx``.
            name: ParallelCluster's name of it, at most 30 characters. ParallelCluster refuses an update that puts
                another file system, or another directory, under a name that it knows: with another file system give
                another name. Default: of a `LustreFileSystem`, one that changes with what replaces it; else from the
                construct's path and the directory.
        """
        _check(cls.lustre, locals())
        if name is None and isinstance(file_system, LustreFileSystem):
            name = file_system.shared_storage_name(mount_dir)
        return cls._of(file_system, Mount("FsxLustre", name or "", mount_dir, file_system.file_system_id))

    @classmethod
    def efs(cls, file_system: IFileSystem, mount_dir: str = "/efs", *, name: str | None = None) -> Self:
        """Return an Amazon EFS file system with a mount target in each zone of the nodes, mounted with encryption.

        Its security groups allow TCP 2049 between those that carry them: those of ``aws_efs`` need
        ``file_system.connections.allow_internally(ec2.Port.NFS)``. Arguments as of `lustre`.
        """
        _check(cls.efs, locals())
        return cls._of(file_system, Mount("Efs", name or "", mount_dir, file_system.file_system_id))

    @classmethod
    def openzfs(cls, volume: IOpenZfsVolume, mount_dir: str = HOME, *, name: str | None = None) -> Self:
        """Return a volume of FSx for OpenZFS.

        Its security groups allow TCP and UDP 111, 2049 and 20001-20003 between those that carry them. Arguments as of
        `lustre`. What is mounted on ``/home`` can never change in the life of a cluster.
        """
        _check(cls.openzfs, locals())
        return cls._of(volume, Mount("FsxOpenZfs", name or "", mount_dir, volume.volume_id))

    @classmethod
    def ontap(
        cls,
        volume_id: str,
        mount_dir: str,
        *,
        name: str | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
    ) -> Self:
        """Return a volume of FSx for NetApp ONTAP, which has a junction path, mounted by NFS.

        Args:
            volume_id: Its id, such as ``fsvol-0123456789abcdef0``, of one made in this app or elsewhere.
            mount_dir: Where nodes mount it, such as ``/projects``.
            name: As of `lustre`.
            security_groups: Groups that nodes carry to reach it by NFS. Default: none.
        """
        if broken := wrong_types(cls.ontap, locals()):
            raise InvalidArguments("SharedStorage.ontap", broken)
        mount = _named(Mount("FsxOntap", name or "", mount_dir, volume_id), "" if is_token(volume_id) else volume_id)
        return cls(mount=mount, security_groups=security_groups)

    @classmethod
    def ebs(
        cls,
        mount_dir: str,
        *,
        name: str | None = None,
        volume: ec2.IVolume | None = None,
        options: EbsVolumeSpec | None = None,
    ) -> Self:
        """Return an EBS volume of the head node, which nodes mount by NFS from there: for tools, not for training data.

        It comes and goes while there are no login nodes; compute nodes drain.

        Args:
            mount_dir: Where nodes mount it, such as ``/tools``.
            name: As of `lustre`. Default: from the directory.
            volume: One in the zone of the head node, made in this app or imported. Default: ParallelCluster makes one.
            options: What it makes. Default: ``EbsVolume()``: encrypted, 40 GiB of gp3, which outlives the cluster.

        Raises:
            InvalidArguments: Arguments break rules, or there are both a volume and options.
        """
        broken = wrong_types(cls.ebs, locals())
        if volume is not None and options is not None:
            broken.append(Violation(("options",), options, "none beside a volume", "an existing volume is not changed"))
        elif options is not None and not broken:
            broken += below(("options",), storage.ebs_violations(options))
        if broken:
            raise InvalidArguments("SharedStorage.ebs", broken)
        settings = {} if volume is not None else storage.ebs_settings(options or EbsVolumeSpec())
        volume_id = options.volume_id if options is not None else None
        mount = Mount("Ebs", name or "", mount_dir, volume.volume_id if volume is not None else volume_id, settings)
        dependencies: list[IDependable] = [volume] if isinstance(volume, Construct) else []
        return cls(mount=_named(mount, mount_dir), dependencies=dependencies)

    @classmethod
    def _of(cls, file_system: IFileSystem | IOpenZfsVolume, mount: Mount) -> Self:
        identity = file_system.node.path if isinstance(file_system, Construct) else str(mount.file_system_id)
        return cls(
            mount=_named(mount, identity),
            security_groups=file_system.connections.security_groups,
            dependencies=[file_system] if isinstance(file_system, Construct) else [],
        )


def _named(mount: Mount, identity: str) -> Mount:
    """Return what has a name; one that has none is named for what it is, and its directory."""
    digest = hashlib.sha256(f"{identity} {mount.mount_dir}".encode()).hexdigest()[:12]
    return mount if mount.name else replace(mount, name=f"{mount.kind[:3].lower()}-{digest}")


def _check(function: Callable[..., SharedStorage], given: Mapping[str, object]) -> None:
    broken = wrong_types(function, given) or [*_other_kind(function.__name__, given)]
    if broken:
        raise InvalidArguments(f"SharedStorage.{function.__name__}", broken)


def _other_kind(method: str, given: Mapping[str, object]) -> Iterator[Violation]:
    """Yield why a file system is one for another method; those of classes that nobody knows here may be of any kind."""
    name = "volume" if method == "openzfs" else "file_system"
    kinds = [base for kind in kinds_of(given[name]) for base in kind.__mro__]
    known = {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
    if method != "openzfs":  # of these aws_fsx may have volumes one day
        known |= {kind.__module__ for kind in kinds}
    methods = {_METHODS[each] for each in known if each in _METHODS}
    if methods and method not in methods:
        [right] = methods
        yield Violation((name,), given[name], _FILE_SYSTEMS[method], f"that is one for SharedStorage.{right}")
