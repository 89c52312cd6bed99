"""Which last backup an interrupted call made, so that none is made again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from config.settings import load
from scripts.account.backups import Backup, started_since
from scripts.account.deployment import Deployment
from scripts.core.options import CONFIG

DEPLOYMENT = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
SINCE = datetime(2026, 11, 22, tzinfo=UTC)
LAST = Backup("backup-1", "fs-1", "CREATING", SINCE + timedelta(hours=1), "trn1-16")


def test_the_newest_last_backup_since_the_end_of_the_clusters_is_used() -> None:
    newer = replace(LAST, id="backup-2", started=SINCE + timedelta(hours=2))
    others = [
        replace(newer, of="fs-2"),
        replace(newer, final_of="trn1-16-2"),
        replace(newer, state="failed"),
        replace(LAST, started=SINCE),
    ]
    assert started_since([newer, LAST, *others], "fs-1", DEPLOYMENT, SINCE) == "backup-2"
    assert started_since(others, "fs-1", DEPLOYMENT, SINCE) is None
    assert started_since([LAST], "fs-1", DEPLOYMENT, None) is None, "a cluster may write"
