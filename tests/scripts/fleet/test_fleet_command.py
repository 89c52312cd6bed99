"""`python -m scripts fleet` on a deployment in an emulated account, with ParallelCluster's own code."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts.clock import Clock
from scripts.command import OperationError
from scripts.commands import fleet as program
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.fleet import jobs
from tests.scripts.account import Operated
from tests.scripts.fleet.fleet_world import Slurm

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schemas/fleet.json").read_text(encoding="utf-8"))
Fleet = Callable[..., tuple[int, str, str]]


@pytest.fixture
def slurm(operated: Operated, tmp_path: Path) -> Slurm:
    """Slurm on the head node of the deployment."""
    found = Slurm(tmp_path / "slurm")
    operated.shell(found.shell)
    return found


@pytest.fixture
def call(operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fleet:
    """Return a function that runs the program, and returns exit code, output and errors."""
    waited = timedelta()

    def sleep(_: Clock, seconds: float) -> None:
        nonlocal waited
        waited += timedelta(seconds=seconds)
        time.sleep(0.05)

    monkeypatch.setattr(Clock, "sleep", sleep)
    monkeypatch.setattr(Clock, "now", lambda _: datetime.now(UTC) + waited)
    monkeypatch.setattr("rich.console.Console.width", 80)
    del operated

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fleet", "trn1-16", *arguments])
        code = program.main()
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def document(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output)
    Draft202012Validator(SCHEMA).validate(found)
    return found


def test_stop_and_start(operated: Operated, slurm: Slurm, call: Fleet) -> None:
    operated.launch(3)
    code, output, errors = call("stop", "--json")
    found = document(output)
    assert (code, found["status"], found["instances"]) == (0, "STOPPED", {})
    assert "The stop is requested." in errors
    assert call("stop") == (0, call("stop")[1], "")
    code, output, _ = call("start", "--json")
    assert (code, document(output)["status"]) == (0, "RUNNING")


def test_status(operated: Operated, slurm: Slurm, call: Fleet) -> None:
    operated.launch(2)
    slurm.nodes(*[f"trn1|trn1-dy-trn1-32xl-{n}|idle" for n in (1, 2)], *["trn1|trn1-dy-trn1-32xl-3|idle~"] * 14)
    operated.calls()
    code, output, _ = call("status")
    assert code == 0
    assert len(operated.calls()) <= 6
    assert "Fleet of trn1-16: RUNNING, 2 nodes: 2 running" in output
    assert output.splitlines()[-1].split() == ["trn1", "up", "trn1-32xl", "dynamic", "16", "2"]
    assert max(len(line) for line in output.splitlines()) <= 80
    found = document(call("status", "--json")[1])
    assert found["queues"] == [
        {
            "name": "trn1",
            "state": "up",
            "nodes": [{"compute_resource": "trn1-32xl", "static": False, "count": 16, "ready": 2}],
        }
    ]


def test_status_without_an_answer_of_slurm(operated: Operated, call: Fleet) -> None:
    del operated
    found = document(call("status", "--json")[1])
    assert (found["status"], found["queues"]) == ("RUNNING", None)
    assert found["queues_unknown_because"]


def test_status_with_the_right_to_look_at_nothing_but_the_fleet(
    operated: Operated, slurm: Slurm, call: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    del slurm
    actions = ["dynamodb:GetItem", "ec2:DescribeInstances"]
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    with operated.aws.restricted(policy) as environment, monkeypatch.context():
        operated.act_as(environment, monkeypatch)
        code, output, _ = call("status", "--json")
    found = document(output)
    assert (code, found["status"], found["queues"]) == (0, "RUNNING", None)
    assert "ssm:SendCommand" in found["queues_unknown_because"]


def test_jobs_keep_it_from_stopping(operated: Operated, slurm: Slurm, call: Fleet) -> None:
    slurm.jobs("RUNNING")
    code, _, errors = call("stop")
    assert code == 1
    assert "Jobs with nodes: 1\n  11  alice" in errors
    assert call("stop", "--force")[0] == 2  # nobody can be asked
    assert document(call("status", "--json")[1])["status"] == "RUNNING"
    assert call("stop", "--force", "--yes")[0] == 0
    assert call("start")[0] == 0
    del operated


@pytest.mark.parametrize(("answer", "end"), [("n", (1, "RUNNING")), ("y", (0, "STOPPED"))])
def test_force_lists_the_jobs_that_it_ends_and_asks(
    slurm: Slurm, call: Fleet, monkeypatch: pytest.MonkeyPatch, answer: str, end: tuple[int, str]
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)

    def ask(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr("builtins.input", ask)
    slurm.jobs("RUNNING", "PENDING")
    code = call("stop", "--force")[0]
    [question] = asked
    assert question.startswith("These jobs lose their nodes:\n  11  alice  trn1  RUNNING  4 nodes  bert\nBatch jobs")
    assert question.endswith("--no-requeue; those and interactive ones end.\nGo on? [y/N] ")
    assert (code, document(call("status", "--json")[1])["status"]) == end
    call("start")


def test_a_request_that_parallelcluster_refuses_is_told_in_its_words(operated: Operated) -> None:
    absent = Deployment("absent", operated.settings.model_copy(update={"name": "absent"}))
    with pytest.raises(OperationError, match=r"does not take the request STOP_REQUESTED: .*'absent' does not exist"):
        fleet.request(absent, "STOP_REQUESTED")


@pytest.mark.parametrize(
    "arguments",
    [
        ("start", "--force"),
        ("status", "trn1"),
        ("stop", "--max", "3"),
        ("stop", "--limit", "3"),
        ("scale",),
        ("scale", "--max", "x"),
        ("stop", "--drain", "--force"),
        ("stop", "--drain", "--limit", "-1"),
        ("stop", "--drain", "--limit", "nan"),
        ("stop", "--drain", "--limit", "0"),
        ("stop", "--force", "--json"),
        ("scale", "--max", "3", "--json"),
        ("halt",),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(call: Fleet, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        call(*arguments)
    assert ended.value.code == 2


def test_a_limit_is_in_minutes(slurm: Slurm, call: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []
    monkeypatch.setattr(fleet, "stop", lambda *_, drain_limit, **__: limits.append(drain_limit))
    call("stop", "--drain", "--limit", "90")
    call("stop", "--drain")
    assert limits == [5400, None]
    del slurm


@pytest.mark.parametrize("arguments", [("status",), ("status", "--json"), ("scale", "--max", "3", "--yes")])
def test_without_a_cluster_the_first_thing_is_a_deployment(
    operated: Operated, call: Fleet, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(fleet, "status", lambda _: fleet.UNKNOWN)
    code, output, errors = call(*arguments)
    assert (code, output) == (1, "")
    assert "There is no fleet of a cluster trn1-16 in us-west-2. First: make deploy ENV=trn1-16" in errors
    del operated


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "GetItem"), 2),
    ],
    ids=["ctrl-c", "expired"],
)
@pytest.mark.parametrize("action", ["stop", "start"])
def test_an_end_in_mid_way_says_what_goes_on(
    call: Fleet, monkeypatch: pytest.MonkeyPatch, action: str, error: BaseException, code: int
) -> None:
    def end(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(fleet, action, end)
    ended, _, errors = call(action)
    assert ended == code
    assert f"A {action} that was requested goes on in AWS. The same command goes on waiting for it" in errors


def test_what_is_listed_is_short(slurm: Slurm, operated: Operated) -> None:
    from scripts.remote.head_node import HeadNode

    slurm.jobs(*["RUNNING"] * 100)
    lines = jobs.listed(jobs.slurm_state(HeadNode(operated.deployment())), waiting=False).splitlines()
    assert (len(lines), lines[-1]) == (11, "  and 90 more")
