"""Recovery of a lost head node: /home of one of its snapshots, copied to the running head node."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field

from scripts.account import backups, operations
from scripts.account.deployment import Deployment, filters
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.core.clock import Clock
from scripts.core.document import Document, Result
from scripts.core.errors import OperationError, told
from scripts.core.report import Block, Line, Table, columns
from scripts.core.terminal import Say, report_interrupted

HOURS = 12
"""How long the copy may take: data of a snapshot comes from S3 when it is read first."""
RESTORE_TAG = "ultracluster:restore"
"""Tag of a volume that was created to copy from; its value is the snapshot."""
PROGRAM = Path(__file__).with_name("restore_home.sh")
_DEVICE = "/dev/sdf"
_WAITER = {"Delay": 3, "MaxAttempts": 200}


class Snapshot(Document):
    """A snapshot of a head node's root volume."""

    id: str = Field(description="Its id.")
    volume: str = Field(description="The volume that it was taken of.")
    cluster: str = Field(description="The cluster whose head node had that volume.")
    since: datetime = Field(description="When it was started.")
    gib: int = Field(description="Size of the volume in GiB.")


class RestoredSnapshot(Snapshot, Result):
    """A snapshot whose /home was copied to the head node."""

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Line(f"/home of {self.id} is on the head node. Users and what was installed outside /home are not.")


class SnapshotList(Result):
    """What ``restore --list --output json`` prints."""

    snapshots: tuple[Snapshot, ...] = Field(description="The finished snapshots, the newest first.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        if not self.snapshots:
            yield Line("There is no snapshot of a head node of this deployment.")
        rows = [
            (each.id, f"{each.since:%Y-%m-%d %H:%M}", f"{each.gib:,}", each.volume, each.cluster)
            for each in self.snapshots
        ]
        yield Table("", columns("snapshot", "taken, UTC", ">GiB", "volume", "cluster"), rows)


def snapshots(deployment: Deployment) -> list[Snapshot]:
    """Return the finished snapshots of a deployment's head nodes, the newest first."""
    finished = [
        Snapshot(id=each.id, volume=each.of, cluster=each.cluster, since=each.started, gib=each.volume_gib)
        for each in backups.of_head_nodes(deployment)
        if each.state == "completed"
    ]
    return sorted(finished, key=lambda each: each.since, reverse=True)


def choose(snapshots: Sequence[Snapshot], present: Collection[str], wanted: str | None) -> Snapshot:
    """Return the wanted snapshot; None: the newest of a head node that does not exist any more.

    `present` are the volumes of the running head node, whose data is not lost.
    """
    known = ", ".join(each.id for each in snapshots) or "none"
    for each in snapshots:
        if each.id == wanted or (wanted is None and each.volume not in present):
            return each
    if wanted is None:
        raise OperationError(f"got no snapshot of an earlier head node; allowed: --snapshot with one of: {known}")
    raise OperationError(f"--snapshot: got {wanted}; allowed: one of: {known}")


def restore(deployment: Deployment, wanted: str | None, clock: Clock, say: Say) -> RestoredSnapshot:
    """Copy /home of a snapshot to the head node. A file that is there already stays, unless it is that of /etc/skel.

    Called again after an interruption it continues with the volume that is there.

    Raises:
        OperationError: Somebody else changes a stack, or the snapshot cannot be copied; the message says what is left.
    """
    from botocore.exceptions import WaiterError

    if deployment.settings.cluster.head_node.shared_storage == "efs":
        raise OperationError(
            "cluster.head_node.shared_storage: got 'efs'; allowed: ebs (with efs /home is on EFS, not on the root "
            "volume that snapshots are taken of)",
            "restore it from a backup of EFS: docs/explanation/lasting-choices.md",
        )
    if (homes := deployment.settings.homes) is not None:
        raise OperationError(
            f"homes: got {homes.type!r}; allowed: null (with homes /home is on a file system of its own, not on the "
            "root volume that snapshots are taken of)",
            "it outlives head nodes; a backup of it: docs/guides/homes.md",
        )
    operations.check(deployment)
    head_node = HeadNode(deployment, clock)
    [instance] = [each for each in deployment.nodes() if each["InstanceId"] == head_node.instance_id]
    mapped = {each["DeviceName"]: each["Ebs"]["VolumeId"] for each in instance.get("BlockDeviceMappings", [])}
    chosen = choose(snapshots(deployment), mapped.values(), wanted)
    say(f"{chosen.id} of {chosen.cluster}, {chosen.since:%Y-%m-%d %H:%M} UTC, {chosen.gib:,} GiB")
    volume = _volume(deployment, chosen, instance["Placement"]["AvailabilityZone"])
    left = (
        f"{volume}, a copy of {chosen.id}, is left and costs. The same command continues; to delete it, once no copy "
        f"runs: {deployment.command('ec2', 'detach-volume', '--volume-id', volume)}, then "
        f"{deployment.command('ec2', 'delete-volume', '--volume-id', volume)}"
    )
    with report_interrupted(left):
        try:
            _attach(deployment, volume, head_node.instance_id)
            say(f"{volume} is attached to {head_node.instance_id}; copying /home, which can take hours.")
            answer = head_node.run(shlex.join(program.of_file(PROGRAM, volume)), seconds=HOURS * 3600)
            if answer.code:
                raise OperationError(f"The copy failed: {(answer.errors or answer.output).strip()}")
            _discard(deployment, volume, head_node.instance_id)
        except (OperationError, WaiterError) as error:
            raise OperationError(told(error), left) from error
    say(answer.output.strip())
    return RestoredSnapshot(**dict(chosen))


def _volume(deployment: Deployment, snapshot: Snapshot, zone: str) -> str:
    """Return the volume that an earlier call created of the snapshot, or create one, with the tag of leftovers."""
    ec2 = deployment.account.client("ec2")
    states = ["creating", "available", "in-use"]
    wanted = filters({f"tag:{RESTORE_TAG}": [snapshot.id], "availability-zone": [zone], "status": states})
    for each in ec2.describe_volumes(Filters=wanted)["Volumes"]:
        return str(each["VolumeId"])
    tags = {
        RESTORE_TAG: snapshot.id,
        "parallelcluster:cluster-name": deployment.settings.cluster_spec.name,
        **deployment.settings.all_tags,
    }
    made = ec2.create_volume(
        SnapshotId=snapshot.id,
        AvailabilityZone=zone,
        VolumeType="gp3",
        Encrypted=True,
        TagSpecifications=[
            {"ResourceType": "volume", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    )
    return str(made["VolumeId"])


def _attach(deployment: Deployment, volume: str, instance: str) -> None:
    ec2 = deployment.account.client("ec2")
    [described] = ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    holders = [each["InstanceId"] for each in described.get("Attachments", [])]
    if holders == [instance]:
        return
    if holders:
        raise OperationError(f"{volume} is attached to {holders[0]}, not to the head node {instance}.")
    ec2.get_waiter("volume_available").wait(VolumeIds=[volume], WaiterConfig=_WAITER)
    ec2.attach_volume(VolumeId=volume, InstanceId=instance, Device=_DEVICE)
    ec2.get_waiter("volume_in_use").wait(VolumeIds=[volume], WaiterConfig=_WAITER)


def _discard(deployment: Deployment, volume: str, instance: str) -> None:
    ec2 = deployment.account.client("ec2")
    ec2.detach_volume(VolumeId=volume, InstanceId=instance)
    ec2.get_waiter("volume_available").wait(VolumeIds=[volume], WaiterConfig=_WAITER)
    ec2.delete_volume(VolumeId=volume)
