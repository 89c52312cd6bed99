"""The file system's last backup, and the end of what the storage stack left behind on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from scripts import generations, stacks
from scripts.clock import Clock
from scripts.command import OperationError, Say
from scripts.deployment import Deployment
from scripts.estimate import products
from scripts.estimate.prices import Prices
from scripts.fleet.jobs import Changes, patiently
from scripts.inventory import leftovers_stacks
from scripts.inventory.costs import per_month
from scripts.inventory.leftovers_model import EXISTS, FINAL_BACKUP, Found

_LOOK, _LIMIT = 30.0, 12 * 3600.0
_FILE_SYSTEM, _GROUP, _BUCKET = "AWS::FSx::FileSystem", "AWS::EC2::SecurityGroup", "AWS::S3::Bucket"
_KEEPS = ("Retain", "RetainExceptOnCreate")
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html"""
LINKED = "FSx backs up no file system that is linked to S3"
DRAINING = (
    " First wait until what was written is exported to S3: its CloudWatch metric AgeOfOldestQueuedMessage is zero, or "
    "an export data repository task has ended."
)
"""https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystem.html"""


@dataclass(frozen=True)
class Storage:
    """What there is of the storage of a deployment, whatever the settings file says by now.

    Attributes:
        file_systems: File systems of the stack and those that it left behind, as FSx describes them.
        groups: Ids of the security groups, in the same way.
        buckets: Names of the buckets, in the same way.
        retained: Ids of what the stack, as it was deployed, leaves behind when it is deleted, or has left behind.
        kept: What it has left behind.
    """

    file_systems: tuple[dict[str, Any], ...] = ()
    groups: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    retained: frozenset[str] = frozenset()
    kept: tuple[Found, ...] = ()


def look(deployment: Deployment) -> Storage:
    """Return what there is of the storage.

    Needs what `leftovers_stacks.kept_by_storage` needs, and cloudformation:GetTemplate.
    """
    stack = deployment.stack_name("storage")
    kept = leftovers_stacks.kept_by_storage(deployment)
    there = stacks.resources(deployment, stack) if deployment.stack(stack) is not None else []
    present = [(each.type, each.physical_id) for each in there if each.physical_id and each.status != "DELETE_COMPLETE"]
    present += [(each.type, each.id) for each in kept]

    def of(kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each, name in present if each == kind))

    described = deployment.account.client("fsx").describe_file_systems
    return Storage(
        tuple(
            described(FileSystemIds=[each])["FileSystems"][0]
            for each in of(_FILE_SYSTEM)
            if EXISTS[_FILE_SYSTEM](deployment, each)
        ),
        of(_GROUP),
        of(_BUCKET),
        frozenset({each.id for each in kept} | _retained(deployment, stack)),
        tuple(kept),
    )


def going(kept: Sequence[Found], *, bucket: bool) -> list[Found]:
    """Return what of that which the storage stack left behind goes with it: a bucket only if that is wanted."""
    return [each for each in kept if each.type in (_FILE_SYSTEM, _GROUP) or (bucket and each.type == _BUCKET)]


def _retained(deployment: Deployment, stack: str) -> set[str]:
    """Return the ids of what a stack leaves behind by the policies that are deployed."""
    ids = deployment.physical_ids(stack)
    if not ids:
        return set()
    template = deployment.account.ask("cloudformation", "get_template", StackName=stack)["TemplateBody"]
    policies = {name: each.get("DeletionPolicy") for name, each in template["Resources"].items()}
    return {physical_id for name, physical_id in ids.items() if policies.get(name) in _KEEPS}


def hindrance(deployment: Deployment, file_system: dict[str, Any]) -> str:
    """Return why FSx takes no backup of a file system; empty: it does.

    https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateBackup.html. Needs
    fsx:DescribeDataRepositoryAssociations.
    """
    lustre = file_system["LustreConfiguration"]
    if lustre["DeploymentType"].startswith("SCRATCH"):
        return f"FSx backs up no {lustre['DeploymentType']} file system"
    return LINKED if _links(deployment, file_system) else ""


def is_freed(deployment: Deployment, storage: Storage, file_system: dict[str, Any]) -> bool:
    """Tell whether the stack takes the links of a file system away and leaves it behind, so that it can be backed up.

    Needs what `hindrance` needs.
    """
    links = _links(deployment, file_system)
    own = deployment.physical_ids(deployment.stack_name("storage")).values()
    return bool(links) and file_system["FileSystemId"] in storage.retained and links <= {*own}


def _links(deployment: Deployment, file_system: dict[str, Any]) -> set[str]:
    own = [{"Name": "file-system-id", "Values": [file_system["FileSystemId"]]}]
    found = deployment.account.ask("fsx", "describe_data_repository_associations", Filters=own)["Associations"]
    return {each["AssociationId"] for each in found}


def back_up(deployment: Deployment, file_system: dict[str, Any], clock: Clock, say: Say) -> str:
    """Make the last backup of a file system, wait until it is there, and return its id.

    One that was begun since the last cluster is gone is taken up again: nothing wrote to the file system after that.
    Needs fsx:CreateBackup, fsx:TagResource, fsx:DescribeBackups, and cloudformation:DescribeStacks and :ListStacks.

    Raises:
        OperationError: FSx could not make it, or not within 12 hours.
        botocore.exceptions.ClientError: FSx refused it, or gave no answer for as long as `patiently` takes none.
    """
    fsx, name = deployment.account.client("fsx"), file_system["FileSystemId"]
    backup = _begun(deployment, name)
    if backup is None:
        tags = {
            **deployment.settings.tags,
            "Name": f"{deployment.settings.name} final",
            FINAL_BACKUP: deployment.settings.name,
        }
        made = fsx.create_backup(FileSystemId=name, Tags=[{"Key": key, "Value": tags[key]} for key in tags])
        backup = made["Backup"]["BackupId"]
    say(f"{name}: backup {backup} is being made.")

    def there() -> bool:
        [found] = fsx.describe_backups(BackupIds=[backup])["Backups"]
        if found["Lifecycle"] == "FAILED":
            raise OperationError(f"backup {backup} of {name} failed: {found.get('FailureDetails', {}).get('Message')}")
        return bool(found["Lifecycle"] == "AVAILABLE")

    if not clock.until(patiently(there, clock, Changes(say)), every=_LOOK, limit=_LIMIT):
        raise OperationError(f"backup {backup} of {name} is not there after {_LIMIT / 3600:.0f} hours")
    say(f"{name}: backup {backup} is there.")
    return str(backup)


def backup_cost(deployment: Deployment, file_system: dict[str, Any]) -> Decimal | None:
    """Return what a backup of a file system costs in dollars per month at most, as if the file system were full.

    FSx bills what is stored (https://aws.amazon.com/fsx/lustre/pricing/). None: the price is not known.
    """
    prices = Prices(deployment.settings.region)
    return per_month(prices, products.LUSTRE_BACKUP, Decimal(file_system["StorageCapacity"]))


def _begun(deployment: Deployment, file_system_id: str) -> str | None:
    """Return the backup that an interrupted call began; None: there is none, or a cluster may have written since."""
    deployment.account.forget()
    since = _end_of_clusters(deployment)
    if since is None:
        return None
    own = [{"Name": "file-system-id", "Values": [file_system_id]}]
    for each in deployment.account.list("fsx", "describe_backups", Filters=own):
        tag = {"Key": FINAL_BACKUP, "Value": deployment.settings.name}
        if tag in each.get("Tags", []) and each["Lifecycle"] != "FAILED" and each["CreationTime"] > since:
            return str(each["BackupId"])
    return None


def _end_of_clusters(deployment: Deployment) -> datetime | None:
    """Return when the last cluster of whichever generation was gone; None: one is there, or there was none."""
    if generations.existing(deployment):
        return None
    own = [each.settings.cluster_spec.name for each in leftovers_stacks.known(deployment)]
    deleted = leftovers_stacks.deleted(deployment, own)
    ends: list[datetime] = [each["DeletionTime"] for each in deleted if each["StackName"] in own]
    return max(ends, default=None)
