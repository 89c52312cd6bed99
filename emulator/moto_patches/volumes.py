"""EBS snapshots and volumes with data: those who have the disks of instances are told what happens to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_block_store import EBSBackend, Snapshot, VolumeAttachment

from emulator.moto_patches import lives

Snapshotting = Callable[..., Snapshot]
Attaching = Callable[..., VolumeAttachment | None]
Detaching = Callable[..., VolumeAttachment]


def tell_of_volumes() -> None:
    """Let the listeners of instances hear of snapshots of root volumes, and of volumes that come and go."""
    EBSBackend.create_snapshot = taken(EBSBackend.create_snapshot)  # type: ignore[method-assign]
    EBSBackend.attach_volume = attached(EBSBackend.attach_volume)  # type: ignore[method-assign]
    EBSBackend.detach_volume = detached(EBSBackend.detach_volume)  # type: ignore[method-assign]


def taken(create: Snapshotting) -> Snapshotting:
    """Return what takes a snapshot and tells of it."""

    def create_snapshot(backend: Any, volume_id: str, *arguments: Any, **options: Any) -> Snapshot:
        snapshot = create(backend, volume_id, *arguments, **options)
        attachment = cast(VolumeAttachment | None, snapshot.volume.attachment)
        if attachment and attachment.device == attachment.instance.root_device_name:
            for listener in lives.LISTENERS:
                listener.saved(attachment.instance.id, snapshot.id)
        return snapshot

    return create_snapshot


def attached(attach: Attaching) -> Attaching:
    """Return what attaches a volume and tells of it."""

    def attach_volume(backend: Any, volume_id: str, instance_id: str, *arguments: Any, **options: Any) -> Any:
        attachment = attach(backend, volume_id, instance_id, *arguments, **options)
        if attachment and attachment.volume.snapshot_id:
            for listener in lives.LISTENERS:
                listener.attached(instance_id, volume_id, attachment.volume.snapshot_id)
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
