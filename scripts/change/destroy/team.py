"""What exists of homes and database of a deployment, and their last backups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from scripts.account import stacks
from scripts.account.deployment import Deployment
from scripts.change.destroy import storage
from scripts.core.clock import Clock
from scripts.core.terminal import Say
from scripts.watch.inventory import clusters
from scripts.watch.inventory.leftovers import vault_name
from scripts.watch.inventory.model import FINAL_BACKUP, Key, Leftover

EFS, FSX, DATABASE = "AWS::EFS::FileSystem", "AWS::FSx::FileSystem", "AWS::RDS::DBInstance"
NOUNS: Mapping[str, str] = {EFS: "Homes", FSX: "Homes", DATABASE: "Database"}
KINDS: Mapping[str, Literal["efs", "fsx", "rds"]] = {EFS: "efs", FSX: "fsx", DATABASE: "rds"}
_DELETING = frozenset({"DELETING", "deleting"})


@dataclass(frozen=True)
class Team:
    """What exists of homes and database, by their stack as it was deployed, not by the settings file.

    Attributes:
        holders: What holds data, by type and id, as their services describe it.
        groups: Ids of the security groups.
        policies: Deletion policies of what the stack has, by id; "Retain" of what it has kept.
        kept: What a deleted stack has kept.
        role: ARN of the role for backups of EFS; empty: the stack has none any more.
    """

    holders: Mapping[Key, dict[str, Any]]
    groups: frozenset[str] = frozenset()
    policies: Mapping[str, str] | None = None
    kept: tuple[Leftover, ...] = ()
    role: str = ""

    def is_retained(self, name: str) -> bool:
        """Tell whether something outlives the deletion of its stack."""
        return (self.policies or {}).get(name, "").startswith("Retain")

    @property
    def protected_databases(self) -> list[str]:
        """Ids of databases that RDS protects against deletion."""
        return [name for (_, name), each in self.holders.items() if each.get("DeletionProtection")]

    def backup_blocker(self, key: Key) -> str:
        """Return why there is no backup of something; empty: there is one."""
        is_without_role = key[0] == EFS and not self.role
        return "its stack is deleted, and with it the role in which AWS Backup works" if is_without_role else ""


NOTHING = Team({})


def collect(deployment: Deployment) -> Team:
    """Return what exists of homes and database."""
    stack = deployment.stack_name("team")
    kept, existing = clusters.kept_by(deployment, "team"), stacks.existing(deployment, stack)
    policies = {each.id: "Retain" for each in kept}
    policies |= stacks.deletion_policies(deployment, stack, existing)
    keys = dict.fromkeys([*((each.type, each.physical_id) for each in existing), *(each.key for each in kept)])
    holders = {key: each for key in keys if key[0] in NOUNS and (each := _described(deployment, key))}
    return Team(
        holders,
        frozenset(name for kind, name in keys if kind == "AWS::EC2::SecurityGroup"),
        policies,
        tuple(kept),
        deployment.outputs(stack).get("HomesBackupRoleArn", ""),
    )


def is_deleting(described: Mapping[str, Any]) -> bool:
    """Tell whether something is being deleted, as its service describes it."""
    keys = ("Lifecycle", "LifeCycleState", "DBInstanceStatus")
    return bool(_DELETING & {str(described.get(key)) for key in keys})


def in_network(team: Team, vpcs: list[str]) -> Iterator[str]:
    """Yield ids of what has network interfaces in VPCs."""
    for (kind, name), each in team.holders.items():
        vpc = each.get("DBSubnetGroup", each).get("VpcId")
        if vpc in vpcs or (kind == EFS and vpcs and each["NumberOfMountTargets"]):
            yield name


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
    if kind == FSX:
        return storage.back_up(deployment, team.holders[key], clock, say)
    backup, state = (_start_job if kind == EFS else _start_snapshot)(deployment, team, name)
    return storage.await_backup(name, backup, state, clock, say)


def _start_job(deployment: Deployment, team: Team, name: str) -> tuple[str, storage.State]:
    """Return the ARN of the recovery point of EFS that is being made, or was made since the end of the last cluster."""
    account, vault, arn = deployment.account, vault_name(deployment), team.holders[EFS, name]["FileSystemArn"]
    backup = account.client("backup")
    tags = {**deployment.settings.tags, FINAL_BACKUP: deployment.settings.name}
    if vault not in [each["BackupVaultName"] for each in account.list("backup", "list_backup_vaults")]:
        backup.create_backup_vault(BackupVaultName=vault, BackupVaultTags=tags)
    jobs = backup.list_backup_jobs(ByResourceArn=arn, ByBackupVaultName=vault)["BackupJobs"]
    since = storage.end_of_clusters(deployment)
    started = [each for each in jobs if since and each["CreationDate"] > since and each["State"] not in storage.FAILED]
    given = {"ResourceArn": arn, "IamRoleArn": team.role, "RecoveryPointTags": tags}
    job = started[0] if started else backup.start_backup_job(BackupVaultName=vault, **given)

    def state() -> tuple[str, str]:
        described = backup.describe_backup_job(BackupJobId=job["BackupJobId"])
        return described["State"], described.get("StatusMessage", "")

    return str(job["RecoveryPointArn"]), state


def _start_snapshot(deployment: Deployment, _: Team, name: str) -> tuple[str, storage.State]:
    """Return the name of the snapshot of RDS that is being made, or was made since the end of the last cluster."""
    rds, own = deployment.account.client("rds"), {"Key": FINAL_BACKUP, "Value": deployment.settings.name}
    since, now = storage.end_of_clusters(deployment), Clock().now()
    listed = rds.describe_db_snapshots(DBInstanceIdentifier=name, SnapshotType="manual")["DBSnapshots"]
    started = [
        each["DBSnapshotIdentifier"]
        for each in listed  # one that is being made has no time yet
        if own in each.get("TagList", []) and since and each.get("SnapshotCreateTime", now) > since
    ]
    snapshot = started[0] if started else f"{name}-final-{now:%Y%m%d%H%M%S}"
    if not started:
        tags = [{"Key": key, "Value": value} for key, value in deployment.settings.tags.items()]
        rds.create_db_snapshot(DBInstanceIdentifier=name, DBSnapshotIdentifier=snapshot, Tags=[*tags, own])

    def state() -> tuple[str, str]:
        [described] = rds.describe_db_snapshots(DBSnapshotIdentifier=snapshot)["DBSnapshots"]
        return described["Status"], ""

    return snapshot, state


def _described(deployment: Deployment, key: Key) -> dict[str, Any] | None:
    kind, name = key
    account = deployment.account
    answer: Any
    if kind == FSX:
        answer = (account.find("fsx", "describe_file_systems", FileSystemIds=[name]) or {}).get("FileSystems", [])
    elif kind == EFS:
        answer = (account.find("efs", "describe_file_systems", FileSystemId=name) or {}).get("FileSystems", [])
    else:
        answer = (account.find("rds", "describe_db_instances", DBInstanceIdentifier=name) or {}).get("DBInstances", [])
    return next(iter(answer), None)
