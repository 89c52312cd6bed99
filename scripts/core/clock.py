"""The time as commands see it that wait for AWS; tests replace it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

from scripts.core import interrupts
from scripts.core.errors import OperationError

LONGEST_PAUSE = "ULTRACLUSTER_LONGEST_PAUSE"
"""Environment variable: the most seconds between two calls while a command waits. It is for an emulated AWS."""


class Clock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait, but for no longer than `LONGEST_PAUSE` says.

        Raises:
            KeyboardInterrupt: A signal has stopped this command, meanwhile or before.
        """
        interrupts.check()
        time.sleep(min(seconds, float(os.environ.get(LONGEST_PAUSE, seconds))))

    def until(self, condition: Callable[[], bool], *, every: float, limit: float) -> bool:
        """Wait until a condition is true, and return whether it was in time.

        The last check is at the limit, however long it is between two of them.

        Args:
            condition: Checks once; called at least once.
            every: Seconds between two checks.
            limit: Seconds to wait.
        """
        started = self.now()
        while not condition():
            if not self.pause(every, started, limit):
                return False
        return True

    def pause(self, seconds: float, started: datetime, limit: float) -> bool:
        """Wait between two checks, but not beyond the limit; return whether there was time left.

        Args:
            seconds: How long.
            started: When the first check was.
            limit: Seconds after that.
        """
        left = limit - (self.now() - started).total_seconds()
        if left <= 0:
            return False
        self.sleep(min(seconds, left))
        return True

    def wait(self, condition: Callable[[], bool], report: Changes, *, every: float, limit: float) -> None:
        """Wait until a condition, which reports what it waits for, is true; the rest as `until` and `with_retries`.

        Raises:
            OperationError: It is not true in time; the message has the last report.
        """
        if not self.until(with_retries(condition, self, report, limit), every=every, limit=limit):
            raise OperationError(
                f"{report.last} Stopped waiting after {limit / 60:.0f} min.", "the same command continues to wait"
            )


SECONDS_OF_SILENCE = 600.0
"""How long AWS or a head node may give no answer before `with_retries` gives up."""


class Changes:
    """Passes on a message only if it differs from the last one."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.last = ""

    def __call__(self, message: str) -> None:
        """Say a message, unless it was the last one."""
        if message != self.last:
            self._say(message)
        self.last = message


def with_retries(
    condition: Callable[[], bool], clock: Clock, report: Changes, limit: float = SECONDS_OF_SILENCE
) -> Callable[[], bool]:
    """Return a condition that counts "no answer" as "not yet", for `SECONDS_OF_SILENCE` in a row.

    After that, and at once if the credentials are not valid any more or a permission is missing, it raises what the
    last check raised. The message names `limit`, the seconds that the caller waits at most, where that is less.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.core.aws_errors import credentials_hint, is_denied
    from scripts.core.errors import HeadNodeError

    silent_since: datetime | None = None

    def check() -> bool:
        nonlocal silent_since
        try:
            is_true = condition()
        except (BotoCoreError, ClientError, HeadNodeError) as error:
            silent_since = silent_since or clock.now()
            is_over = (clock.now() - silent_since).total_seconds() >= SECONDS_OF_SILENCE
            if is_over or is_denied(error) or credentials_hint(error):
                raise
            minutes = min(limit, SECONDS_OF_SILENCE) / 60
            report(f"No answer, trying again for {minutes:.0f} min at most: {error}")
            return False
        silent_since = None
        return is_true

    return check
