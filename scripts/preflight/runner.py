"""Runs checks side by side, each within its own time; none can hide the answer of another."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripts.aws_errors import code_of, credentials_hint, is_denied
from scripts.preflight.check import Check, Finding, Status

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from scripts.deployment import Deployment


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
        first: If it is among them, it is looked at before the others; where it fails or is UNKNOWN, those that call AWS
            are skipped.
    """
    left = [each for each in checks if each is not first]
    if first is not None and first in checks:
        for results in _run_all([first], deployment):
            yield results
            if any(result.finding.status in (Status.FAIL, Status.UNKNOWN) for result in results):
                skipped = Finding(Status.SKIP, f"needs an account that can be asked: see {first.id}")
                yield from ([Result(each, skipped, 0)] for each in left if each.permissions)
                left = [each for each in left if not each.permissions]
    yield from _run_all(left, deployment)


def _run_all(checks: Iterable[Check], deployment: Deployment) -> Iterator[Sequence[Result]]:
    answers: queue.Queue[Sequence[Result]] = queue.Queue()
    began = time.monotonic()
    waiting = {each.id: each for each in checks}

    def elapsed() -> float:
        return time.monotonic() - began

    def look(each: Check) -> None:
        found = findings(each, deployment)
        answers.put([Result(each, finding, elapsed()) for finding in found])

    for each in waiting.values():
        threading.Thread(target=look, args=(each,), daemon=True, name=each.id).start()
    while waiting:
        patience = min(each.seconds for each in waiting.values()) - elapsed()
        try:
            results = answers.get(timeout=max(patience, 0))
        except queue.Empty:
            for each in [each for each in waiting.values() if each.seconds <= elapsed()]:
                del waiting[each.id]
                late = Finding(Status.UNKNOWN, f"no answer within {each.seconds:g} s", "run it again")
                yield [Result(each, late, elapsed())]
        else:
            if waiting.pop(results[0].check.id, None):
                yield results


def findings(each: Check, deployment: Deployment) -> Sequence[Finding]:
    """Return what a check finds, at least one answer; what keeps it from looking further is one, too."""
    from botocore.exceptions import BotoCoreError, ClientError

    found = []
    try:
        for finding in each.look(deployment):
            found.append(finding)  # one by one: what was found before an error stays
    except ClientError as error:
        found.append(_refusal(each, deployment, error))
    except BotoCoreError as error:
        found.append(Finding(Status.UNKNOWN, f"AWS could not be asked: {error}", "run it again"))
    except Exception as error:  # one check that breaks down must not hide the others' answers
        reason = f"the check broke down: {type(error).__name__}: {error}"
        found.append(Finding(Status.UNKNOWN, reason, "please report this"))
    return found or [Finding(Status.SKIP, "nothing of this kind in these settings")]


def _refusal(each: Check, deployment: Deployment, error: ClientError) -> Finding:
    code = code_of(error)
    refused = f"{error.operation_name} was refused"
    if is_denied(error):
        rights = ", ".join(permission.action for permission in each.permissions)
        command = f"python -m scripts preflight {deployment.environment} --print-policy"
        hint = f"the check needs {rights}; `{command}` prints what all of them need"
        return Finding(Status.UNKNOWN, f"the right to look is missing: {refused} ({code})", hint)
    reason = f"{refused}: {code}: {error.response['Error'].get('Message', '')}"
    if credentials_hint(error):
        return Finding(Status.UNKNOWN, reason, "renew the credentials, look at this machine's clock, and run it again")
    return Finding(Status.UNKNOWN, reason, "run it again")
