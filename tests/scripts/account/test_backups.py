"""Which last backup an interrupted call made, so that none is made again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from config.settings import load
from scripts.account import backups
from scripts.account.backups import Backup, started_since
from scripts.account.deployment import Deployment
from scripts.change.destroy import storage, team
from scripts.core.options import CONFIG

DEPLOYMENT = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
SINCE = datetime(2026, 11, 22, tzinfo=UTC)
LAST = Backup("backup-1", "fs-1", "CREATING", SINCE + timedelta(hours=1), "trn1-16")


def test_the_newest_last_backup_since_the_end_of_the_clusters_is_used() -> None:
    newer = replace(LAST, id="backup-2", started=SINCE + timedelta(hours=2))
    others = [
        replace(newer, of="fs-2"),
        replace(newer, final_of="trn1-16-2"),
        *(
            replace(newer, state=state)
            for state in ("failed", "DELETING", "DELETED", "EXPIRED", "recoverable", "", "PARTIAL")
        ),
        replace(LAST, started=SINCE),
    ]
    assert started_since([newer, LAST, *others], "fs-1", DEPLOYMENT, SINCE) == "backup-2"
    assert started_since(others, "fs-1", DEPLOYMENT, SINCE) is None
    assert started_since([LAST], "fs-1", DEPLOYMENT, None) is None, "a cluster may write"


@pytest.mark.parametrize(("kept", "made"), [(["arn-1"], "arn-1"), ([], "arn-2")], ids=["there", "deleted since"])
def test_a_job_that_is_complete_counts_only_while_its_recovery_point_is_there(
    monkeypatch: pytest.MonkeyPatch, kept: list[str], made: str
) -> None:
    job = {"BackupJobId": "1", "CreationDate": LAST.started, "State": "COMPLETED", "RecoveryPointArn": "arn-1"}
    client = Mock()
    client.list_backup_jobs.return_value = {"BackupJobs": [job]}
    client.start_backup_job.return_value = {"BackupJobId": "2", "RecoveryPointArn": "arn-2"}
    account = SimpleNamespace(client=lambda _: client)
    monkeypatch.setattr(backups, "has_vault", lambda *_: True)
    monkeypatch.setattr(backups, "of_homes", lambda _: [replace(LAST, id=each, state="COMPLETED") for each in kept])
    monkeypatch.setattr(storage, "end_of_clusters", lambda _: SINCE)
    deployment = SimpleNamespace(account=account, settings=DEPLOYMENT.settings)
    assert team._start_job(deployment, SimpleNamespace(role="role"), "arn:fs")[0] == made  # type: ignore[arg-type]
