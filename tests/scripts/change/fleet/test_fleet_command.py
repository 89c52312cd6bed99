"""The fleet command: its arguments and questions, and once on a deployment with ParallelCluster's own code."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scripts.account import compute_fleet
from scripts.account.deployment import Deployment
from scripts.change.fleet import control as fleet
from scripts.change.fleet.document import FleetState
from scripts.core.clock import Clock
from scripts.core.errors import OperationError
from tests.command_line import Call
from tests.scripts.change.destroy.accounts import Terminal
from tests.scripts.change.fleet.fakes import SILENCE, FakeCluster, FakeSlurm
from tests.scripts.operated import Operated
from tests.scripts.refusals import refusal


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, call: Call) -> Call:
    monkeypatch.setattr("scripts.core.terminal.PLAIN_WIDTH", 80)
    return lambda action, *more: call("fleet", action, "trn1-16", *more)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(tmp_path, monkeypatch)
    monkeypatch.setattr("scripts.account.deployment.Deployment", lambda *_: fake.deployment)
    monkeypatch.setattr("scripts.core.clock.Clock", lambda: fake)
    for module in ("scripts.change.fleet.document", "scripts.change.fleet.queues"):
        monkeypatch.setattr(f"{module}.HeadNode", lambda *_: fake)
    return fake


@pytest.mark.parametrize(
    "arguments",
    [
        ("stop", "--limit", "3"),
        ("stop", "--drain", "--limit", "0"),
        ("stop", "--force", "--output", "json"),
        ("scale", "--max", "3", "--output", "json"),
    ],
)
def test_arguments_that_do_not_go_together_are_rejected(call: Call, arguments: tuple[str, ...]) -> None:
    assert call(*arguments)[0] == 2


def test_force_needs_a_terminal_or_yes_and_a_limit_is_in_minutes(cluster: FakeCluster, call: Call) -> None:
    cluster.slurm.jobs("RUNNING")
    assert call("stop", "--drain", "--limit", "90")[0] == 1
    assert cluster.sleeps == 90
    code, _, errors = call("stop", "--force")
    assert (code, cluster.requests) == (2, [])
    assert "pass --yes" in errors


@pytest.mark.parametrize(("answer", "end"), [("n", (1, "RUNNING")), ("y", (0, "STOPPED")), ("--yes", (0, "STOPPED"))])
def test_force_lists_the_jobs_that_it_ends_and_asks_unless_told_not_to(
    cluster: FakeCluster,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    end: tuple[int, str],
) -> None:
    is_given = answer == "--yes"
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    cluster.slurm.jobs("RUNNING", "PENDING")
    code, output, question = call("stop", "--force", *([answer] if is_given else []))
    said = output if is_given else question
    assert said.startswith("These jobs lose their nodes:\n  11  alice  trn1  RUNNING  4 nodes  bert\nBatch jobs")
    assert (code, cluster.status) == end


def test_a_limit_shorter_than_the_time_between_two_polls_is_waited_for(cluster: FakeCluster, call: Call) -> None:
    cluster.slurm.jobs("RUNNING")
    cluster.ticks[1] = cluster.slurm.jobs
    assert call("stop", "--drain", "--limit", "0.5")[0] == 0


@pytest.mark.parametrize(
    ("action", "error", "code"),
    [
        ("start", KeyboardInterrupt(), 130),
        ("stop", KeyboardInterrupt(), 130),
        ("stop", refusal("ExpiredToken", "GetItem", "expired"), 2),
    ],
    ids=["ctrl-c-start", "ctrl-c-stop", "expired"],
)
def test_an_interruption_says_what_continues(
    cluster: FakeCluster, call: Call, action: str, error: BaseException, code: int
) -> None:
    def end() -> None:
        raise error

    cluster.status = "STARTING" if action == "start" else "STOPPING"
    cluster.ticks[1] = end
    ended, _, errors = call(action)
    assert ended == code
    assert f"A {action} that was requested continues in AWS. The same command waits for it" in errors


def test_a_start_is_done_although_the_queues_cannot_be_asked(cluster: FakeCluster, call: Call) -> None:
    cluster.status, cluster.error = "STOPPED", SILENCE
    code, output, _ = call("start")
    assert (code, cluster.status) == (0, "RUNNING")
    assert "Queues are not known: " in output
    assert call("start")[0] == 1, "nothing opens closed queues of a fleet that runs"


def test_without_a_cluster_the_message_names_the_command_that_deploys_it(cluster: FakeCluster, call: Call) -> None:
    cluster.status = compute_fleet.UNKNOWN
    for arguments in (("status", "--output", "json"), ("scale", "--max", "3", "--yes")):
        code, output, errors = call(*arguments)
        assert (code, output) == (1, "")
        assert "There is no cluster trn1-16 in us-west-2\n\nhint: ./ultracluster deploy trn1-16" in errors


def test_the_state_of_the_fleet_fits_80_columns(cluster: FakeCluster, call: Call) -> None:
    cluster.nodes = 2
    ready = [f"trn1|trn1-st-trn1-32xl-{n}|idle" for n in (1, 2)]
    cluster.slurm.nodes(*ready, *["trn1|trn1-dy-trn1-32xl-3|idle+powered_down"] * 14)
    code, output, _ = call("status")
    lines = output.splitlines()
    assert (code, lines[0]) == (0, "Fleet of trn1-16: RUNNING, 2 nodes: 2 running")
    assert [line.split() for line in lines[-2:]] == [
        ["trn1", "up", "trn1-32xl", "dynamic", "14", "0"],
        ["trn1", "up", "trn1-32xl", "static", "2", "2"],
    ]
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_on_a_deployment(operated: Operated, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm, waited = FakeSlurm(tmp_path / "slurm"), timedelta()

    def sleep(_: Clock, seconds: float) -> None:
        nonlocal waited
        waited += timedelta(seconds=seconds)
        time.sleep(0.05)

    monkeypatch.setattr(Clock, "sleep", sleep)
    monkeypatch.setattr(Clock, "now", lambda _: datetime.now(UTC) + waited)
    code, output, _ = call("status", "--output", "json")
    state = FleetState.model_validate_json(output)
    assert (code, state.status, state.queues) == (1, "RUNNING", None)
    assert state.queues_unknown_because
    operated.shell(slurm.shell)
    operated.launch(3)
    operated.calls()
    state = FleetState.model_validate_json(call("status", "--output", "json")[1])
    assert len(operated.calls()) <= 6
    assert (state.instances, state.queues and state.queues[0].state) == ({"running": 3}, "up")
    code, output, errors = call("stop", "--output", "json")
    state = FleetState.model_validate_json(output)
    assert (code, state.status, state.instances) == (0, "STOPPED", {})
    assert "Stop requested." in errors
    code, output, _ = call("start", "--output", "json")
    assert (code, FleetState.model_validate_json(output).status) == (0, "RUNNING")
    absent = Deployment("absent", operated.settings.model_copy(update={"name": "absent"}))
    with pytest.raises(OperationError, match=r"rejects the request STOP_REQUESTED: .*'absent' does not exist"):
        fleet.request(absent, "STOP_REQUESTED")

    actions = ["dynamodb:GetItem", "ec2:DescribeInstances"]
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    with operated.aws.restricted(policy) as environment:
        operated.act_as(environment, monkeypatch)
        code, output, _ = call("status", "--output", "json")
    state = FleetState.model_validate_json(output)
    assert (code, state.status, state.queues) == (1, "RUNNING", None)
    assert "ssm:SendCommand" in (state.queues_unknown_because or "")
