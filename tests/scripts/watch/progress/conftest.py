"""CloudFormation as `fake_cloudformation` has it, for the tests of progress."""

from __future__ import annotations

import pytest

from tests.scripts.watch.progress.fake_cloudformation import FakeClock, FakeCloudFormation


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def api(clock: FakeClock) -> FakeCloudFormation:
    return FakeCloudFormation(clock)
