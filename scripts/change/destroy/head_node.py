"""The last snapshot of a head node's root volume, which has /home unless that is on a file system of its own.

A snapshot has what was written to the volume when it was requested, not what the operating system still caches
(https://docs.aws.amazon.com/ebs/latest/userguide/ebs-creating-snapshot.html). So the head node writes its caches first;
what is written during the snapshot is as after a power cut, which the file system's journal repairs, as in the daily
ones. It is complete before anything is deleted: until then EBS may still fail to make it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from scripts.account import backups, homes
from scripts.account.backups import FINAL_BACKUP
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode, is_head_node
from scripts.account.stack_state import StackState
from scripts.change.destroy import stacks as destroy_stacks
from scripts.change.destroy.storage import await_backup
from scripts.check.estimate import products
from scripts.check.estimate.prices import Prices
from scripts.core.aws_errors import is_not_found
from scripts.core.clock import Clock
from scripts.core.errors import HeadNodeError, OperationError, told
from scripts.core.terminal import Say
from scripts.watch.inventory.costs import per_month
from ultracluster.domain.names import SNAPSHOT_TAG

_SECONDS_TO_WRITE = 120
_FRESH = timedelta(minutes=30)


@dataclass(frozen=True)
class RootVolume:
    """The root volume of a head node that exists.

    Attributes:
        id: Its id.
        gib: Its size in GiB.
        is_running: Whether its instance runs.
        key: ARN of the KMS key that it is encrypted with, and its snapshots, too; empty: it is not encrypted.
    """

    id: str
    gib: int
    is_running: bool = True
    key: str = ""


def collect(deployment: Deployment) -> RootVolume | None:
    """Return the root volume of the head node; None: without /home, or gone, or never ready."""
    own = destroy_stacks.of_cluster(deployment)
    if (own and StackState.of(own).was_never_complete) or not homes.on_head_node(deployment):
        return None
    for each in deployment.nodes():
        state = each["State"]["Name"]
        if not is_head_node(each) or state == "shutting-down":
            continue
        volumes = {mapped["DeviceName"]: mapped["Ebs"]["VolumeId"] for mapped in each.get("BlockDeviceMappings", [])}
        name = volumes.get(each.get("RootDeviceName", ""), next(iter(volumes.values()), ""))
        answer = name and deployment.account.find("ec2", "describe_volumes", VolumeIds=[name])
        for volume in answer["Volumes"] if answer else []:
            return RootVolume(name, volume["Size"], state == "running", volume.get("KmsKeyId", ""))
    return None


def monthly(deployment: Deployment, volume: RootVolume) -> Decimal | None:
    """Return what a snapshot costs in dollars per month at most, as if the volume were full; None: it is not known."""
    return per_month(Prices(deployment.settings.region), products.EBS_SNAPSHOT, Decimal(volume.gib))


def announcement(deployment: Deployment, volume: RootVolume) -> str:
    """Return that there will be a last snapshot, what it costs, and how to use and delete it."""
    dollars = monthly(deployment, volume)
    cost = (
        "its cost is not known"
        if dollars is None
        else f"at most ${dollars:,.2f} a month, by prices of {products.table_dates()},"
    )
    key = f" It is encrypted with {volume.key}: without that key nobody can read it." if volume.key else ""
    deletion = deployment.command("ec2", "delete-snapshot", "--snapshot-id", "ID")
    return (
        f"A last snapshot of the head node's volume {volume.id} ({volume.gib:,} GiB, with /home) is made first: {cost} "
        f"until you delete it ({deletion}).{key} `./ultracluster restore {deployment.name}` copies its /home to "
        "a later cluster; --no-final-backup makes none."
    )


def back_up(deployment: Deployment, volume: RootVolume, clock: Clock, say: Say) -> str:
    """Make the last snapshot, wait until it is complete, and return its id.

    One that an interrupted call made is used for half an hour, and if the cluster's deletion has been requested since.

    Raises:
        OperationError: It failed, AWS refused it, or it is not complete within 12 hours.
    """
    from botocore.exceptions import ClientError

    ec2 = deployment.account.client("ec2")
    snapshot = _made_before(deployment, volume, clock)
    if snapshot is None:
        _write_caches(deployment, volume, clock, say)
        tags = {
            **deployment.settings.all_tags,
            "Name": f"{deployment.settings.name} final",
            "parallelcluster:cluster-name": deployment.settings.cluster_spec.name,
            SNAPSHOT_TAG: deployment.settings.name,
            FINAL_BACKUP: deployment.settings.name,
        }
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = ec2.create_snapshot(
            VolumeId=volume.id,
            Description=f"/home of {deployment.settings.cluster_spec.name}, before it was deleted",
            TagSpecifications=[{"ResourceType": "snapshot", "Tags": pairs}],
        )
        snapshot = str(made["SnapshotId"])

    def state() -> tuple[str, str]:
        try:
            [described] = ec2.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"]
        except ClientError as error:  # EC2 may not list at once what it has made
            if is_not_found(error):
                return "pending", ""
            raise
        return described["State"], described.get("StateMessage", "")

    return await_backup(volume.id, snapshot, state, clock, say)


def _write_caches(deployment: Deployment, volume: RootVolume, clock: Clock, say: Say) -> None:
    if not volume.is_running:
        return
    try:
        answer = HeadNode(deployment, clock).run("sync", seconds=_SECONDS_TO_WRITE)
        why = answer.errors if answer.code else ""
    except HeadNodeError as error:
        why = told(error)
    if why:
        say(f"The snapshot lacks what the head node has not written to its disk, usually the last seconds: {why}")


def _made_before(deployment: Deployment, volume: RootVolume, clock: Clock) -> str | None:
    """Return the last snapshot that an interrupted call made; None: there is none, or people may have worked since."""
    deployment.account.forget()
    own, ours = destroy_stacks.of_cluster(deployment), deployment.stack(deployment.stack_name("cluster"))
    is_leaving = any(each and StackState.of(each).is_leaving for each in (own, ours))
    since = datetime.min.replace(tzinfo=UTC) if is_leaving else clock.now() - _FRESH
    return backups.started_since(backups.of_head_nodes(deployment), volume.id, deployment, since)


def failed(error: Exception, deployment_name: str) -> OperationError:
    """Return that nothing is deleted, for there is no last snapshot."""
    return OperationError(
        f"The last snapshot of the head node failed, so nothing is deleted; the fleet is stopped: {told(error)}",
        "--no-final-backup deletes it without one; "
        f"./ultracluster fleet start {deployment_name} starts the fleet again",
    )
