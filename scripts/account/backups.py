"""Backups that outlive what they are of: of file systems in FSx and AWS Backup, of volumes in EBS, of databases in RDS.

The last backup, made before a deletion, has the tag FINAL_BACKUP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from scripts.account.deployment import Account, Deployment, filters, tags_of
from scripts.core.clock import Clock
from ultracluster.domain.names import SNAPSHOT_TAG

FINAL_BACKUP: Final = "ultracluster:final-backup-of"
"""Tag of a backup that was made before its file system was deleted; its value is the deployment."""
MADE: Final = frozenset({"AVAILABLE", "COMPLETED"})
"""States of backups, of all services, that are complete."""
USABLE: Final = MADE | {"COPYING", "CREATED", "CREATING", "PENDING", "RUNNING", "TRANSFERRING"}
"""States of those that are complete or will be; one in any other state, such as DELETING, is no last backup.

https://docs.aws.amazon.com/fsx/latest/APIReference/API_Backup.html
https://docs.aws.amazon.com/aws-backup/latest/devguide/API_RecoveryPointByBackupVault.html
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Snapshot.html
"""
_GIB = 2**30


@dataclass(frozen=True)
class Backup:
    """A backup.

    Attributes:
        id: Its id; in AWS Backup its ARN, in RDS its name.
        of: Id of what it is of.
        state: As its service has it.
        final_of: The deployment that made it before a deletion; empty: none did.
        is_automatic: Whether FSx made it, and deletes it with the file system.
        bytes: Its size in AWS Backup, and at most in EBS: older snapshots share blocks with it.
        volume_gib: Size of the volume, in EBS.
        cluster: The cluster whose head node had that volume, in EBS.
    """

    id: str
    of: str
    state: str
    started: datetime
    final_of: str = ""
    is_automatic: bool = False
    bytes: int = 0
    volume_gib: int = 0
    cluster: str = ""


def started_since(backups: Iterable[Backup], of: str, deployment: Deployment, since: datetime | None) -> str | None:
    """Return the newest last backup of something that was started since a time, and is `USABLE`; None: none is."""
    usable = [
        (each.started, each.id)
        for each in backups
        if since is not None
        and (each.of, each.final_of) == (of, deployment.settings.name)
        and each.state.upper() in USABLE
        and each.started > since
    ]
    return max(usable)[1] if usable else None


def of_fsx(account: Account) -> list[Backup]:
    """Return the backups of FSx in the Region, those of deleted file systems included."""
    return [
        Backup(
            each["BackupId"],
            each["FileSystem"]["FileSystemId"],
            each["Lifecycle"],
            each["CreationTime"],
            tags_of(each).get(FINAL_BACKUP, ""),
            each["Type"] == "AUTOMATIC",
        )
        for each in account.list("fsx", "describe_backups")
    ]


def of_head_nodes(deployment: Deployment) -> list[Backup]:
    """Return the snapshots of the volumes of a deployment's head nodes, which no stack has."""
    wanted = filters({f"tag:{SNAPSHOT_TAG}": [deployment.settings.name]})
    listed = deployment.account.list("ec2", "describe_snapshots", OwnerIds=["self"], Filters=wanted)
    return [_of_ebs(each, tags_of(each)) for each in listed]


def _of_ebs(described: Mapping[str, Any], tags: Mapping[str, str]) -> Backup:
    """Return a snapshot. EC2 names the size of all blocks where it knows it.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Snapshot.html
    """
    return Backup(
        described["SnapshotId"],
        described["VolumeId"],
        described["State"],
        described["StartTime"],
        tags.get(FINAL_BACKUP, ""),
        bytes=described.get("FullSnapshotSizeInBytes") or described["VolumeSize"] * _GIB,
        volume_gib=described["VolumeSize"],
        cluster=tags.get("parallelcluster:cluster-name", ""),
    )


def of_databases(account: Account) -> list[Backup]:
    """Return the snapshots of databases in the Region that somebody made."""
    return [
        Backup(
            each["DBSnapshotIdentifier"],
            each["DBInstanceIdentifier"],
            each["Status"],
            each.get("SnapshotCreateTime", Clock().now()),  # one that is being made has no time yet
            {tag["Key"]: tag["Value"] for tag in each.get("TagList", [])}.get(FINAL_BACKUP, ""),
        )
        for each in account.list("rds", "describe_db_snapshots", SnapshotType="manual")
    ]


def vault_name(deployment: Deployment) -> str:
    """Return the name of the vault with the last backups of homes, which `destroy` makes."""
    return f"{deployment.settings.name}-homes"


def has_vault(account: Account, name: str) -> bool:
    """Tell whether a vault is listed: AWS Backup refuses to describe one that does not exist, as if not permitted."""
    return name in [each["BackupVaultName"] for each in account.list("backup", "list_backup_vaults")]


def of_homes(deployment: Deployment) -> list[Backup]:
    """Return the last backups of homes on EFS."""
    vault = vault_name(deployment)
    if not has_vault(deployment.account, vault):
        return []
    return [
        Backup(
            each["RecoveryPointArn"],
            each["ResourceArn"].rpartition("/")[2],
            each.get("Status", ""),
            each["CreationDate"],
            deployment.settings.name,
            bytes=each.get("BackupSizeInBytes", 0),
        )
        for each in deployment.account.list("backup", "list_recovery_points_by_backup_vault", BackupVaultName=vault)
    ]
