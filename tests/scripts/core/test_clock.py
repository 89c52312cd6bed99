"""Limits mean what they say: who waits asks until the limit, and once more at it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scripts.core.clock import Clock
from tests.properties import QUICK


class Played(Clock):
    """A clock that runs while somebody sleeps."""

    seconds = 0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += int(seconds)


@QUICK
@given(every=st.integers(1, 120), limit=st.integers(0, 300), true_after=st.integers(0, 400))
def test_a_condition_is_checked_until_the_limit_and_at_it(every: int, limit: int, true_after: int) -> None:
    clock, checked = Played(), list[int]()

    def condition() -> bool:
        checked.append(clock.seconds)
        return clock.seconds >= true_after

    assert clock.until(condition, every=every, limit=limit) is (true_after <= limit)
    moments = [*range(0, limit, every), limit]
    assert checked == [*(each for each in moments if each < true_after), *moments_from(moments, true_after)]


def moments_from(moments: list[int], second: int) -> list[int]:
    """Return the first of some moments that is not before a second; none: all are."""
    return [each for each in moments if each >= second][:1]
