"""Checks that are slow, rejected, throttled or broken, beside one that is not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from botocore.exceptions import EndpointConnectionError

from scripts.account.deployment import Deployment
from scripts.check.preflight.check import SECONDS, Check, check
from scripts.check.preflight.model import CheckResult
from scripts.check.preflight.runner import findings, run
from scripts.core.findings import FAIL, PASS, SKIP, UNKNOWN, CheckStatus, Finding
from tests.scripts.check.preflight.accounts import deployment_of, new_network
from tests.scripts.refusals import refusal

Evaluate = Callable[[Deployment], Iterable[Finding]]


def checking(evaluate: Evaluate, check_id: str = "broken", seconds: float = SECONDS) -> Check:
    return check(check_id, "something", calls=["ec2:DescribeVpcs"], seconds=seconds)(evaluate)


def raising(error: Exception) -> Evaluate:
    def evaluate(_: Deployment) -> Iterator[Finding]:
        yield Finding(PASS, "so far so good")
        raise error

    return evaluate


def vpcs(deployment: Deployment) -> Iterator[Finding]:
    yield Finding(PASS, f"{len(deployment.account.list('ec2', 'describe_vpcs'))} VPCs")


@check("good", "something")
def good(_: Deployment) -> Iterator[Finding]:
    yield Finding(PASS, "all is well")


@pytest.fixture
def deployment() -> Deployment:
    return deployment_of(new_network())


def statuses(answers: Iterable[Sequence[CheckResult]]) -> dict[str, list[CheckStatus]]:
    return {results[0].check: [result.status for result in results] for results in answers}


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            refusal("UnauthorizedOperation"),
            "needs ec2:DescribeVpcs; `./ultracluster preflight mine --print-policy` prints",
        ),
        (refusal("ExpiredToken"), "renew the credentials"),
        (refusal("AuthFailure"), "(AuthFailure) when calling the Asked operation: no"),
        (EndpointConnectionError(endpoint_url="https://ec2"), "AWS could not be called: Could not connect"),
        (ZeroDivisionError("by zero"), "the check broke down: ZeroDivisionError: by zero"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_error_that_ends_a_check_is_a_finding(error: Exception, says: str, deployment: Deployment) -> None:
    before, after = findings(checking(raising(error)), deployment)
    assert before.status is PASS
    assert after.status is UNKNOWN
    assert says in f"{after.sentence} {after.hint}"


def test_a_slow_check_hides_no_other(deployment: Deployment) -> None:
    released = threading.Event()

    def wait(_: Deployment) -> Iterator[Finding]:
        released.wait()
        yield Finding(PASS, "at last")

    late = checking(wait, "late", seconds=0.2)
    slow = checking(wait, "slow")
    answers = run([late, slow, checking(raising(ValueError("no"))), good], deployment)
    before = statuses([next(answers), next(answers)])
    assert before == {"broken": [PASS, UNKNOWN], "good": [PASS]}
    [result] = next(answers)
    assert (result.id, result.sentence) == ("late", "no answer within 0.2 s")
    released.set()
    assert statuses(answers) == {"slow": [PASS]}


@pytest.mark.parametrize("status", [FAIL, UNKNOWN])
def test_without_credentials_what_calls_aws_is_skipped(status: CheckStatus, deployment: Deployment) -> None:
    first = checking(lambda _: [Finding(status, "nobody is signed in")], "credentials")
    answers = list(run([good, checking(vpcs, "vpcs"), first], deployment))
    assert statuses(answers) == {"credentials": [status], "vpcs": [SKIP], "good": [PASS]}
    assert answers[1][0].sentence == "AWS cannot be called: see credentials"
