"""Follows the creation, update, roll-back or deletion of a deployment's stacks to its end."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import TYPE_CHECKING

from scripts.core.errors import ExitCode, UnusableError
from scripts.core.figures import counted
from scripts.watch.progress.model import Progress
from scripts.watch.progress.tracker import GRACE_SECONDS, Tracker

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.account.deployment import Deployment
    from scripts.core.clock import Clock
    from scripts.watch.progress.screen import Screen

SECONDS_BETWEEN_REFRESHES = 10.0
LONGEST_SECONDS_BETWEEN_REFRESHES = 60.0
SECONDS_WITHOUT_ANSWER = 300.0
"""How long AWS may be out of reach."""
CONTINUES = "What was started continues in AWS. The same command resumes where this one stops."


def watch(
    deployment: Deployment,
    console: Console,
    *,
    clock: Clock,
    as_json: bool,
    timeout: float | None = None,
    grace: float = GRACE_SECONDS,
) -> int:
    """Show an operation on a deployment until it has ended, and return the exit code.

    Everything comes from CloudFormation, so that it may be stopped and started again at any time, anywhere. A terminal
    shows a picture that changes, anything else lines; with `as_json` JSON lines go to standard output instead. It takes
    `timeout` minutes at most, and ends once nothing was in progress for `grace` seconds.

    Returns:
        0: it ended as intended, or nothing was started; 1: it failed or was rolled back; 124: the time is over.

    Raises:
        UnusableError: AWS refused, such as for expired credentials, or did not answer for some minutes.
    """
    from scripts.watch.progress.screen import screen

    with screen(deployment, console, as_json=as_json) as shown:
        try:
            return _follow(Tracker(deployment), shown, clock, timeout, grace)
        except KeyboardInterrupt:
            shown.stop(CONTINUES)
            raise


def _follow(tracker: Tracker, screen: Screen, clock: Clock, timeout: float | None, grace: float) -> int:
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.core.aws_errors import explain, hint

    started = answered = clock.now()
    current: Progress | None = None
    interval = SECONDS_BETWEEN_REFRESHES
    while True:
        now = clock.now()
        try:
            current = tracker.read(now, grace)
            answered, interval = now, SECONDS_BETWEEN_REFRESHES
        except (BotoCoreError, ClientError) as error:
            is_over = (now - answered).total_seconds() > SECONDS_WITHOUT_ANSWER
            if current is None or is_over or not _is_temporary(error):
                raise UnusableError(f"{error}\n{CONTINUES}", hint(error)) from None
            current = current.model_copy(update={"time": now, "complete": False, "trouble": explain(error)})
            interval = min(interval * 2, LONGEST_SECONDS_BETWEEN_REFRESHES)
        if _has_ended(current, len(tracker.deployment.settings.parts), started, grace):
            screen.end(current.model_copy(update={"kind": "summary"}))
            return ExitCode.DONE if current.outcome in ("complete", "nothing") else ExitCode.FAILED
        screen.show(current)
        if not clock.pause(interval, started, inf if timeout is None else timeout * 60):
            screen.stop(f"The limit of {counted(timeout or 0, 'minutes')} is over. {CONTINUES}")
            return ExitCode.TIMED_OUT


def _is_temporary(error: Exception) -> bool:
    from botocore.exceptions import ConnectionError, HTTPClientError

    from scripts.core.aws_errors import is_throttled

    return is_throttled(error) or isinstance(error, ConnectionError | HTTPClientError)


def _has_ended(current: Progress, parts: int, started: datetime, grace: float) -> bool:
    """Tell whether nothing is in progress, and nothing is about to start."""
    if current.outcome == "in progress" or current.trouble:
        return False
    actions = {each.action for each in current.stacks}
    is_everything_done = len(current.stacks) == parts and len(actions) == 1
    if current.outcome == "failed" or (is_everything_done and actions != {"UPDATE"}):
        return True
    newest = max((each.ended or current.time for each in current.stacks), default=started)
    since = newest if current.existing == parts else max(newest, started)
    return (current.time - since).total_seconds() >= grace
