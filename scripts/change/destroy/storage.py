"""What exists of a deployment's storage, and the last backup of its file system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from scripts.account import backups, file_systems, generations
from scripts.account.backups import FINAL_BACKUP, MADE, USABLE
from scripts.account.deployment import Deployment
from scripts.account.file_systems import FSX, FileSystem
from scripts.check.estimate import products
from scripts.check.estimate.prices import Prices
from scripts.core.clock import Changes, Clock
from scripts.core.errors import OperationError
from scripts.core.terminal import Say
from scripts.watch.inventory import clusters
from scripts.watch.inventory.costs import per_month
from scripts.watch.inventory.model import Leftover

_EVERY, _LIMIT = 30.0, 12 * 3600.0
_GROUP, BUCKET = "AWS::EC2::SecurityGroup", "AWS::S3::Bucket"
LINKED = "FSx backs up no file system that is linked to S3"
EXPORT_FIRST = (
    " First wait until what was written is exported to S3: its CloudWatch metric AgeOfOldestQueuedMessage is zero, or "
    "an export data repository task has ended."
)
"""https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystem.html"""


@dataclass(frozen=True)
class Storage:
    """What exists of the storage of a deployment, by its stack as it was deployed, not by the settings file.

    Attributes:
        file_systems: File systems of the stack and those that it kept.
        groups: Ids of the security groups, in the same way.
        buckets: Names of the buckets, in the same way.
        retained: Ids of what the stack keeps when it is deleted, or has kept.
        kept: What it has kept.
        links: Ids of the associations with S3, by file system.
        own: Ids of all resources of the stack.
    """

    file_systems: tuple[FileSystem, ...] = ()
    groups: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    retained: frozenset[str] = frozenset()
    kept: tuple[Leftover, ...] = ()
    links: Mapping[str, frozenset[str]] = field(default_factory=dict)
    own: frozenset[str] = frozenset()

    def kept_to_delete(self, *, bucket: bool) -> list[Leftover]:
        """Return what of that which the stack kept is deleted with it: a bucket only if that is requested."""
        return [each for each in self.kept if each.type in (FSX, _GROUP) or (bucket and each.type == BUCKET)]

    def backup_blocker(self, file_system: FileSystem) -> str:
        """Return why FSx takes no backup of a file system; empty: it does.

        https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateBackup.html
        """
        if file_system.deployment_type.startswith("SCRATCH"):
            return f"FSx backs up no {file_system.deployment_type} file system"
        return LINKED if self.links.get(file_system.id) else ""

    def is_freed(self, file_system: FileSystem) -> bool:
        """Tell whether the deletion of the stack removes the links of a file system, and keeps it."""
        links = self.links.get(file_system.id, frozenset())
        return bool(links) and file_system.id in self.retained and links <= self.own


def collect(deployment: Deployment) -> Storage:
    """Return what exists of the storage."""
    holdings = clusters.holdings(deployment, "storage")
    names = holdings.of(FSX)
    described = [file_systems.find(deployment.account, FSX, name) for name in names]
    return Storage(
        tuple(filter(None, described)),
        holdings.of(_GROUP),
        holdings.of(BUCKET),
        holdings.retained,
        holdings.kept,
        {name: file_systems.links(deployment.account, name) for name in names},
        holdings.own,
    )


def back_up(deployment: Deployment, file_system: FileSystem, clock: Clock, say: Say) -> str:
    """Make the last backup of a file system, wait until it is available, and return its id.

    One that was started since the last cluster was deleted is used: nothing wrote to the file system after that.

    Raises:
        OperationError: FSx could not make it, or not within 12 hours.
        botocore.exceptions.ClientError: FSx refused it, or gave no answer for as long as `with_retries` waits for one.
    """
    fsx, name = deployment.account.client("fsx"), file_system.id
    deployment.account.forget()
    backup = backups.started_since(backups.of_fsx(deployment.account), name, deployment, end_of_clusters(deployment))
    if backup is None:
        tags = {
            **deployment.settings.all_tags,
            "Name": f"{deployment.settings.name} final",
            FINAL_BACKUP: deployment.settings.name,
        }
        made = fsx.create_backup(FileSystemId=name, Tags=[{"Key": key, "Value": tags[key]} for key in tags])
        backup = str(made["Backup"]["BackupId"])

    def state() -> tuple[str, str]:
        [described] = fsx.describe_backups(BackupIds=[backup])["Backups"]
        return described["Lifecycle"], described.get("FailureDetails", {}).get("Message", "")

    return await_backup(name, backup, state, clock, say)


State = Callable[[], tuple[str, str]]
"""Asks for the state of a backup, and why it failed."""


def await_backup(name: str, backup: str, state: State, clock: Clock, say: Say) -> str:
    """Wait until a backup of something is complete, and return the backup's id.

    Raises:
        OperationError: It failed, or takes more than 12 hours.
    """
    report = Changes(say)
    report(f"{name}: backup {backup} is being made.")

    def is_complete() -> bool:
        now, reason = state()
        report(f"{name}: backup {backup} is {now}.")
        if now.upper() not in USABLE:
            raise OperationError(f"backup {backup} of {name} is {now}: {reason or 'no reason is given'}")
        return now.upper() in MADE

    clock.wait(is_complete, report, every=_EVERY, limit=_LIMIT)
    return backup


def backup_cost(deployment: Deployment, file_system: FileSystem) -> Decimal | None:
    """Return what a backup of a file system costs in dollars per month at most, as if the file system were full.

    FSx bills what is stored (https://aws.amazon.com/fsx/lustre/pricing/). None: the price is not known.
    """
    prices = Prices(deployment.settings.region)
    return per_month(prices, products.LUSTRE_BACKUP, Decimal(file_system.capacity_gib))


def end_of_clusters(deployment: Deployment) -> datetime | None:
    """Return when the last cluster of all generations was deleted; None: one exists, or there was none."""
    if generations.existing(deployment):
        return None
    own = [each.settings.cluster_spec.name for each in clusters.known(deployment)]
    deleted = clusters.deleted_stacks(deployment, own)
    return max((each["DeletionTime"] for each in deleted if each["StackName"] in own), default=None)
