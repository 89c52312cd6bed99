"""Runs checks in parallel, each within its own time; none can hide the answer of another."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from scripts.aws_errors import code_of, credentials_hint, is_denied
from scripts.preflight.check import Check, CheckStatus, Finding
from scripts.preflight.model import CheckResult

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from scripts.deployment import Deployment


def run(
    checks: Sequence[Check], deployment: Deployment, *, first: Check | None = None
) -> Iterator[Sequence[CheckResult]]:
    """Yield the results of each check as soon as it has them.

    Args:
        checks: The checks.
        deployment: What they check.
        first: If it is among them, it runs before the others; if it FAILs or is UNKNOWN, those that call AWS are
            skipped.
    """
    left = [each for each in checks if each is not first]
    if first is not None and first in checks:
        for results in _run_all([first], deployment):
            yield results
            if any(result.status in (CheckStatus.FAIL, CheckStatus.UNKNOWN) for result in results):
                skipped = Finding(CheckStatus.SKIP, f"AWS cannot be called: see {first.id}")
                yield from ([_result(each, skipped, 0)] for each in left if each.permissions)
                left = [each for each in left if not each.permissions]
    yield from _run_all(left, deployment)


def _run_all(checks: Iterable[Check], deployment: Deployment) -> Iterator[Sequence[CheckResult]]:
    answers: queue.Queue[Sequence[CheckResult]] = queue.Queue()
    started = time.monotonic()
    waiting = {each.id: each for each in checks}

    def elapsed() -> float:
        return time.monotonic() - started

    def evaluate(each: Check) -> None:
        found = findings(each, deployment)
        answers.put([_result(each, finding, elapsed()) for finding in found])

    for each in waiting.values():
        threading.Thread(target=evaluate, args=(each,), daemon=True, name=each.id).start()
    while waiting:
        timeout = min(each.seconds for each in waiting.values()) - elapsed()
        try:
            results = answers.get(timeout=max(timeout, 0))
        except queue.Empty:
            for each in [each for each in waiting.values() if each.seconds <= elapsed()]:
                del waiting[each.id]
                late = Finding(CheckStatus.UNKNOWN, f"no answer within {each.seconds:g} s", "run it again")
                yield [_result(each, late, elapsed())]
        else:
            if waiting.pop(results[0].check, None):
                yield results


def findings(each: Check, deployment: Deployment) -> Sequence[Finding]:
    """Return the findings of a check, at least one; an error that ends it is one, too."""
    from botocore.exceptions import BotoCoreError, ClientError

    found = []
    try:
        for finding in each.evaluate(deployment):
            found.append(finding)  # one by one: what was found before an error stays
    except ClientError as error:
        found.append(_rejected(each, deployment, error))
    except BotoCoreError as error:
        found.append(Finding(CheckStatus.UNKNOWN, f"AWS could not be called: {error}", "run it again"))
    except Exception as error:  # one check that breaks down must not hide the others' answers
        reason = f"the check broke down: {type(error).__name__}: {error}"
        found.append(Finding(CheckStatus.UNKNOWN, reason, "please report this"))
    return found or [Finding(CheckStatus.SKIP, "nothing of this kind in these settings")]


def _rejected(each: Check, deployment: Deployment, error: ClientError) -> Finding:
    code = code_of(error)
    rejected = f"{error.operation_name} was rejected"
    if is_denied(error):
        actions = ", ".join(permission.action for permission in each.permissions)
        command = f"python -m scripts preflight {deployment.environment} --print-policy"
        hint = f"the check needs {actions}; `{command}` prints what all of them need"
        return Finding(CheckStatus.UNKNOWN, f"a permission is missing: {rejected} ({code})", hint)
    reason = f"{rejected}: {code}: {error.response['Error'].get('Message', '')}"
    if credentials_hint(error):
        return Finding(
            CheckStatus.UNKNOWN, reason, "renew the credentials, check this machine's clock, and run it again"
        )
    return Finding(CheckStatus.UNKNOWN, reason, "run it again")


def _result(each: Check, found: Finding, seconds: float) -> CheckResult:
    return CheckResult(
        check=each.id,
        subject=found.subject,
        status=found.status,
        sentence=found.sentence,
        hint=found.hint,
        command=found.command,
        seconds=round(seconds, 2),
    )
