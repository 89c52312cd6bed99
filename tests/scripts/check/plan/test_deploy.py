"""`./ultracluster deploy`: what it asks, starts and returns."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from scripts.account.deployment import Deployment
from scripts.account.way_out import WayOut
from scripts.change import deploy, rollback
from scripts.change.approval import deletes_review
from scripts.change.deploy import run_cdk
from scripts.check.plan import cdk, plan
from scripts.check.plan.model import ClusterPlan, Effect, ResourceChange, Source, StackPlan
from scripts.check.plan.report import Plan
from scripts.core.errors import ExitCode
from scripts.core.findings import CheckStatus, Finding
from tests.scripts.change.destroy.accounts import Terminal
from tests.scripts.check.plan.conftest import Run

CHANGE = ResourceChange("Queue", "AWS::EC2::VPC", Effect.CHANGED, causes=("Tags",))
BLOCKING = Finding(CheckStatus.FAIL, "the VPC is replaced", subject="network")


def planned(*changes: ResourceChange, findings: Sequence[Finding] = ()) -> Plan:
    return Plan(
        deployment="trn1-16",
        region="us-west-2",
        against="account 123456789012",
        stacks=(StackPlan("trn1-16-network", Source.CHANGE_SET, changes=changes),),
        cluster=ClusterPlan("trn1-16", exists=True, source="its resource does not change"),
        findings=tuple(findings),
    )


@pytest.mark.parametrize(
    ("status", "waiting", "is_deleted"),
    [
        ("REVIEW_IN_PROGRESS", ["mine"], True),
        ("REVIEW_IN_PROGRESS", [], True),
        ("REVIEW_IN_PROGRESS", ["mine", "another"], False),
        ("CREATE_COMPLETE", ["mine"], False),
    ],
)
def test_a_stack_that_was_never_created_goes_with_its_only_change_set(
    status: str, waiting: list[str], is_deleted: bool
) -> None:
    cloudformation = Mock()
    cloudformation.describe_stacks.return_value = {"Stacks": [{"StackStatus": status}]}
    cloudformation.list_change_sets.return_value = {"Summaries": [{"ChangeSetName": each} for each in waiting]}
    assert deletes_review(cloudformation, "dev-network", "mine") is is_deleted
    assert cloudformation.delete_stack.called is is_deleted


class Approved:
    """An approval of stacks that nobody else changes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.found: list[str] = []

    @classmethod
    def of(cls, _: Deployment, directory: Path) -> Approved:
        return cls(directory)

    def new_name(self) -> str:
        return "unique"

    def check(self) -> None:
        pass

    def discard(self, name: str) -> None:
        pass

    def conflicts(self, *_: object, is_done: bool) -> list[str]:
        return self.found


class Deploying:
    """`deploy` with a plan in place of what an account says; notes what the CDK would be started with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.plan = planned(CHANGE)
        self.started: list[list[str]] = []
        self.ways_out: tuple[WayOut, ...] = ()
        monkeypatch.setattr(deploy, "settle", lambda *_: None)
        monkeypatch.setattr(cdk, "synthesize", lambda *_: None)
        monkeypatch.setattr(deploy, "Approval", Approved)
        monkeypatch.setattr(plan, "make_plan", self._make_plan)
        monkeypatch.setattr(rollback, "lead_out", lambda *_, **__: None)
        monkeypatch.setattr(rollback, "ways_out", lambda *_: self.ways_out)

    def leave_out_the_cdk(self) -> None:
        self._monkeypatch.setattr(deploy, "run_cdk", self._note)

    def _note(self, name: str, _: Path, __: str, arguments: Sequence[str], **___: object) -> int:
        self.started.append([name, *arguments])
        return 0

    def _make_plan(self, *_: object, accepted: bool) -> Plan:
        return planned(CHANGE) if accepted else self.plan

    def answer(self, *answers: str) -> None:
        """Have a terminal, at which somebody gives these answers."""
        self._monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{answer}\n" for answer in answers)))


@pytest.fixture
def deploying(monkeypatch: pytest.MonkeyPatch) -> Deploying:
    prepared = Deploying(monkeypatch)
    prepared.leave_out_the_cdk()
    return prepared


@pytest.mark.parametrize(("answer", "code", "started"), [("n", 1, []), ("", 1, []), ("y", 0, [["trn1-16"]])])
def test_it_asks(answer: str, code: int, started: list[list[str]], deploying: Deploying, run: Run) -> None:
    deploying.answer(answer)
    exit_code, out, err = run("deploy", "trn1-16")
    assert (exit_code, deploying.started) == (code, started)
    assert "EC2::VPC" in out
    assert ("Nothing was changed." in err) == (code == 1)


def test_it_does_not_ask_without_changes(deploying: Deploying, run: Run) -> None:
    deploying.plan = planned()
    deploying.answer()
    assert run("deploy", "trn1-16")[0] == 0
    assert deploying.started == [["trn1-16"]]


def test_it_does_not_deploy_a_plan_with_a_blocking_issue_unless_accepted(deploying: Deploying, run: Run) -> None:
    deploying.plan = planned(CHANGE, findings=[BLOCKING])
    code, out, _ = run("deploy", "trn1-16", "--yes")
    assert (code, deploying.started) == (1, [])
    assert "the VPC is replaced" in out
    assert run("deploy", "trn1-16", "--yes", "--accept-replacement", "--", "--verbose")[0] == 0
    assert deploying.started == [["trn1-16", "--verbose"]]


@pytest.mark.parametrize(
    "stage",
    [
        "scripts.change.deploy.settle",
        "scripts.check.plan.cdk.synthesize",
        "scripts.check.plan.plan.make_plan",
        "sys.stdin.readline",
    ],
)
def test_ctrl_c_before_the_cdk_starts_deploys_nothing(
    stage: str, deploying: Deploying, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    deploying.answer("y")
    monkeypatch.setattr(stage, interrupt)
    assert run("deploy", "trn1-16")[0] == ExitCode.INTERRUPTED
    assert deploying.started == []


def test_json_is_all_of_standard_output(deploying: Deploying, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = {"StackStatus": "CREATE_COMPLETE", "Outputs": [{"OutputKey": "VpcId", "OutputValue": "vpc-1"}]}
    monkeypatch.setattr(Deployment, "stack", lambda _, name: {"StackName": name, **stack} if "net" in name else None)
    code, out, err = run("deploy", "trn1-16", "--yes", "--output", "json")
    result = json.loads(out)
    assert (code, result["exit_code"], result["outcome"], result["blockers"]) == (0, 0, "deployed", [])
    assert result["stacks"] == [{"name": "trn1-16-network", "status": "CREATE_COMPLETE", "outputs": {"VpcId": "vpc-1"}}]
    assert "EC2::VPC" in err
    deploying.plan = planned(CHANGE, findings=[BLOCKING])
    code, out, err = run("deploy", "trn1-16", "--yes", "--output", "json")
    assert (code, json.loads(out)["outcome"]) == (1, "blocked")
    assert json.loads(out)["blockers"] == ["network: the VPC is replaced"]


def use_cdk(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let a Python program be the CDK command line."""
    monkeypatch.setattr(cdk, "command", lambda *arguments: [sys.executable, "-c", program, *arguments])


def test_the_planned_directory_is_deployed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Deploying(monkeypatch)
    monkeypatch.setattr("scripts.change.deploy.BUILD", tmp_path / "build")
    monkeypatch.setattr(cdk, "ROOT", tmp_path)
    (tmp_path / "config").symlink_to(Path(__file__).parents[4] / "config")
    (tmp_path / "cdk.out").mkdir()
    (tmp_path / "cdk.out/manifest.json").write_text("of another command")

    def synthesize(_: str, directory: Path) -> None:
        directory.mkdir()
        (directory / "manifest.json").write_text("planned")

    monkeypatch.setattr(cdk, "synthesize", synthesize)
    program = "import shutil, sys; print(sys.argv); shutil.copytree(sys.argv[sys.argv.index('--app') + 1], 'deployed')"
    use_cdk(monkeypatch, program)
    code, out, err = run("deploy", "trn1-16", "--yes")
    assert code == 0
    assert "build/outputs-trn1-16.json" in out + err
    assert (tmp_path / "deployed/manifest.json").read_text() == "planned"
    assert (tmp_path / "cdk.out/manifest.json").read_text() == "of another command"


@pytest.mark.parametrize(
    "argument",
    [
        ("--profile", "other"),
        ("-c", "env=dev"),
        ("other-stack",),
        ("--", "--profile=other"),
    ],
    ids=" ".join,
)
def test_the_cdk_gets_no_argument_that_leads_to_another_deployment(argument: tuple[str, ...], run: Run) -> None:
    code, out, err = run("deploy", "trn1-16", "--yes", "--", "--verbose", *argument)
    assert (code, out) == (2, "")
    assert f"after --: got {argument[0].partition('=')[0]}; allowed: --verbose" in " ".join(err.split())


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_the_cdk_ends_with_the_command(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    use_cdk(monkeypatch, f"import os, time\nfor _ in range(100): os.kill(os.getppid(), {int(number)}); time.sleep(0.1)")
    monkeypatch.setattr("scripts.change.deploy.BUILD", tmp_path)
    before = signal.signal(number, lambda *_: None)  # until the command listens
    try:
        assert run_cdk("trn1-16", tmp_path, "unique", ()) == 128 + signal.SIGTERM
    finally:
        signal.signal(number, before)
    assert "The CDK was terminated." in capfd.readouterr().err


def test_a_failure_says_what_is_in_force_where_a_roll_back_failed(
    deploying: Deploying, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "run_cdk", lambda *_, **__: 1)
    assert run("deploy", "trn1-16", "--yes")[2].endswith("; the same command deploys the rest\n")
    way = WayOut(
        stack="trn1-16-cluster", in_force="the old one is in force", first="", continued="trn1-16-cluster",
        skipped=("Cluster",), is_safe=True, command="aws x", deployment="trn1-16",
    )  # fmt: skip
    deploying.ways_out = (way,)
    code, _, err = run("deploy", "trn1-16", "--yes")
    assert code == 1
    assert f"{way.sentence}." in err
    assert f"hint: ./ultracluster diagnose trn1-16; {way.steps}" in err
