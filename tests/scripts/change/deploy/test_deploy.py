"""`./ultracluster deploy` follows what its own earlier run left in progress, and nothing of others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from config.settings import load
from scripts.account import operations
from scripts.account.deployment import Account, Deployment
from scripts.account.operations import Operation
from scripts.account.stack_state import StackState
from scripts.change import deploy
from scripts.core import terminal
from scripts.core.errors import ExitCode, OperationError
from scripts.core.options import CONFIG
from scripts.watch.progress import watch as progress

DEV = load(CONFIG / "dev.yaml")
SECOND_CLUSTER = {
    "StackName": "dev-cluster-2",
    "StackStatus": "CREATE_COMPLETE",
    "Description": "Trn1 UltraCluster dev: cluster",
}
Settle = Callable[..., list[str]]


def stacks(status: str, name: str = "dev-network") -> list[dict[str, str]]:
    return [{"StackName": name, "StackStatus": status}]


def operation(stack: dict[str, str], *, is_own: bool) -> Operation:
    since = datetime(2026, 5, 4, 3, 2, tzinfo=UTC)
    return Operation(stack["StackName"], "us-west-2", StackState.of(stack), since, "anna", "name", is_own)


@pytest.fixture
def settle(monkeypatch: pytest.MonkeyPatch) -> Settle:
    """Return a function that hands stacks and the end of what is in progress to `settle`: what was followed."""

    def called(
        listed: list[dict[str, str]] | Exception, ends: int | Exception = ExitCode.DONE, *, is_own: bool = True
    ) -> list[str]:
        followed: list[str] = []

        def answer(*_: Any, **__: Any) -> list[dict[str, str]]:
            if isinstance(listed, Exception):
                raise listed
            return listed

        def watch(deployment: Deployment, *_: Any, **__: Any) -> int:
            followed.append(deployment.name)
            if isinstance(ends, Exception):
                raise ends
            return ends

        monkeypatch.setattr(Account, "list", answer)
        monkeypatch.setattr(operations, "last", lambda _, stack: operation(stack, is_own=is_own))
        monkeypatch.setattr(progress, "watch", watch)
        deploy.settle(Deployment("dev", DEV), terminal.console())
        return followed

    return called


@pytest.mark.parametrize(
    "listed",
    [
        stacks("UPDATE_ROLLBACK_FAILED"),
        stacks("REVIEW_IN_PROGRESS"),
        stacks("UPDATE_IN_PROGRESS", "dev"),  # ParallelCluster's own, or another deployment's
        stacks("UPDATE_IN_PROGRESS", "dev-network-2"),
    ],
)
def test_nothing_is_followed_where_nothing_is_in_progress(listed: list[dict[str, str]], settle: Settle) -> None:
    assert settle(listed) == []


def test_what_is_in_progress_is_followed_to_its_end(settle: Settle) -> None:
    assert settle(stacks("UPDATE_ROLLBACK_IN_PROGRESS", "dev-cluster")) == ["dev"]


def test_what_somebody_else_has_in_progress_is_not_followed(settle: Settle) -> None:
    with pytest.raises(
        OperationError, match=r"dev-cluster: UPDATE_IN_PROGRESS, started 2026-05-04 .* by anna"
    ) as error:
        settle(stacks("UPDATE_IN_PROGRESS", "dev-cluster"), is_own=False)
    assert error.value.hint == "./ultracluster status dev --watch follows it; then the same command"


def test_after_a_failure_nothing_is_deployed(settle: Settle) -> None:
    with pytest.raises(OperationError, match="in progress failed") as error:
        settle(stacks("CREATE_IN_PROGRESS"), ExitCode.FAILED)
    assert error.value.hint == "./ultracluster diagnose dev; to try again: ./ultracluster deploy dev"


def test_settings_from_before_an_upgrade_deploy_nothing(settle: Settle) -> None:
    with pytest.raises(OperationError, match=r"newer clusters than the settings say: cluster\.generation 2"):
        settle([*stacks("CREATE_IN_PROGRESS"), SECOND_CLUSTER])
