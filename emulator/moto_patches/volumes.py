"""EBS snapshots, volumes and file systems: those who have the disks of instances are told what happens to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Final, cast

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_block_store import EBSBackend, Snapshot, Volume, VolumeAttachment
from moto.efs.models import EFSBackend
from moto.fsx.models import FSxBackend

from emulator.moto_patches import lives

Snapshotting = Callable[..., Snapshot]
Attaching = Callable[..., VolumeAttachment | None]
Detaching = Callable[..., VolumeAttachment]
DELETIONS: Final[Sequence[tuple[type, str]]] = (
    (EBSBackend, "delete_snapshot"),
    (EBSBackend, "delete_volume"),
    (EFSBackend, "delete_file_system"),
    (FSxBackend, "delete_file_system"),
)
"""Methods that delete what has data, and take its id first."""


def tell_of_volumes() -> None:
    """Let the listeners of instances hear of snapshots of root volumes, and of volumes that come and go."""
    EBSBackend.create_snapshot = taken(EBSBackend.create_snapshot)  # type: ignore[method-assign]
    EBSBackend.attach_volume = attached(EBSBackend.attach_volume)  # type: ignore[method-assign]
    EBSBackend.detach_volume = detached(EBSBackend.detach_volume)  # type: ignore[method-assign]
    for backend, name in DELETIONS:
        setattr(backend, name, deleted(getattr(backend, name)))


def taken(create: Snapshotting) -> Snapshotting:
    """Return what takes a snapshot and tells of it."""

    def create_snapshot(backend: Any, volume_id: str, *arguments: Any, **options: Any) -> Snapshot:
        snapshot = create(backend, volume_id, *arguments, **options)
        attachment = cast(VolumeAttachment | None, snapshot.volume.attachment)
        if attachment and attachment.device == attachment.instance.root_device_name:
            try:
                for listener in lives.LISTENERS:
                    listener.saved(attachment.instance.id, snapshot.id)
            except EC2ClientError:
                del backend.snapshots[snapshot.id]
                raise
        return snapshot

    return create_snapshot


def attached(attach: Attaching) -> Attaching:
    """Return what attaches a volume and tells of it."""

    def attach_volume(backend: Any, volume_id: str, instance_id: str, *arguments: Any, **options: Any) -> Any:
        attachment = attach(backend, volume_id, instance_id, *arguments, **options)
        if attachment and attachment.volume.snapshot_id:
            try:
                for listener in lives.LISTENERS:
                    listener.attached(instance_id, volume_id, attachment.volume.snapshot_id)
            except EC2ClientError:
                backend.detach_volume(volume_id, instance_id, attachment.device)
                raise
        return attachment

    return attach_volume


def detached(detach: Detaching) -> Detaching:
    """Return what detaches a volume and tells of it."""

    def detach_volume(
        backend: Any, volume_id: str, instance_id: str | None, *arguments: Any, **options: Any
    ) -> VolumeAttachment:
        """Detach a volume, from whatever instance it is attached to if none is named, as moto cannot."""
        attached_to = backend.get_volume(volume_id).attachment
        if attached_to is None:
            raise EC2ClientError("IncorrectState", f"Volume '{volume_id}' is in the 'available' state.")
        attachment = detach(backend, volume_id, instance_id or attached_to.instance.id, *arguments, **options)
        if attachment.volume.snapshot_id:
            for listener in lives.LISTENERS:
                listener.detached(attachment.instance.id, volume_id)
        return attachment

    return detach_volume


def deleted(delete: Callable[..., Any]) -> Callable[..., Any]:
    """Return what deletes something with data and tells of it; that of a snapshot is kept for volumes made of it."""
    parameters = signature(delete)

    def tell(*arguments: Any, **options: Any) -> Any:
        backend, storage_id, *_ = parameters.bind(*arguments, **options).arguments.values()
        result = delete(*arguments, **options)
        of_snapshot = result.snapshot_id if isinstance(result, Volume) else None
        for each in {storage_id, of_snapshot or storage_id} - _kept(backend):
            for listener in lives.LISTENERS:
                listener.deleted(each)
        return result

    return tell


def _kept(backend: Any) -> set[str]:
    """Return the snapshots that there are, and those that volumes were made of."""
    if not isinstance(backend, EBSBackend):
        return set()
    return {*backend.snapshots, *(each.snapshot_id for each in backend.volumes.values() if each.snapshot_id)}
