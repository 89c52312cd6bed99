"""Runs checks in parallel, each within its own time; none can hide the answer of another."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from scripts.aws_errors import code_of, credentials_hint, is_denied
from scripts.preflight.check import CREDENTIALS, FAIL, SKIP, UNKNOWN, Check, Finding
from scripts.preflight.model import CheckResult

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from scripts.deployment import Deployment


def run(checks: Sequence[Check], deployment: Deployment) -> Iterator[Sequence[CheckResult]]:
    """Yield the results of each check as soon as it has them.

    The check of credentials runs before the others: if it FAILs or is UNKNOWN, those that call AWS are skipped.
    """
    left = [each for each in checks if each.id != CREDENTIALS]
    for results in _run_all([each for each in checks if each.id == CREDENTIALS], deployment):
        yield results
        if results[-1].status in (FAIL, UNKNOWN):
            skipped = Finding(SKIP, f"AWS cannot be called: see {CREDENTIALS}")
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
        answers.put([_result(each, finding, elapsed()) for finding in findings(each, deployment)])

    for each in waiting.values():
        threading.Thread(target=evaluate, args=(each,), daemon=True, name=each.id).start()
    while waiting:
        timeout = min(each.seconds for each in waiting.values()) - elapsed()
        try:
            results = answers.get(timeout=max(timeout, 0))
        except queue.Empty:
            for each in [each for each in waiting.values() if each.seconds <= elapsed()]:
                del waiting[each.id]
                late = Finding(UNKNOWN, f"no answer within {each.seconds:g} s", "run it again")
                yield [_result(each, late, elapsed())]
        else:
            if waiting.pop(results[0].check, None):
                yield results


def findings(each: Check, deployment: Deployment) -> Sequence[Finding]:
    """Return the findings of a check, at least one; an error that ends it is one, too."""
    from botocore.exceptions import BotoCoreError, ClientError

    answers: list[Finding] = []
    try:
        evaluated = each.evaluate(deployment) or ()
        for finding in [evaluated] if isinstance(evaluated, Finding) else evaluated:
            answers.append(finding)  # one by one: those before an error stay
    except ClientError as error:
        answers.append(_rejected(each, deployment, error))
    except BotoCoreError as error:
        answers.append(Finding(UNKNOWN, f"AWS could not be called: {error}", "run it again"))
    except Exception as error:  # one check that breaks down must not hide the others' answers
        reason = f"the check broke down: {type(error).__name__}: {error}"
        answers.append(Finding(UNKNOWN, reason, "please report this"))
    return answers or [Finding(SKIP, "nothing of this kind in these settings")]


def _rejected(each: Check, deployment: Deployment, error: ClientError) -> Finding:
    if is_denied(error):
        actions = ", ".join(permission.action for permission in each.permissions)
        command = f"./ultracluster preflight {deployment.environment} --print-policy"
        hint = f"the check needs {actions}; `{command}` prints what all of them need"
        rejected = f"a permission is missing: {error.operation_name} was rejected ({code_of(error)})"
        return Finding(UNKNOWN, rejected, hint)
    renew = "renew the credentials, check this machine's clock, and " if credentials_hint(error) else ""
    return Finding(UNKNOWN, str(error), f"{renew}run it again")


def _result(each: Check, finding: Finding, seconds: float) -> CheckResult:
    return CheckResult(check=each.id, seconds=round(seconds, 2), **asdict(finding))
