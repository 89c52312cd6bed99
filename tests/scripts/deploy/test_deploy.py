"""`./ultracluster deploy` follows what a job that ended left in progress."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from emulator.aws import EmulatedAws
from emulator.cdk import CommandLine
from scripts import deploy, emulate, terminal
from scripts.deployment import Account, Deployment
from scripts.errors import ExitCode, OperationError
from scripts.options import CONFIG
from scripts.progress import watch as progress

DEV = load(CONFIG / "dev.yaml")
SECOND_CLUSTER = {
    "StackName": "dev-cluster-2",
    "StackStatus": "CREATE_COMPLETE",
    "Description": "Trn1 UltraCluster dev: cluster",
}
Settle = Callable[..., list[str]]


def stacks(status: str, name: str = "dev-network") -> list[dict[str, str]]:
    return [{"StackName": name, "StackStatus": status}]


@pytest.fixture
def settle(monkeypatch: pytest.MonkeyPatch) -> Settle:
    """Return a function that hands stacks and the end of what is in progress to `settle`: what was followed."""

    def called(listed: list[dict[str, str]] | Exception, ends: int | Exception = ExitCode.DONE) -> list[str]:
        followed: list[str] = []

        def answer(*_: Any, **__: Any) -> list[dict[str, str]]:
            if isinstance(listed, Exception):
                raise listed
            return listed

        def watch(deployment: Deployment, *_: Any, **__: Any) -> int:
            followed.append(deployment.environment)
            if isinstance(ends, Exception):
                raise ends
            return ends

        monkeypatch.setattr(Account, "list", answer)
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


def test_after_a_failure_nothing_is_deployed(settle: Settle) -> None:
    with pytest.raises(OperationError, match="in progress failed") as error:
        settle(stacks("CREATE_IN_PROGRESS"), ExitCode.FAILED)
    assert error.value.hint == "./ultracluster diagnose dev; to try again: ./ultracluster deploy dev"


def test_settings_from_before_an_upgrade_deploy_nothing(settle: Settle) -> None:
    with pytest.raises(OperationError, match=r"newer clusters than the settings say: cluster\.generation 2"):
        settle([*stacks("CREATE_IN_PROGRESS"), SECOND_CLUSTER])


@pytest.mark.slow
@pytest.mark.validation
def test_a_second_run_continues_the_first_and_a_third_has_nothing_to_do(boto3_data: None, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts", "deploy", "dev", "--yes"]
    with EmulatedAws() as aws, closing(CommandLine(aws)) as command_line:
        emulate.create_prerequisites(aws, DEV)
        assert command_line.bootstrap(DEV.region) == 0
        environment = {**os.environ, **aws.settings, **emulate.variables(DEV.region), "HOME": str(tmp_path)}
        cloudformation = aws.client("cloudformation", DEV.region)
        with subprocess.Popen(command, cwd=CONFIG.parent, env=environment) as first:
            while first.poll() is None and "dev-cluster" not in statuses(cloudformation):
                time.sleep(0.1)
            first.send_signal(signal.SIGTERM)
        assert first.returncode == 128 + signal.SIGTERM
        second, third = (
            subprocess.run(
                [*command, *more], cwd=CONFIG.parent, env=environment, capture_output=True, text=True, check=False
            )
            for more in ((), ("--output", "json"))
        )
        last = statuses(cloudformation)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Nothing would change." in third.stderr, third.stdout + third.stderr
    result = json.loads(third.stdout)
    assert (third.returncode, result["outcome"]) == (0, "deployed")
    assert [each["name"] for each in result["stacks"]] == [f"dev-{part}" for part in DEV.parts]
    assert all(each["outputs"] and each["status"] == last[each["name"]] for each in result["stacks"])
    assert {last[f"dev-{part}"] for part in DEV.parts} == {"CREATE_COMPLETE"}


def statuses(cloudformation: Any) -> dict[str, str]:
    return {each["StackName"]: each["StackStatus"] for each in cloudformation.describe_stacks()["Stacks"]}
