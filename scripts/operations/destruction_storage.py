"""The file system's last backup, and the end of what the storage stack left behind on purpose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from scripts.deployment import Deployment
from scripts.operations import leftovers, stacks
from scripts.operations.clock import Clock
from scripts.operations.command import OperationError
from scripts.operations.leftovers_model import EXISTS, FINAL_BACKUP, Found
from scripts.operations.leftovers_removal import remove

Say = Callable[[str], None]

_LOOK, _LIMIT = 30.0, 12 * 3600.0
_HELD, _RELEASED_WITHIN = 15.0, 900.0
"""Seconds between two tries to delete a security group, and until FSx has given its interfaces back."""
_FILE_SYSTEM = "AWS::FSx::FileSystem"


def file_systems(deployment: Deployment, left: list[Found]) -> list[dict[str, Any]]:
    """Return the file systems of the storage stack, as FSx describes them, those that it left behind included.

    Needs cloudformation:DescribeStacks and :ListStackResources, fsx:DescribeFileSystems.
    """
    storage = deployment.stack_name("storage")
    ids = [each.id for each in left if each.type == _FILE_SYSTEM]
    if deployment.stack(storage) is not None:
        standing = [each for each in stacks.resources(deployment, storage) if each.type == _FILE_SYSTEM]
        ids += [each.physical_id for each in standing if each.status != "DELETE_COMPLETE" and each.physical_id]
    client = deployment.account.client("fsx")
    present = [each for each in dict.fromkeys(ids) if EXISTS[_FILE_SYSTEM](deployment, each)]
    return [client.describe_file_systems(FileSystemIds=[each])["FileSystems"][0] for each in present]


def hindrance(deployment: Deployment, file_system: dict[str, Any]) -> str:
    """Return why FSx takes no backup of a file system; empty: it does.

    https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateBackup.html. Needs
    fsx:DescribeDataRepositoryAssociations.
    """
    lustre = file_system["LustreConfiguration"]
    if lustre["DeploymentType"].startswith("SCRATCH"):
        return f"FSx backs up no {lustre['DeploymentType']} file system"
    own = [{"Name": "file-system-id", "Values": [file_system["FileSystemId"]]}]
    links = deployment.account.ask("fsx", "describe_data_repository_associations", Filters=own)["Associations"]
    return "FSx backs up no file system that is linked to S3" if links else ""


def back_up(deployment: Deployment, file_system: dict[str, Any], clock: Clock, say: Say) -> str:
    """Make the last backup of a file system, wait until it is there, and return its id.

    One that was begun since the cluster is gone is taken up again: nothing wrote to the file system after that.
    Needs fsx:CreateBackup, fsx:TagResource, fsx:DescribeBackups and cloudformation:ListStacks.

    Raises:
        OperationError: FSx could not make it, or not within 12 hours.
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

    if not clock.until(there, every=_LOOK, limit=_LIMIT):
        raise OperationError(f"backup {backup} of {name} is not there after {_LIMIT / 3600:.0f} hours")
    say(f"{name}: backup {backup} is there.")
    return str(backup)


def _begun(deployment: Deployment, file_system_id: str) -> str | None:
    """Return the backup that an interrupted call began; None: there is none, or the cluster wrote after it."""
    since = _end_of_cluster(deployment)
    if since is None:
        return None
    deployment.account.forget()
    own = [{"Name": "file-system-id", "Values": [file_system_id]}]
    for each in deployment.account.list("fsx", "describe_backups", Filters=own):
        tag = {"Key": FINAL_BACKUP, "Value": deployment.settings.name}
        if tag in each.get("Tags", []) and each["Lifecycle"] != "FAILED" and each["CreationTime"] > since:
            return str(each["BackupId"])
    return None


def _end_of_cluster(deployment: Deployment) -> datetime | None:
    own = deployment.settings.cluster_spec.name
    deleted = leftovers.deleted_stacks(deployment, [own])
    ends: list[datetime] = [each["DeletionTime"] for each in deleted if each["StackName"] == own]
    return max(ends, default=None)


def remove_kept(deployment: Deployment, found: Found, clock: Clock) -> None:
    """Remove what the storage stack left behind; a security group, once FSx has given back its interfaces.

    Raises:
        OperationError: It did not go in time.
        botocore.exceptions.ClientError: AWS refused it.
    """
    from botocore.exceptions import ClientError

    def gone() -> bool:
        try:
            remove(deployment, found, clock)
        except ClientError as error:
            if error.response["Error"]["Code"] == "DependencyViolation":
                return False
            raise
        return True

    if not clock.until(gone, every=_HELD, limit=_RELEASED_WITHIN):
        raise OperationError(f"{found.id} is still in use after {_RELEASED_WITHIN / 60:.0f} minutes")
