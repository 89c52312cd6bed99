"""Runs checks in parallel, each within its own time; none can hide the answer of another."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from scripts.check.preflight.check import CREDENTIALS, Check
from scripts.check.preflight.model import CheckResult, FailOn, PreflightReport
from scripts.core.aws_errors import code_of, credentials_hint, is_denied
from scripts.core.findings import FAIL, PASS, SKIP, UNKNOWN, Finding

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from rich.console import Console

    from scripts.account.deployment import Deployment


def watch(deployment: Deployment, checks: Sequence[Check], fail_on: FailOn, console: Console) -> PreflightReport:
    """Run checks, and return their results in this order; on a terminal, say meanwhile what is awaited."""
    started, results = time.monotonic(), dict[str, Sequence[CheckResult]]()
    status = console.status("")
    try:
        for answer in run(checks, deployment):
            results[answer[0].check] = answer
            waiting = ", ".join(each.id for each in checks if each.id not in results)
            status.update(f"{len(results)} of {len(checks)} checks have answered; waiting for {waiting or 'none'}")
            status.start()  # only now: until the first answer botocore may ask for a one-time password
    finally:
        status.stop()
    ordered = tuple(result for each in checks for result in results[each.id])
    is_known = any(result.check == CREDENTIALS and result.status is PASS for result in ordered)
    return PreflightReport(
        deployment=deployment.name,
        account=deployment.account.ask("sts", "get_caller_identity")["Account"] if is_known else None,
        results=ordered,
        fail_on=fail_on,
        endpoint=os.environ.get("AWS_ENDPOINT_URL"),
        elapsed=time.monotonic() - started,
    )


def run(checks: Sequence[Check], deployment: Deployment) -> Iterator[Sequence[CheckResult]]:
    """Yield the results of each check as soon as it has them.

    The check of credentials runs before the others: if it FAILs or is UNKNOWN, those that call AWS are skipped.
    """
    left = list(checks)
    for check in [each for each in checks if each.id == CREDENTIALS]:
        left.remove(check)
        [results] = _run_all([check], deployment)
        yield results
        if results[-1].status in (FAIL, UNKNOWN):
            skipped = Finding(SKIP, f"AWS cannot be called: see {CREDENTIALS}")
            yield from ([_result(each, skipped, 0)] for each in left if each.permissions)
            left = [each for each in left if not each.permissions]
    yield from _run_all(left, deployment)


def _run_all(checks: Sequence[Check], deployment: Deployment) -> Iterator[Sequence[CheckResult]]:
    answers: queue.Queue[tuple[Check, Sequence[Finding]]] = queue.Queue()
    started = time.monotonic()
    for each in checks:  # daemons: a process does not wait for one that hangs
        evaluate = partial(lambda check: answers.put((check, findings(check, deployment))), each)
        threading.Thread(target=evaluate, daemon=True, name=each.id).start()
    waiting = {each.id: each for each in checks}
    while waiting:
        first = min(waiting.values(), key=lambda each: each.seconds)
        try:
            check, answer = answers.get(timeout=max(0, started + first.seconds - time.monotonic()))
        except queue.Empty:
            check, answer = first, [Finding(UNKNOWN, f"no answer within {first.seconds:g} s", "run it again")]
        if waiting.pop(check.id, None):
            yield [_result(check, finding, time.monotonic() - started) for finding in answer]


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
        command = f"./ultracluster preflight {deployment.name} --print-policy"
        hint = f"the check needs {actions}; `{command}` prints what all of them need"
        rejected = f"a permission is missing: {error.operation_name} was rejected ({code_of(error)})"
        return Finding(UNKNOWN, rejected, hint)
    renew = "renew the credentials, check this machine's clock, and " if credentials_hint(error) else ""
    return Finding(UNKNOWN, str(error), f"{renew}run it again")


def _result(each: Check, finding: Finding, seconds: float) -> CheckResult:
    fields = asdict(finding)
    del fields["path"]  # which only plans have
    return CheckResult(check=each.id, seconds=round(seconds, 2), **fields)
