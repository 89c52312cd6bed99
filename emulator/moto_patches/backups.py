"""Backups of Amazon FSx file systems: a list, in which nothing is copied."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
from typing import Any, Final
from uuid import uuid4

from moto.core.exceptions import JsonRESTError
from moto.fsx.models import Backup

from emulator.moto_patches.fsx import FileSystems

_LARGEST_PAGE: Final = 50


class Fsx(FileSystems):
    """FSx with backups, made by the user or with the deletion of a file system."""

    def create_backup(self) -> str:
        return json.dumps({"Backup": self._described_backup(self._back_up(self._body["FileSystemId"], self._body))})

    def describe_backups(self) -> str:
        """Tell of backups; a new one is still being created when it is looked at first."""
        wanted = self._body.get("BackupIds")
        found = [self._backup(each) for each in wanted] if wanted else list(self.fsx_backend.backups.values())
        for condition in self._body.get("Filters", []):
            found = [each for each in found if _filtered(each, condition["Name"]) in condition["Values"]]
        start = int(self._body.get("NextToken", 0))
        end = start + self._body.get("MaxResults", _LARGEST_PAGE)
        described = [self._described_backup(each) for each in found[start:end]]
        for each in found[start:end]:
            each.lifecycle = "AVAILABLE"  # for who looks again
        return json.dumps({"Backups": described, **({"NextToken": str(end)} if end < len(found) else {})})

    def delete_backup(self) -> str:
        backup = self._backup(self._body["BackupId"])
        if backup.lifecycle == "CREATING":
            raise JsonRESTError("BackupInProgress", "The backup is still being created.")
        del self.fsx_backend.backups[backup.backup_id]
        return json.dumps({"BackupId": backup.backup_id, "Lifecycle": "DELETED"})

    def delete_file_system(self) -> str:
        """Take a final backup, if that is asked for.

        https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystemLustreConfiguration.html
        """
        file_system_id = self._body["FileSystemId"]
        options = self._body.get("LustreConfiguration", {})
        response = {}
        if not options.get("SkipFinalBackup", True):
            final = self._back_up(file_system_id, {"Tags": options.get("FinalBackupTags", [])})
            response = {"FinalBackupId": final.backup_id, "FinalBackupTags": options.get("FinalBackupTags", [])}
        super().delete_file_system()
        return json.dumps({"FileSystemId": file_system_id, "Lifecycle": "DELETING", "LustreResponse": response})

    def _back_up(self, file_system_id: str, request: dict[str, Any]) -> Backup:
        """Start a backup.

        Refused as documented (https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateBackup.html), with the code
        of another refused kind (https://github.com/aws/aws-sdk/issues/183).
        """
        described = self._described(self._file_system(file_system_id))
        deployment_type = described.get("LustreConfiguration", {}).get("DeploymentType", "")
        if not deployment_type.startswith("PERSISTENT") or any(self._associations_of(file_system_id)):
            raise JsonRESTError(
                "UnsupportedOperation",
                "Backups are supported only for file systems with a Persistent deployment type that are not linked to "
                "a data repository.",
            )
        others = [each for each in self.fsx_backend.backups.values() if each.file_system_id == file_system_id]
        if any(each.lifecycle == "CREATING" for each in others):
            raise JsonRESTError("BackupInProgress", "Another backup is already under way.")
        backup = self.fsx_backend.create_backup(file_system_id, None, None, None)
        del self.fsx_backend.backups[backup.backup_id]
        backup.backup_id = f"backup-{uuid4().hex[:17]}"
        backup.resource_arn = f"{backup.resource_arn.rpartition('/')[0]}/{backup.backup_id}"
        vars(backup)["file_system"] = described
        self.fsx_backend.backups[backup.backup_id] = backup
        self.fsx_backend.tagger.tag_resource(backup.resource_arn, request.get("Tags", []))
        return backup

    def _backup(self, backup_id: str) -> Backup:
        if backup_id not in self.fsx_backend.backups:
            raise JsonRESTError("BackupNotFound", f"Backup '{backup_id}' does not exist.")
        return self.fsx_backend.backups[backup_id]

    def _described_backup(self, backup: Backup) -> dict[str, Any]:
        return {
            "BackupId": backup.backup_id,
            "Lifecycle": backup.lifecycle,
            "Type": "USER_INITIATED",
            "ProgressPercent": 100 if backup.lifecycle == "AVAILABLE" else 0,
            "CreationTime": backup.creation_time,
            "ResourceARN": backup.resource_arn,
            "Tags": self.fsx_backend.list_tags_for_resource(backup.resource_arn),
            "FileSystem": vars(backup)["file_system"],
            "OwnerId": self.current_account,
            "ResourceType": "FILE_SYSTEM",
        }


def _filtered(backup: Backup, name: str) -> str:
    """Return what a filter of DescribeBackups looks at."""
    file_system = vars(backup)["file_system"]
    values = {
        "file-system-id": backup.file_system_id,
        "backup-type": "USER_INITIATED",
        "file-system-type": file_system["FileSystemType"],
    }
    if name not in values:
        raise JsonRESTError("BadRequest", f"Invalid filter: {name}")
    return str(values[name])
