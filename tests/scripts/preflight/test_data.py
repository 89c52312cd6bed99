"""Buckets that may not be looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scripts.preflight.check import Status
from scripts.preflight.data import data_bucket
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.cases_data import BUCKET
from tests.scripts.preflight.conftest import GoodAccount

OTHER = "other-bucket"


def test_a_closed_bucket_hides_no_other(
    good_account: Callable[..., GoodAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    def linked(raw: dict[str, Any]) -> None:
        raw["storage"]["file_system"]["backup_retention_days"] = 0
        raw["storage"]["data_repositories"] = [{"path": "/a", "bucket": BUCKET}, {"path": "/b", "bucket": OTHER}]

    account = good_account("trn1-16", Case(data_bucket, Status.PASS, edit=linked).settings())
    statement = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{OTHER}"}
    with account.aws.restricted({"Version": "2012-10-17", "Statement": [statement]}) as settings:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        closed, open_ = account.look(data_bucket)
    assert (closed.subject, closed.status) == (BUCKET, Status.UNKNOWN)
    assert "another account's" in closed.sentence
    assert f"s3:ListBucket on arn:aws:s3:::{BUCKET}" in closed.hint
    assert (open_.subject, open_.status) == (OTHER, Status.PASS)
