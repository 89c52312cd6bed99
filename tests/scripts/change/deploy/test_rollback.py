"""When `deploy` continues a roll-back that failed, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from scripts.account import operations, way_out
from scripts.account.deployment import Account, Deployment
from scripts.account.way_out import WayOut
from scripts.change import rollback
from scripts.core import terminal
from scripts.core.clock import Clock
from scripts.core.errors import OperationError
from scripts.core.options import CONFIG

Lead = Callable[..., None]


def way(**changes: Any) -> WayOut:
    """Return the way out that skips the cluster, or another one."""
    skipping = {
        "stack": "dev-cluster", "in_force": "the old one is in force", "first": "", "continued": "dev-cluster",
        "skipped": ("Cluster",), "is_safe": True, "command": "aws x", "deployment": "dev",
    }  # fmt: skip
    return WayOut(**{**skipping, **changes})


UPDATED_BACK = way(skipped=(), is_safe=False)


class Aws:
    """CloudFormation, as far as a roll-back needs it.

    Attributes:
        found: What leads out, at each look.
        requests: Those that continue a roll-back.
        asked: The questions.
    """

    def __init__(self) -> None:
        self.found: list[tuple[WayOut, ...]] = []
        self.requests: list[Mapping[str, Any]] = []
        self.asked: list[str] = []
        self._statuses = ["UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"]

    def continue_update_rollback(self, **request: Any) -> None:
        self.requests.append(request)

    def describe(self, name: str) -> dict[str, Any]:
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        return {"StackName": name, "StackStatus": status}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    aws = Aws()
    monkeypatch.setattr(rollback, "as_the_cdk_sees_it", lambda deployment, _: deployment)
    monkeypatch.setattr(way_out, "find", lambda _: aws.found.pop(0))
    monkeypatch.setattr(operations, "new_name", lambda *_: "token")
    monkeypatch.setattr(Account, "client", lambda *_: aws)
    monkeypatch.setattr(Deployment, "stack", lambda _, name: aws.describe(name))
    monkeypatch.setattr(Clock, "sleep", lambda *_: None)
    monkeypatch.setattr(terminal, "confirm", aws.asked.append)
    return aws


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def lead_out(aws: Aws, said: list[str]) -> Lead:
    def lead(*found: WayOut | None, asks: bool = False) -> None:
        aws.found = [(each,) if each else () for each in found]
        dev = Deployment("dev", load(CONFIG / "dev.yaml"))
        rollback.lead_out(dev, Path(), said.append, Clock(), asks=asks)

    return lead


@pytest.mark.parametrize("asks", [False, True])
def test_what_changes_nothing_is_done_without_a_question_too(
    aws: Aws, said: list[str], lead_out: Lead, asks: bool
) -> None:
    lead_out(way(), None, asks=asks)
    assert aws.requests == [{"StackName": "dev-cluster", "ResourcesToSkip": ["Cluster"], "ClientRequestToken": "token"}]
    assert said[0] == "dev-cluster is UPDATE_ROLLBACK_FAILED: the old one is in force"
    assert said[-1] == "dev-cluster: UPDATE_ROLLBACK_COMPLETE"
    assert len(aws.asked) == asks


def test_what_changes_the_cluster_needs_an_answer(aws: Aws, lead_out: Lead) -> None:
    with pytest.raises(OperationError, match="--yes does not agree to that") as error:
        lead_out(UPDATED_BACK)
    assert error.value.hint == UPDATED_BACK.steps
    assert aws.requests == []
    lead_out(UPDATED_BACK, None, asks=True)
    assert aws.requests == [{"StackName": "dev-cluster", "ClientRequestToken": "token"}]


@pytest.mark.parametrize("asks", [False, True])
def test_where_nothing_helps_yet_nothing_is_done_or_asked(aws: Aws, lead_out: Lead, asks: bool) -> None:
    waiting = way(command="", continued="", skipped=(), is_safe=False, first="wait")
    with pytest.raises(OperationError, match="the old one is in force") as error:
        lead_out(waiting, asks=asks)
    assert error.value.hint == "wait"
    assert (aws.requests, aws.asked) == ([], [])


def test_an_answer_that_is_no_changes_nothing(aws: Aws, lead_out: Lead, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OperationError("Nothing was changed.")

    monkeypatch.setattr(terminal, "confirm", refuse)
    with pytest.raises(OperationError, match="Nothing was changed"):
        lead_out(way(), asks=True)
    assert aws.requests == []


def test_a_roll_back_that_fails_again_ends_the_command(aws: Aws, lead_out: Lead) -> None:
    with pytest.raises(OperationError, match="The roll-back of dev-cluster failed again"):
        lead_out(way(), way())
    assert len(aws.requests) == 1


def test_the_clusters_own_stack_goes_first(aws: Aws, lead_out: Lead) -> None:
    lead_out(way(continued="dev", skipped=(), is_safe=False), way(), None, asks=True)
    assert [each["StackName"] for each in aws.requests] == ["dev", "dev-cluster"]


def test_a_deployment_that_is_not_stuck_is_left_alone(aws: Aws, said: list[str], lead_out: Lead) -> None:
    lead_out(None, asks=True)
    assert (aws.requests, aws.asked, said) == ([], [], [])
