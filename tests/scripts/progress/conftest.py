"""CloudFormation as `told_account` has it, for the tests of progress."""

from __future__ import annotations

import pytest

from tests.scripts.progress.told_account import ToldClock, ToldCloudFormation


@pytest.fixture
def clock() -> ToldClock:
    return ToldClock()


@pytest.fixture
def told(clock: ToldClock) -> ToldCloudFormation:
    return ToldCloudFormation(clock)
