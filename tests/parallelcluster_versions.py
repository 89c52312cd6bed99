"""A version of ParallelCluster that there is not, and that differs from the pinned one in every fact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import pytest

from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS, ParallelClusterVersion

OTHER = "9.9.9"
FACTS = [each.name for each in fields(ParallelClusterVersion) if "move" in each.metadata]
"""What differs between versions."""


@contextmanager
def another_version() -> Iterator[ParallelClusterVersion]:
    """Have a row for it in the table."""
    pinned = VERSIONS[PINNED]
    values: dict[str, Any] = {fact: _other(getattr(pinned, fact)) for fact in FACTS}
    values["lambda_runtime"] = "python3.13"  # one that Lambda knows
    row = replace(pinned, version=OTHER, tried=False, **values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VERSIONS, OTHER, row)
        yield row


def _other(value: str | int) -> str | int:
    return value + 32 if isinstance(value, int) else f"{value}.other"
