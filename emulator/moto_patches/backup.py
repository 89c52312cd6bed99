"""AWS Backup: jobs on demand, recovery points and settings of a Region, which moto lacks; nothing is copied.

https://docs.aws.amazon.com/aws-backup/latest/devguide/API_StartBackupJob.html,
https://docs.aws.amazon.com/aws-backup/latest/devguide/API_UpdateRegionSettings.html
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import moto.backup.urls
from moto.backup.responses import BackupResponse
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, EmptyResult


class Backup(BackupResponse):
    """AWS Backup whose jobs are still running when they are looked at first."""

    def start_backup_job(self) -> ActionResult:
        vault, resource = self._get_param("BackupVaultName"), self._get_param("ResourceArn")
        self.backup_backend.describe_backup_vault(vault)
        job_id, now = str(uuid4()), datetime.now(UTC)
        arn = f"arn:aws:backup:{self.region}:{self.current_account}:recovery-point:{uuid4()}"
        self._jobs[job_id] = {
            "BackupJobId": job_id,
            "BackupVaultName": vault,
            "ResourceArn": resource,
            "RecoveryPointArn": arn,
            "CreationDate": now,
            "State": "RUNNING",
            "IamRoleArn": self._get_param("IamRoleArn"),
        }
        self._points[arn] = {
            "RecoveryPointArn": arn,
            "BackupVaultName": vault,
            "ResourceArn": resource,
            "ResourceType": "EFS",
            "CreationDate": now,
            "Status": "COMPLETED",
            "BackupSizeInBytes": 0,
        }
        return ActionResult({"BackupJobId": job_id, "RecoveryPointArn": arn, "CreationDate": now})

    def describe_backup_job(self) -> ActionResult:
        job_id = unquote(self.path.rpartition("/")[2])
        if job_id not in self._jobs:
            raise JsonRESTError("ResourceNotFoundException", f"Job {job_id} does not exist.")
        described = dict(self._jobs[job_id])
        self._jobs[job_id]["State"] = "COMPLETED"  # for who looks again
        return ActionResult(described)

    def list_backup_jobs(self) -> ActionResult:
        wanted = self._get_param("resourceArn")
        return ActionResult(
            {"BackupJobs": [each for each in self._jobs.values() if wanted in (None, each["ResourceArn"])]}
        )

    def list_recovery_points_by_backup_vault(self) -> ActionResult:
        vault = unquote(self.path.split("/")[2])
        self.backup_backend.describe_backup_vault(vault)
        return ActionResult(
            {"RecoveryPoints": [each for each in self._points.values() if each["BackupVaultName"] == vault]}
        )

    def delete_recovery_point(self) -> EmptyResult:
        arn = unquote(self.path.partition("/recovery-points/")[2])
        if self._points.pop(arn, None) is None:
            raise JsonRESTError("ResourceNotFoundException", f"Recovery point {arn} does not exist.")
        return EmptyResult()

    def delete_backup_vault(self) -> EmptyResult:
        vault = unquote(self.path.rpartition("/")[2])
        if any(each["BackupVaultName"] == vault for each in self._points.values()):
            raise JsonRESTError("InvalidRequestException", f"Backup vault {vault} contains recovery points.")
        self.backup_backend.delete_backup_vault(vault)
        return EmptyResult()

    def describe_region_settings(self) -> ActionResult:
        return ActionResult({"ResourceTypeOptInPreference": self._opt_ins})

    def update_region_settings(self) -> EmptyResult:
        self._opt_ins.update(self._get_param("ResourceTypeOptInPreference", {}))
        return EmptyResult()

    @property
    def _opt_ins(self) -> dict[str, bool]:
        opt_ins: dict[str, bool] = vars(self.backup_backend).setdefault("opt_ins", {"EBS": True, "EFS": True})
        return opt_ins

    @property
    def _jobs(self) -> dict[str, dict[str, Any]]:
        jobs: dict[str, dict[str, Any]] = vars(self.backup_backend).setdefault("jobs", {})
        return jobs

    @property
    def _points(self) -> dict[str, dict[str, Any]]:
        points: dict[str, dict[str, Any]] = vars(self.backup_backend).setdefault("points", {})
        return points


def add_backup_jobs() -> None:
    """Let moto serve jobs, recovery points and settings, too."""
    points = "backup-vaults/(?P<vault>[^/]+)/recovery-points"
    jobs = ("backup-jobs", "backup-jobs/(?P<job>[^/]+)")
    paths = ("account-settings", *jobs, f"{points}/", f"{points}/(?P<point>.+)")
    urls = dict.fromkeys([*moto.backup.urls.url_paths, *(f"{{0}}/{each}$" for each in paths)], Backup.dispatch)
    moto.backup.urls.url_paths = urls
