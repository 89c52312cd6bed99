"""The time as commands see it that wait for AWS; tests replace it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class Clock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def until(self, condition: Callable[[], bool], *, every: float, limit: float) -> bool:
        """Wait until a condition is true, and return whether it was in time.

        Args:
            condition: Checks once; called at least once.
            every: Seconds between two checks.
            limit: Seconds to wait at most.
        """
        started = self.now()
        while not condition():
            if (self.now() - started).total_seconds() + every > limit:
                return False
            self.sleep(every)
        return True
