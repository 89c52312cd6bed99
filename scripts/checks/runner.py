"""Runs checks side by side, each within its own time; none can hide the answer of another."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripts.checks.check import Check, Finding, Status

if TYPE_CHECKING:
    from scripts.checks.deployment import Deployment

_REFUSALS = frozenset(
    {"403", "AccessDenied", "AccessDeniedException", "AuthorizationError", "Forbidden", "UnauthorizedOperation"}
)
"""Error codes of AWS for a right that is missing; 403 is S3's, for requests without a body."""


@dataclass(frozen=True)
class Result:
    """A finding, and whose it is.

    Attributes:
        check: The check.
        finding: One of its answers.
        seconds: How long the check took.
    """

    check: Check
    finding: Finding
    seconds: float

    @property
    def id(self) -> str:
        """The check, and what the finding is about: ``capacity-reservation[cr-...]``."""
        subject = self.finding.subject
        return f"{self.check.id}[{subject}]" if subject else self.check.id


def run(checks: Sequence[Check], deployment: Deployment, *, first: Check | None = None) -> Iterator[Sequence[Result]]:
    """Yield the results of each check as soon as it has them.

    Args:
        checks: What to look at.
        deployment: Where to look.
        first: What has to pass before any check that calls AWS; others are skipped where it fails. It is not repeated.
    """
    blocked = ""
    if first is not None and any(each.permissions for each in checks):
        [results] = run([first], deployment)
        if first in checks:
            yield results
        blocked = next((result.id for result in results if result.finding.status is Status.FAIL), "")
    left = [each for each in checks if each is not first]
    if blocked:
        for each in left:
            if each.permissions:
                yield [Result(each, Finding(Status.SKIP, f"needs an account that can be asked: see {blocked}"), 0)]
        left = [each for each in left if not each.permissions]
    yield from _run_all(left, deployment)


def _run_all(checks: Iterable[Check], deployment: Deployment) -> Iterator[Sequence[Result]]:
    answers: queue.Queue[tuple[Check, Sequence[Finding]]] = queue.Queue()
    began = time.monotonic()
    waiting = {each.id: each for each in checks}

    def look(each: Check) -> None:
        answers.put((each, findings(each, deployment)))

    for each in waiting.values():
        threading.Thread(target=look, args=(each,), daemon=True, name=each.id).start()
    while waiting:
        now = time.monotonic() - began
        late = [each for each in waiting.values() if each.seconds <= now]
        for each in late:
            del waiting[each.id]
            yield [Result(each, Finding(Status.UNKNOWN, f"no answer within {each.seconds:g} s", "run it again"), now)]
        if not waiting:
            return
        try:
            each, found = answers.get(timeout=min(each.seconds for each in waiting.values()) - now)
        except (queue.Empty, ValueError):
            continue
        if waiting.pop(each.id, None) is not None:
            yield [Result(each, finding, time.monotonic() - began) for finding in found]


def findings(each: Check, deployment: Deployment) -> Sequence[Finding]:
    """Return what a check finds; what keeps it from looking is a finding, too."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return list(each.look(deployment)) or [Finding(Status.SKIP, "nothing of this kind in these settings")]
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        if code in _REFUSALS:
            rights = ", ".join(permission.action for permission in each.permissions)
            return [Finding(Status.UNKNOWN, "the right to look is missing", f"needs {rights} (--print-policy)")]
        return [Finding(Status.UNKNOWN, f"{error.operation_name} was refused: {code}: {message}", "run it again")]
    except BotoCoreError as error:
        return [Finding(Status.UNKNOWN, f"AWS could not be asked: {error}", "run it again")]
    except Exception as error:  # one check that breaks down must not hide the others' answers
        return [Finding(Status.UNKNOWN, f"the check broke down: {type(error).__name__}: {error}", "please report this")]
