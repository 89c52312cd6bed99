"""The order of an operation: everything starts as soon as what it waits for is done, as on AWS.

At speed `fast` time is virtual. A step is done when its duration has passed, and its work is carried out then, in the
order in which the steps get done. So whatever a template forgets to declare goes wrong here as it does on AWS: who does
not wait for a slow resource comes too early. At speed `real` the work itself may take long, and nobody waits for it but
who has to: each step's work has a thread.
"""

from __future__ import annotations

import heapq
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, Protocol

from emulator.clock import Clock

_INTERVAL: Final = 0.5
"""Seconds after which who waits looks whether the operation was cancelled."""


class StepError(Exception):
    """A step went wrong; it has said so itself."""


class Step(Protocol):
    """One resource's share of an operation."""

    @property
    def waits_for(self) -> frozenset[str]:
        """Names of the steps that have to be done before this one starts."""

    def start(self) -> float:
        """Announce the work, and return how many seconds it takes; infinity: as long as something outside takes."""

    def carry_out(self) -> None:
        """Do the work."""

    def cancel(self) -> None:
        """Give up what was announced: another step went wrong, or the operation was cancelled."""


def run(
    steps: Mapping[str, Step],
    clock: Clock,
    *,
    stop_at_failure: bool,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Carry out steps until all are done, or none can start any more.

    Args:
        steps: By name. Names in `waits_for` that are not here count as done.
        clock: Tells whether time passes.
        stop_at_failure: Whether nothing new starts once a step went wrong, and what has started is cancelled. Otherwise
            only what waits for it does not start.
        is_cancelled: Asked again and again whether to stop as if a step went wrong.

    Returns:
        Names of the steps that went wrong or were cancelled, in the order in which that happened.
    """
    waiting = dict(steps)
    schedule: _Schedule = _RealTime(steps) if clock.is_real else _VirtualTime(steps)
    done: set[str] = set()
    failed: list[str] = []

    def is_over() -> bool:
        return bool(failed and stop_at_failure) or is_cancelled()

    while True:
        for name in [name for name, step in waiting.items() if not step.waits_for & (steps.keys() - done)]:
            if is_over():
                break
            try:
                schedule.start(name, waiting.pop(name).start())
            except StepError:
                failed.append(name)
        if is_over():
            for name in schedule.cancelled():
                steps[name].cancel()
                failed.append(name)
        if not schedule.is_under_way:
            return failed
        outcome = schedule.next()
        if outcome is None:
            continue
        name, error = outcome
        if error is None:
            done.add(name)
        elif isinstance(error, StepError):
            failed.append(name)
        else:
            raise error


class _Schedule(ABC):
    """The steps that have started and are not done, by the time when they are; what takes forever comes last."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        self._steps = steps
        self._heap: list[tuple[float, int, str]] = []
        self._started = 0

    @property
    def is_under_way(self) -> bool:
        return bool(self._heap)

    def start(self, name: str, duration: float) -> None:
        heapq.heappush(self._heap, (self._finish(duration), self._started, name))
        self._started += 1

    def cancelled(self) -> list[str]:
        """Return the steps whose work has not started, the next first; they will not be carried out."""
        names = [name for _, _, name in sorted(self._heap)]
        self._heap.clear()
        return names

    @abstractmethod
    def next(self) -> tuple[str, Exception | None] | None:
        """Return a step whose work was carried out, and what went wrong; None after a while without one."""

    @abstractmethod
    def _finish(self, duration: float) -> float:
        """Return when a step is done that starts now."""


class _VirtualTime(_Schedule):
    """One step after the other, and no time passes."""

    _now = 0.0

    def next(self) -> tuple[str, Exception | None]:
        finish, _, name = heapq.heappop(self._heap)
        if finish < math.inf:
            self._now = finish
        return name, _outcome(self._steps[name])

    def _finish(self, duration: float) -> float:
        return self._now + duration


class _RealTime(_Schedule):
    """Each step's work in a thread, when its time has come; what waits for something outside starts to at once."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        super().__init__(steps)
        self._at_work = 0
        self._outcomes: SimpleQueue[tuple[str, Exception | None]] = SimpleQueue()

    @property
    def is_under_way(self) -> bool:
        return bool(self._heap) or self._at_work > 0

    def next(self) -> tuple[str, Exception | None] | None:
        while self._first <= time.monotonic():
            self._at_work += 1
            Thread(target=self._work, args=(heapq.heappop(self._heap)[2],), daemon=True).start()
        try:
            outcome = self._outcomes.get(timeout=min(_INTERVAL, max(self._first - time.monotonic(), 0)))
        except Empty:
            return None
        self._at_work -= 1
        return outcome

    def _finish(self, duration: float) -> float:
        return time.monotonic() + (duration if duration < math.inf else 0)

    @property
    def _first(self) -> float:
        return self._heap[0][0] if self._heap else math.inf

    def _work(self, name: str) -> None:
        self._outcomes.put((name, _outcome(self._steps[name])))


def _outcome(step: Step) -> Exception | None:
    try:
        step.carry_out()
    except Exception as error:
        return error
    return None
