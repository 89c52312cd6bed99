"""`status --watch` follows a deployment to its end, from CloudFormation's events alone."""

from __future__ import annotations

import io
import json

import pytest
from botocore.exceptions import EndpointConnectionError
from rich.console import Console

from scripts.account.stacks import CLUSTER
from scripts.core.errors import UnusableError
from scripts.watch.progress import watch as module
from scripts.watch.progress.watch import watch
from tests.scripts.refusals import refusal
from tests.scripts.watch.progress import fake_cloudformation as fake
from tests.scripts.watch.progress.fake_cloudformation import (
    DAY,
    MONITORING,
    NETWORK,
    OWN,
    PART,
    START,
    STORAGE,
    FakeClock,
    FakeCloudFormation,
    aged,
    arn,
    created,
)

TOPIC = "Topic=AWS::SNS::Topic"


def follow(api: FakeCloudFormation, clock: FakeClock, **limits: float) -> tuple[int, str]:
    console = Console(markup=False, file=io.StringIO(), width=80, record=True)
    code = watch(fake.deployment(api), console, clock=clock, as_json=False, **limits)
    return code, console.export_text()


def test_a_creation_is_followed_from_before_its_first_stack_to_its_last(
    api: FakeCloudFormation, clock: FakeClock
) -> None:
    fake.creation(api)
    code, text = follow(api, clock)
    assert code == 0
    assert 900 <= clock.elapsed <= 910, "it ends with the last stack, without the grace"
    assert text.endswith("trn1-16: complete after 14 min 50 s.\n")
    for stack in (NETWORK, STORAGE, PART, MONITORING, OWN, "provider"):
        assert f"{stack}  CREATE_IN_PROGRESS" in text
        assert f"{stack}  CREATE_COMPLETE" in text


def test_it_waits_for_the_grace_between_two_stacks(api: FakeCloudFormation, clock: FakeClock) -> None:
    created(api, NETWORK, 0, 100)
    created(api, STORAGE, 150, 200)
    code, text = follow(api, clock, grace=60)
    assert code == 0
    assert 255 <= clock.elapsed <= 270
    assert text.endswith("trn1-16: complete after 3 min 20 s.\n")


def test_nothing_to_watch_is_said_after_the_grace(api: FakeCloudFormation, clock: FakeClock) -> None:
    code, text = follow(api, clock)
    assert (code, clock.elapsed) == (0, 60)
    assert text.endswith("trn1-16: nothing is in progress, and it has no stack in us-west-2.\n")


def failing_creation(api: FakeCloudFormation) -> None:
    aged(api, NETWORK, STORAGE)
    api.add_events(PART, (0, "", "CREATE_IN_PROGRESS"), (1, f"Cluster={CLUSTER}", "CREATE_IN_PROGRESS"))
    api.add_events(OWN, (2, "", "CREATE_IN_PROGRESS"), (3, "HeadNode=AWS::EC2::Instance", "CREATE_IN_PROGRESS"))
    api.add_events(OWN, (60, "HeadNode=AWS::EC2::Instance", "CREATE_FAILED"), reason="no capacity")
    api.add_events(OWN, (61, "", "ROLLBACK_IN_PROGRESS"), (70, "", "ROLLBACK_COMPLETE"))
    api.add_events(PART, (80, f"Cluster={CLUSTER}", "CREATE_FAILED"), reason="trn1-16: see the log group")
    api.add_events(PART, (81, "", "ROLLBACK_IN_PROGRESS"), (82, f"Cluster={CLUSTER}", "DELETE_IN_PROGRESS"))
    api.add_events(OWN, (83, "", "DELETE_IN_PROGRESS"), (90, "", "DELETE_COMPLETE"))
    api.add_events(PART, (95, f"Cluster={CLUSTER}", "DELETE_COMPLETE"), (96, "", "ROLLBACK_COMPLETE"))


def test_a_creation_that_is_rolled_back_has_failed_and_the_cause_is_shown(
    api: FakeCloudFormation, clock: FakeClock
) -> None:
    failing_creation(api)
    code, text = follow(api, clock)
    assert code == 1
    assert clock.elapsed == 100, "nothing more is started after a failure"
    assert "trn1-16  HeadNode (AWS::EC2::Instance) CREATE_FAILED: no capacity" in text
    assert "trn1-16 HeadNode (AWS::EC2::Instance) failed:\n  no capacity\n" in text, "the cause, not what follows of it"
    assert text.endswith("trn1-16: failed after 1 min 36 s.\n")


@pytest.mark.parametrize(
    ("action", "statuses", "code"),
    [
        ("UPDATE", ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE"], 0),
        ("UPDATE", ["UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"], 1),
        ("UPDATE", ["UPDATE_FAILED"], 1),
        ("DELETE", ["DELETE_COMPLETE"], 0),
        ("DELETE", ["DELETE_FAILED"], 1),
        ("CREATE", ["ROLLBACK_IN_PROGRESS", "ROLLBACK_FAILED"], 1),
    ],
)
def test_the_exit_code_says_the_outcome(
    api: FakeCloudFormation, clock: FakeClock, action: str, statuses: list[str], code: int
) -> None:
    aged(api, NETWORK, STORAGE, PART)
    if action != "CREATE":
        aged(api, MONITORING)
    api.add_events(MONITORING, (0, "", f"{action}_IN_PROGRESS"))
    api.add_events(MONITORING, *((30 * number, "", status) for number, status in enumerate(statuses, 1)))
    exit_code, text = follow(api, clock)
    assert exit_code == code
    assert clock.elapsed >= 30 * len(statuses), "to the last of the statuses"
    assert f"{MONITORING}  {statuses[-1]}" in text


def test_a_failure_of_last_week_is_not_that_of_today(api: FakeCloudFormation, clock: FakeClock) -> None:
    aged(api, NETWORK, STORAGE)
    api.add_events(PART, (-DAY, "", "UPDATE_IN_PROGRESS"), (10 - DAY, "", "UPDATE_ROLLBACK_COMPLETE"))
    created(api, MONITORING, 0, 100)
    code, text = follow(api, clock)
    assert code == 0
    assert PART not in text


def test_stacks_whose_events_are_no_longer_kept_exist(api: FakeCloudFormation, clock: FakeClock) -> None:
    for stack in (NETWORK, STORAGE, PART):
        api.events[arn(stack)] = []
    created(api, MONITORING, 0, 100)
    code, text = follow(api, clock)
    assert code == 0
    assert "not started" not in text


def test_the_time_limit(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    code, text = follow(api, clock, timeout=5.05)
    assert (code, clock.elapsed) == (124, 303)
    assert text.replace("\n", " ").endswith("The limit of 5.05 minutes is over. " + module.CONTINUES + " ")


def test_ctrl_c_says_that_it_continues(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)

    def press() -> None:
        raise KeyboardInterrupt

    clock.meanwhile = press
    console = Console(markup=False, file=io.StringIO(), width=80, record=True)
    with pytest.raises(KeyboardInterrupt):
        watch(fake.deployment(api), console, clock=clock, as_json=False)
    assert "What was started continues in AWS." in console.export_text()


def test_expired_credentials_end_it_with_what_helps(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    expired = refusal("ExpiredToken")
    clock.meanwhile = lambda: api.failing.update({"DescribeStackEvents": expired} if clock.elapsed > 100 else {})
    with pytest.raises(UnusableError, match=r"ExpiredToken.*\n.*continues") as error:
        follow(api, clock)
    assert "new session" in error.value.hint
    assert clock.elapsed == 110


@pytest.mark.parametrize(
    "error",
    [refusal("Throttling"), EndpointConnectionError(endpoint_url="https://example.com")],
    ids=["throttled", "unreachable"],
)
def test_it_continues_when_aws_answers_again(api: FakeCloudFormation, clock: FakeClock, error: Exception) -> None:
    fake.creation(api)

    def meanwhile() -> None:
        api.failing = {"DescribeStackEvents": error} if 100 < clock.elapsed < 200 else {}

    clock.meanwhile = meanwhile
    code, text = follow(api, clock)
    assert code == 0
    assert f"trying again: {error}" in text
    assert clock.slept[10:15] == [10, 20, 40, 60, 10], "it asks less and less often, until there is an answer"


def test_it_gives_up_when_aws_does_not_answer_for_minutes(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    error = EndpointConnectionError(endpoint_url="https://example.com")
    clock.meanwhile = lambda: api.failing.update({"DescribeStackEvents": error})
    with pytest.raises(UnusableError, match=r"example\.com"):
        follow(api, clock)
    assert 300 < clock.elapsed < 400


def test_json_lines(api: FakeCloudFormation, clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    failing_creation(api)
    code = watch(fake.deployment(api), Console(markup=False, quiet=True), clock=clock, as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 1
    assert {each["kind"] for each in lines[:-1]} == {"progress"}
    assert (lines[-1]["kind"], lines[-1]["outcome"]) == ("summary", "failed")
    assert lines[-1]["failure"]["reason"] == "no capacity"
    clock.time = START
    assert watch(fake.deployment(api), Console(markup=False, quiet=True), clock=clock, as_json=True, timeout=1) == 124
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["kind"] == "stopped"


def test_a_stack_in_review_may_start_soon(api: FakeCloudFormation, clock: FakeClock) -> None:
    aged(api, NETWORK, STORAGE, PART)
    api.add_events(MONITORING, (-1000, "", "REVIEW_IN_PROGRESS"))
    code, _ = follow(api, clock)
    assert (code, clock.elapsed) == (0, 60)
