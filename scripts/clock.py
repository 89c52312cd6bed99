"""Time as programs see it that wait for AWS; tests let it pass as they like."""

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
        """Let time pass."""
        time.sleep(seconds)

    def until(self, holds: Callable[[], bool], *, every: float, limit: float) -> bool:
        """Wait until something holds, and return whether it did in time.

        Args:
            holds: Looks whether it does; called at least once.
            every: Seconds between two looks.
            limit: Seconds to wait at most.
        """
        began = self.now()
        while not holds():
            if (self.now() - began).total_seconds() + every > limit:
                return False
            self.sleep(every)
        return True
