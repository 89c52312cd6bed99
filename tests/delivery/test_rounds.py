"""Rounds of a delivery: what is done in which order, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scripts.change_plan.model import ClusterPlan, Plan, Source, StackPlan
from scripts.checks.check import Finding, Status
from scripts.delivery.rounds import ENDED, EXIT_CODES, CredentialsEndedError, Outcome, Result, deliver
from scripts.operations.clock import Clock
from scripts.operations.command import UnusableError

CLUSTER = ClusterPlan("dev", exists=False, source="")
NOTHING = Plan("dev", "us-west-2", "account 1", [StackPlan("dev-network", Source.SAME)], CLUSTER, [])
NEW = Plan("dev", "us-west-2", "account 1", [StackPlan("dev-network", Source.NEW)], CLUSTER, [])
REFUSED = Plan("dev", "us-west-2", "account 1", [], CLUSTER, [Finding(Status.FAIL, "no", "", "", "dev")])
BUSY = {"dev-network": {"StackStatus": "CREATE_IN_PROGRESS"}}
DONE = {"dev-network": {"StackStatus": "CREATE_COMPLETE"}}
ENDED_CREDENTIALS = CredentialsEndedError("ExpiredToken")


class ToldClock(Clock):
    """Time that passes as told."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


class ToldSite:
    """A world that answers as told, one answer after the other; an exception is raised.

    Attributes:
        done: What was asked, in order.
        newer: Generations that are newer than the settings.
        lasts: How many minutes each follow and each deployment takes.
    """

    def __init__(self, clock: ToldClock, lasts: float = 1, **answers: Any) -> None:
        self._clock = clock
        self._answers = {name: iter(each) for name, each in answers.items()}
        self.lasts = lasts
        self.done: list[str] = []
        self.newer: tuple[int, ...] = ()

    def stacks(self) -> Mapping[str, Mapping[str, Any]]:
        found: Mapping[str, Mapping[str, Any]] = self._next("stacks")
        return found

    def newer_generations(self) -> list[int]:
        return list(self.newer)

    def follow(self, minutes: float) -> int:
        self.done.append(f"follow {minutes:g} min")
        self._clock.time += timedelta(minutes=self.lasts)
        found: int = self._next("follow")
        return found

    def plan(self) -> Plan:
        self.done.append("plan")
        found: Plan = self._next("plan")
        return found

    def deploy(self, seconds: float) -> int:
        self.done.append(f"deploy {seconds:g} s")
        self._clock.time += timedelta(minutes=self.lasts)
        found: int = self._next("deploy")
        return found

    def _next(self, name: str) -> Any:
        answer = next(self._answers[name])
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(minutes: float = 50, lasts: float = 1, **answers: Any) -> tuple[Outcome, list[str]]:
    clock = ToldClock()
    site = ToldSite(clock, lasts, **answers)
    return deliver(site, clock, minutes), site.done


@pytest.mark.parametrize(
    ("answers", "result", "done"),
    [
        ({"stacks": [DONE], "plan": [NOTHING]}, Result.UNCHANGED, ["plan"]),
        ({"stacks": [{}], "plan": [NEW], "deploy": [0]}, Result.DEPLOYED, ["plan", "deploy 3000 s"]),
        ({"stacks": [DONE], "plan": [REFUSED]}, Result.REFUSED, ["plan"]),
        ({"stacks": [BUSY], "follow": [0], "plan": [NOTHING]}, Result.DEPLOYED, ["follow 50 min", "plan"]),
        (
            {"stacks": [BUSY], "follow": [0], "plan": [NEW], "deploy": [0]},
            Result.DEPLOYED,
            ["follow 50 min", "plan", "deploy 2940 s"],
        ),
        ({"stacks": [BUSY], "follow": [124]}, Result.GOES_ON, ["follow 50 min"]),
        ({"stacks": [BUSY], "follow": [1]}, Result.FAILED, ["follow 50 min"]),
        ({"stacks": [{}], "plan": [NEW], "deploy": [ENDED]}, Result.GOES_ON, ["plan", "deploy 3000 s"]),
        ({"stacks": [{}, DONE], "plan": [NEW], "deploy": [1]}, Result.FAILED, ["plan", "deploy 3000 s"]),
    ],
)
def test_a_round(answers: dict[str, Any], result: Result, done: list[str]) -> None:
    outcome, asked = run(**answers)
    assert (outcome.result, asked) == (result, done)


def test_what_goes_on_after_the_cdk_gave_up_is_followed_and_the_rest_deployed() -> None:
    outcome, done = run(stacks=[{}, BUSY], plan=[NEW, NEW], deploy=[1, 0], follow=[0])
    assert outcome.result is Result.DEPLOYED
    assert done == ["plan", "deploy 3000 s", "follow 49 min", "plan", "deploy 2880 s"]


def test_settings_from_before_an_upgrade_are_refused() -> None:
    clock = ToldClock()
    site = ToldSite(clock, stacks=[{}])
    site.newer = (2, 3)
    outcome = deliver(site, clock, 50)
    assert (outcome.result, outcome.plan, site.done) == (Result.REFUSED, None, [])
    assert "cluster.generation 2, 3." in outcome.note


def test_a_deployment_is_not_begun_at_the_end() -> None:
    outcome, done = run(minutes=10, lasts=9.5, stacks=[BUSY], follow=[0], plan=[NEW])
    assert (outcome.result, done) == (Result.GOES_ON, ["follow 10 min", "plan"])
    assert "the rest is not begun" in outcome.note


@pytest.mark.parametrize(
    "answers",
    [
        {"stacks": [BUSY], "follow": [ENDED_CREDENTIALS]},
        {"stacks": [DONE], "plan": [ENDED_CREDENTIALS]},
        {"stacks": [{}, ENDED_CREDENTIALS], "plan": [NEW], "deploy": [1]},
    ],
)
def test_credentials_that_end_are_no_failure(answers: dict[str, Any]) -> None:
    outcome, _ = run(**answers)
    assert outcome.result is Result.GOES_ON
    assert "ExpiredToken" in outcome.note


def test_credentials_that_never_were_good_are_told() -> None:
    with pytest.raises(CredentialsEndedError):
        run(stacks=[ENDED_CREDENTIALS])


def test_what_cannot_be_used_is_no_outcome() -> None:
    with pytest.raises(UnusableError, match="no answer"):
        run(stacks=[BUSY], follow=[UnusableError("no answer")])


def test_exit_codes() -> None:
    assert EXIT_CODES == {
        Result.DEPLOYED: 0,
        Result.UNCHANGED: 0,
        Result.GOES_ON: 75,
        Result.REFUSED: 1,
        Result.FAILED: 1,
    }
