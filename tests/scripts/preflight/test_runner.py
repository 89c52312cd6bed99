"""Checks that are slow, refused, throttled or broken, beside one that is not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from config.settings import load
from emulator.aws import EmulatedAws
from scripts.commands.validate import CONFIG
from scripts.deployment import Deployment
from scripts.preflight.check import SECONDS, Check, Finding, Status, check
from scripts.preflight.runner import Result, findings, run
from tests.scripts.preflight.conftest import GoodAccount

Look = Callable[[Deployment], Iterable[Finding]]


def checking(look: Look, check_id: str = "broken", seconds: float = SECONDS) -> Check:
    return check(check_id, "something", prevents="nothing", calls=["ec2:DescribeVpcs"], seconds=seconds)(look)


def raising(error: Exception) -> Look:
    def look(_: Deployment) -> Iterator[Finding]:
        yield Finding(Status.PASS, "so far so good")
        raise error

    return look


def vpcs(deployment: Deployment) -> Iterator[Finding]:
    yield Finding(Status.PASS, f"{len(deployment.account.list('ec2', 'describe_vpcs'))} VPCs")


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeVpcs")


@check("good", "something", prevents="nothing")
def good(_: Deployment) -> Iterator[Finding]:
    yield Finding(Status.PASS, "all is well")


@check("empty", "something", prevents="nothing")
def empty(_: Deployment) -> Iterable[Finding]:
    return ()


@pytest.fixture
def deployment() -> Deployment:
    return Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))


def statuses(answers: Iterable[Sequence[Result]]) -> dict[str, list[Status]]:
    return {results[0].check.id: [result.finding.status for result in results] for results in answers}


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            refusal("UnauthorizedOperation"),
            "needs ec2:DescribeVpcs; `python -m scripts preflight trn1-16 --print-policy` prints",
        ),
        (refusal("AccessDeniedException"), "the right to look is missing: DescribeVpcs was refused"),
        (refusal("AccessDenied"), "the right to look is missing"),
        (refusal("403"), "the right to look is missing"),
        (refusal("ExpiredToken"), "renew the credentials"),
        (refusal("AuthFailure"), "DescribeVpcs was refused: AuthFailure: no"),
        (refusal("InternalError"), "run it again"),
        (EndpointConnectionError(endpoint_url="https://ec2"), "AWS could not be asked: Could not connect"),
        (ZeroDivisionError("by zero"), "the check broke down: ZeroDivisionError: by zero"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_keeps_a_check_from_looking_is_told(error: Exception, says: str, deployment: Deployment) -> None:
    before, found = findings(checking(raising(error)), deployment)
    assert before.status is Status.PASS
    assert found.status is Status.UNKNOWN
    assert says in f"{found.sentence} {found.hint}"


def test_no_answer_is_an_answer(deployment: Deployment) -> None:
    assert [found.status for found in findings(empty, deployment)] == [Status.SKIP]


def test_a_slow_check_hides_no_other(deployment: Deployment) -> None:
    released = threading.Event()

    def wait(_: Deployment) -> Iterator[Finding]:
        released.wait()
        yield Finding(Status.PASS, "at last")

    late = checking(wait, "late", seconds=0.2)
    patient = checking(wait, "patient")
    answers = run([late, patient, checking(raising(ValueError("no"))), good], deployment)
    before = statuses([next(answers), next(answers)])
    assert before == {"broken": [Status.PASS, Status.UNKNOWN], "good": [Status.PASS]}
    [result] = next(answers)
    assert (result.id, result.finding.sentence) == ("late", "no answer within 0.2 s")
    released.set()
    assert statuses(answers) == {"patient": [Status.PASS]}


@pytest.mark.parametrize("status", [Status.FAIL, Status.UNKNOWN])
def test_without_an_account_what_calls_it_is_skipped(status: Status, deployment: Deployment) -> None:
    first = checking(lambda _: [Finding(status, "nobody is signed in")], "credentials")
    answers = list(run([good, checking(vpcs, "vpcs"), first], deployment, first=first))
    assert statuses(answers) == {"credentials": [status], "vpcs": [Status.SKIP], "good": [Status.PASS]}
    assert answers[1][0].finding.sentence == "needs an account that can be asked: see credentials"


@pytest.mark.parametrize("status", [Status.PASS, Status.WARN])
def test_the_first_keeps_the_others_back_until_it_is_done(status: Status, deployment: Deployment) -> None:
    order: list[str] = []

    def note(name: str, status: Status) -> Look:
        def look(_: Deployment) -> Iterator[Finding]:
            order.append(name)
            yield Finding(status, name)

        return look

    first = checking(note("credentials", status), "credentials")
    second = checking(note("vpcs", Status.PASS), "vpcs")
    answers = run([second, first], deployment, first=first)
    assert statuses([next(answers)]) == {"credentials": [status]}
    assert order == ["credentials"]
    assert statuses(answers) == {"vpcs": [Status.PASS]}


def test_a_first_that_is_not_asked_for_is_not_looked_at(deployment: Deployment) -> None:
    assert statuses(run([empty], deployment, first=good)) == {"empty": [Status.SKIP]}


def test_a_result_is_named_after_its_subject() -> None:
    about = Finding(Status.PASS, "", subject="cr-1")
    assert [Result(good, found, 0).id for found in (about, Finding(Status.PASS, ""))] == ["good[cr-1]", "good"]


def test_a_throttled_call_is_tried_again(good_account: Callable[..., GoodAccount]) -> None:
    account = good_account()
    account.aws.inject("throttling")
    try:
        assert [found.sentence for found in account.look(checking(vpcs))] == ["1 VPCs"]
    finally:
        account.aws.clear_faults()


def test_credentials_may_expire_in_between(
    good_account: Callable[..., GoodAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    account = good_account()
    assert account.statuses(checking(vpcs)) == [Status.PASS]
    policy = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}}
    with account.aws.restricted(policy):  # now nobody but its user is known
        [found] = account.look(checking(vpcs))
    assert found.status is Status.UNKNOWN
    assert found.hint.startswith("renew the credentials")


def test_an_answer_is_asked_for_once(good_account: Callable[..., GoodAccount], rehearsed_aws: EmulatedAws) -> None:
    asked = Deployment("trn1-16", good_account().settings)
    sent: list[str] = []
    asked.account.client("ec2").meta.events.register("before-call.ec2", lambda model, **_: sent.append(model.name))
    checks = [checking(vpcs, name) for name in ("a", "b", "c")]
    assert set(statuses(run(checks, asked))) == {"a", "b", "c"}
    assert sent == ["DescribeVpcs"]
