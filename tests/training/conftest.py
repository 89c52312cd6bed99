"""What the tests of a job's scripts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.step import Step


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)
