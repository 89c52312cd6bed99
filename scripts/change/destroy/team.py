"""What exists of homes and database of a deployment, and their last backups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from scripts.account import backups, databases, file_systems
from scripts.account.backups import FINAL_BACKUP, MADE, USABLE, vault_name
from scripts.account.databases import DATABASE, Database
from scripts.account.deployment import Deployment
from scripts.account.file_systems import EFS, FSX, FileSystem
from scripts.change.destroy import storage
from scripts.core.clock import Clock
from scripts.core.terminal import Say
from scripts.watch.inventory import clusters
from scripts.watch.inventory.model import Key, Leftover

NOUNS: Mapping[str, str] = {EFS: "Homes", FSX: "Homes", DATABASE: "Database"}
KINDS: Mapping[str, Literal["efs", "fsx", "rds"]] = {EFS: "efs", FSX: "fsx", DATABASE: "rds"}


@dataclass(frozen=True)
class Team:
    """What exists of homes and database, by their stack as it was deployed, not by the settings file.

    Attributes:
        holders: What holds data, by type and id.
        groups: Ids of the security groups.
        retained: Ids of what the stack keeps when it is deleted, or has kept.
        kept: What it has kept.
        role: ARN of the role for backups of EFS; empty: the stack has none any more.
    """

    holders: Mapping[Key, FileSystem | Database]
    groups: frozenset[str] = frozenset()
    retained: frozenset[str] = frozenset()
    kept: tuple[Leftover, ...] = ()
    role: str = ""

    @property
    def protected_databases(self) -> list[str]:
        """Ids of databases that RDS protects against deletion."""
        return [each.id for each in self.holders.values() if isinstance(each, Database) and each.is_protected]

    def backup_blocker(self, key: Key) -> str:
        """Return why there is no backup of something; empty: there is one."""
        is_without_role = key[0] == EFS and not self.role
        return "its stack is deleted, and with it the role in which AWS Backup works" if is_without_role else ""


NOTHING = Team({})


def collect(deployment: Deployment) -> Team:
    """Return what exists of homes and database."""
    holdings = clusters.holdings(deployment, "team")
    return Team(
        {key: each for key in holdings.keys if key[0] in NOUNS and (each := _find(deployment, key))},
        frozenset(holdings.of("AWS::EC2::SecurityGroup")),
        holdings.retained,
        holdings.kept,
        deployment.outputs(deployment.stack_name("team")).get("HomesBackupRoleArn", ""),
    )


def in_network(team: Team, vpcs: list[str]) -> Iterator[str]:
    """Yield ids of what has network interfaces in VPCs."""
    for each in team.holders.values():
        if each.vpc_id in vpcs or (vpcs and isinstance(each, FileSystem) and each.mount_targets):
            yield each.id


def unprotect(deployment: Deployment, team: Team) -> None:
    """Let RDS delete the databases."""
    for name in team.protected_databases:
        rds = deployment.account.client("rds")
        rds.modify_db_instance(DBInstanceIdentifier=name, DeletionProtection=False, ApplyImmediately=True)


def back_up(deployment: Deployment, team: Team, key: Key, clock: Clock, say: Say) -> str:
    """Make the last backup of something, wait until it is complete, and return its id.

    One that was started since the last cluster was deleted is used.

    Raises:
        OperationError: It failed, or takes more than 12 hours.
    """
    kind, name = key
    holder = team.holders[key]
    if isinstance(holder, Database):
        backup, state = _start_snapshot(deployment, name)
    elif kind == FSX:
        return storage.back_up(deployment, holder, clock, say)
    else:
        backup, state = _start_job(deployment, team, holder.arn)
    return storage.await_backup(name, backup, state, clock, say)


def _start_job(deployment: Deployment, team: Team, arn: str) -> tuple[str, storage.State]:
    """Return the ARN of the recovery point of EFS that is being made, or was made since the end of the last cluster."""
    vault, backup = vault_name(deployment), deployment.account.client("backup")
    tags = {**deployment.settings.tags, FINAL_BACKUP: deployment.settings.name}
    if not backups.has_vault(deployment.account, vault):
        backup.create_backup_vault(BackupVaultName=vault, BackupVaultTags=tags)
    jobs = backup.list_backup_jobs(ByResourceArn=arn, ByBackupVaultName=vault)["BackupJobs"]
    since = storage.end_of_clusters(deployment)
    kept = {each.id for each in backups.of_homes(deployment) if each.state in USABLE}
    started = [
        each
        for each in jobs
        if since and each["CreationDate"] > since and each["State"] in USABLE
        if each["State"] not in MADE or each["RecoveryPointArn"] in kept  # somebody may have deleted it since
    ]
    given = {"ResourceArn": arn, "IamRoleArn": team.role, "RecoveryPointTags": tags}
    job = started[0] if started else backup.start_backup_job(BackupVaultName=vault, **given)

    def state() -> tuple[str, str]:
        described = backup.describe_backup_job(BackupJobId=job["BackupJobId"])
        return described["State"], described.get("StatusMessage", "")

    return str(job["RecoveryPointArn"]), state


def _start_snapshot(deployment: Deployment, name: str) -> tuple[str, storage.State]:
    """Return the name of the snapshot of RDS that is being made, or was made since the end of the last cluster."""
    rds, since = deployment.account.client("rds"), storage.end_of_clusters(deployment)
    started = backups.started_since(backups.of_databases(deployment.account), name, deployment, since)
    snapshot = started or f"{name}-final-{Clock().now():%Y%m%d%H%M%S}"
    if started is None:
        tags = {**deployment.settings.tags, FINAL_BACKUP: deployment.settings.name}
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        rds.create_db_snapshot(DBInstanceIdentifier=name, DBSnapshotIdentifier=snapshot, Tags=pairs)

    def state() -> tuple[str, str]:
        [described] = rds.describe_db_snapshots(DBSnapshotIdentifier=snapshot)["DBSnapshots"]
        return described["Status"], ""

    return snapshot, state


def _find(deployment: Deployment, key: Key) -> FileSystem | Database | None:
    kind, name = key
    if kind == DATABASE:
        return databases.find(deployment.account, name)
    return file_systems.find(deployment.account, kind, name)
