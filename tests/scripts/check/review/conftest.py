"""ParallelCluster's code loaded once for all comments."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from scripts.check.plan import plan
from tests.scripts.check.plan.conftest import parallelcluster as parallelcluster  # noqa: PLC0414 - re-exported
from toolchain.parallelcluster import ParallelCluster


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch: pytest.MonkeyPatch, parallelcluster: ParallelCluster) -> None:
    monkeypatch.setattr(plan, "ParallelCluster", lambda _: nullcontext(parallelcluster))
