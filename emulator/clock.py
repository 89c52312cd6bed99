"""Time as stacks see it."""

from __future__ import annotations

import time
from typing import Final, Literal

Speed = Literal["fast", "real"]


class Clock:
    """Time as stacks see it: at speed `real` it passes, at speed `fast` nothing is waited for."""

    _FAST_PATIENCE: Final = 4.0

    def __init__(self, speed: Speed, limit: float = 30.0) -> None:
        """Start it; at speed `fast` nothing waits for longer than the limit, in seconds."""
        self._real = speed == "real"
        self._limit = limit

    @property
    def is_real(self) -> bool:
        """Tell whether time passes."""
        return self._real

    def sleep(self, duration: float) -> None:
        """Let so many seconds pass."""
        if self._real:
            time.sleep(duration)

    def limit(self, duration: float) -> float:
        """Return how many seconds to wait for an answer that AWS would wait `duration` for."""
        return duration if self._real else min(duration, self._limit)

    @property
    def patience(self) -> float:
        """Return how many seconds a request may wait for the operation that it starts.

        The tools look at a stack every five seconds. An operation that takes less is done when they look first.
        """
        return 0.0 if self._real else self._FAST_PATIENCE
