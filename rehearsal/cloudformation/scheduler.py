"""The order of an operation: everything starts as soon as what it waits for is done, as on AWS.

Time is virtual. A step is done when its duration has passed, and its work is carried out then, in the order in which
the steps get done. So whatever a template forgets to declare goes wrong here as it does on AWS: who does not wait for a
slow resource comes too early.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Protocol

from rehearsal.cloudformation.durations import Clock


class StepError(Exception):
    """A step went wrong; it has said so itself."""


class Step(Protocol):
    """One resource's share of an operation."""

    @property
    def waits_for(self) -> frozenset[str]:
        """Names of the steps that have to be done before this one starts."""

    def begin(self) -> float:
        """Announce the work, and return how many seconds it takes; infinity: until nothing else is under way."""

    def carry_out(self) -> None:
        """Do the work."""

    def cancel(self) -> None:
        """Give up what was announced: another step went wrong."""


def run(steps: Mapping[str, Step], clock: Clock, *, stop_at_failure: bool) -> list[str]:
    """Carry out steps until all are done, or none can start any more.

    Args:
        steps: By name. Names in `waits_for` that are not here count as done.
        clock: Lets time pass.
        stop_at_failure: Whether nothing new starts once a step went wrong, and what has begun is cancelled. Otherwise
            only what waits for it does not start.

    Returns:
        Names of the steps that went wrong or were cancelled, in the order in which that happened.
    """
    waiting = dict(steps)
    under_way: list[tuple[float, int, str]] = []
    done: set[str] = set()
    failed: list[str] = []
    now = 0.0
    begun = 0
    while True:
        ready = [name for name, step in waiting.items() if not step.waits_for & (steps.keys() - done)]
        for name in ready if not (failed and stop_at_failure) else []:
            step = waiting.pop(name)
            try:
                heapq.heappush(under_way, (now + step.begin(), begun, name))
            except StepError:
                failed.append(name)
                if stop_at_failure:
                    break
            begun += 1
        if failed and stop_at_failure:
            for _, _, name in sorted(under_way):
                steps[name].cancel()
                failed.append(name)
            return failed
        if not under_way:
            return failed
        finish, _, name = heapq.heappop(under_way)
        if finish < math.inf:
            clock.sleep(finish - now)
            now = finish
        try:
            steps[name].carry_out()
            done.add(name)
        except StepError:
            failed.append(name)
