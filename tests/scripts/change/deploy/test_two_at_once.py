"""Two people deploy the same deployment at once: nobody is told of a success that is not theirs.

The second one does all of it at one of the points at which the first one has decided something, or waits.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from config.settings import load
from emulator.aws import EmulatedAws
from scripts.account import operations
from scripts.account.deployment import Deployment
from scripts.account.stack_state import StackState
from scripts.change import pipeline
from scripts.change.approval import Approval
from scripts.change.deploy import carry_out
from scripts.core import options
from scripts.core.errors import ExitCode, OperationError
from scripts.core.options import CONFIG
from tests.scripts.refusals import refusal
from toolchain.assembly import Assembly

DEV = load(CONFIG / "dev.yaml")
STACKS = ("dev-network", "dev-storage")
Hook = Callable[[str], object]
"""What happens meanwhile, at a point of a deployment."""


def write_assembly(directory: Path, value: str, tag: str, *, waits: bool) -> Path:
    """Write an assembly of two stacks; their parameters have a value, and with `waits` a signal ends their updates."""
    artifacts = {}
    directory.mkdir(exist_ok=True)
    for name in STACKS:
        properties = {"Type": "String", "Value": value, "Name": f"/{name}"}
        resources = {"Value": {"Type": "AWS::SSM::Parameter", "Properties": properties}}
        if waits:
            wait = {"Type": "AWS::CloudFormation::WaitCondition", "Properties": {"Handle": {"Ref": f"Handle{value}"}}}
            resources |= {f"Handle{value}": {"Type": "AWS::CloudFormation::WaitConditionHandle"}, f"Wait{value}": wait}
        (directory / f"{name}.json").write_text(json.dumps({"Resources": resources}))
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://unknown-account/{DEV.region}",
            "properties": {
                "templateFile": f"{name}.json",
                "assumeRoleArn": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/none",
                "tags": {"tag": tag},
            },
        }
    (directory / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return directory


class Cdk:
    """Makes the CDK's calls (aws-cdk 2.1148.1, deploy-stack.ts), and lets something happen in between."""

    def __init__(self, cloudformation: Any, directory: Path, hook: Hook) -> None:
        self._cloudformation = cloudformation
        self._stacks = Assembly(directory).stacks
        self._hook = hook

    def __call__(self, change_set: str) -> int:
        try:
            for name in self._stacks:
                self._deploy(name, change_set)
        except ClientError:
            return ExitCode.FAILED
        return ExitCode.DONE

    def _deploy(self, name: str, change_set: str) -> None:
        hook = self._hook if name == STACKS[0] else lambda _: None
        hook("before its change set")
        exists = self._status(name) not in ("", "REVIEW_IN_PROGRESS")
        one = {"StackName": name, "ChangeSetName": change_set}
        self._cloudformation.create_change_set(
            **one,
            ChangeSetType="UPDATE" if exists else "CREATE",
            TemplateBody=json.dumps(self._stacks[name].template),
            Tags=[{"Key": key, "Value": value} for key, value in self._stacks[name].tags.items()],
        )
        hook("change set")
        if self._cloudformation.describe_change_set(**one)["Status"] == "FAILED":  # it has no changes
            self._cloudformation.delete_change_set(**one)
        else:
            self._cloudformation.execute_change_set(**one, ClientRequestToken=f"exec{uuid.uuid4()}")
            hook("in progress")
            self._signal(name)
        while self._status(name).endswith("IN_PROGRESS"):
            time.sleep(0.02)
        if name == STACKS[-1]:
            self._hook("after the CDK")
        hook("between two stacks")

    def _status(self, name: str) -> str:
        try:
            return str(self._cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
        except ClientError:
            return ""

    def _signal(self, name: str) -> None:
        """Let the update that waits continue."""
        handle = next((each for each in self._stacks[name].resources if each.startswith("Handle")), None)
        url = None
        while handle and not url:
            listed = self._cloudformation.list_stack_resources(StackName=name)["StackResourceSummaries"]
            url = {each["LogicalResourceId"]: each.get("PhysicalResourceId") for each in listed}.get(handle)
        if url:
            body = json.dumps({"Status": "SUCCESS", "UniqueId": "1", "Data": ""}).encode()
            urllib.request.urlopen(urllib.request.Request(url, body, method="PUT")).close()  # noqa: S310 - the emulated AWS


class Account:
    """An account, in which people on machines of their own deploy values.

    Attributes:
        waits: Whether updates last until somebody has seen them in progress.
    """

    waits = False

    def __init__(self, aws: EmulatedAws, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._directory = directory
        self.cloudformation = aws.client("cloudformation", DEV.region)
        self._ssm = aws.client("ssm", DEV.region)
        for name, value in aws.environment.items():
            monkeypatch.setenv(name, value)

    def deploy(self, who: str, value: str, hook: Hook = lambda _: None, tag: str = "one") -> tuple[int, str]:
        """Deploy, and return the exit code, and what is said: `hook` is called at each point."""

        def away(point: str) -> None:
            hook(point)
            self.act_as(who)

        self.act_as(who)
        directory = write_assembly(self._directory / value, value, tag, waits=self.waits)
        try:
            operations.check(Deployment("dev", DEV))
            approval = Approval.of(Deployment("dev", DEV), directory)
            away("question")
            code, conflicts = carry_out(approval, Cdk(self.cloudformation, directory, away))
        except OperationError as error:
            return error.exit_code, f"{error}\n{error.hint}"
        return code, "\n".join(conflicts)

    def act_as(self, who: str) -> None:
        """Be somebody, on a machine of their own."""
        self._monkeypatch.setattr("socket.gethostname", lambda: who)
        self._monkeypatch.setattr(operations, "_caller", lambda _: f"arn:aws:sts::123456789012:assumed-role/Team/{who}")

    @property
    def deployed(self) -> dict[str, str]:
        """The values of what is deployed, by stack."""
        found = self._ssm.get_parameters(Names=[f"/{name}" for name in STACKS])["Parameters"]
        return {each["Name"][1:]: each["Value"] for each in found}

    @property
    def change_sets(self) -> set[str]:
        """The execution statuses of all change sets but those that were executed."""
        listed = [self.cloudformation.list_change_sets(StackName=name)["Summaries"] for name in STACKS]
        return {each["ExecutionStatus"] for summaries in listed for each in summaries}


@pytest.fixture
def account(aws: EmulatedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    return Account(aws, tmp_path, monkeypatch)


BEN = "20.* UTC by ben with ./ultracluster deploy"
WINNERS: Mapping[str, tuple[str, str]] = {
    "question": ("ben", f"^dev-network, dev-storage changed after this plan was made; nothing was deployed:.*{BEN}"),
    "change set": ("ben", f"^dev-network: .*_COMPLETE, started {BEN}\ndev-storage: .*_COMPLETE, started {BEN}$"),
    "in progress": ("anna", "operation is in progress; .*dev-network: .*_IN_PROGRESS, started 20.* UTC by anna with"),
    "after the CDK": ("ben", f"^dev-network: UPDATE_COMPLETE, started {BEN}: not the template that you approved\n"),
}
"""By the point at which Ben deploys while Anna does: whose success it is, and what the other one is told."""


class AtOnce:
    """Anna deploys 90, and Ben 120 when she is at a point."""

    def __init__(self, account: Account, point: str) -> None:
        self.results: dict[str, tuple[int, str]] = {}
        self._account, self._point = account, point
        self.results["anna"] = account.deploy("anna", "90", self._meanwhile)

    def _meanwhile(self, point: str) -> None:
        if point == self._point and not self.results:
            self.results["ben"] = self._account.deploy("ben", "120")


@pytest.mark.slow
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("point", WINNERS)
def test_one_succeeds_and_has_what_is_deployed(point: str, exists: bool, account: Account) -> None:
    if exists:
        assert account.deploy("zoe", "0") == (ExitCode.DONE, "")
    account.waits = point == "in progress"
    results = AtOnce(account, point).results
    winner, told = WINNERS[point]
    [loser] = results.keys() - {winner}
    assert results[winner] == (ExitCode.DONE, "")
    assert results[loser][0] == ExitCode.FAILED
    assert re.search(told, results[loser][1], re.DOTALL)
    assert account.deployed == dict.fromkeys(STACKS, "120" if winner == "ben" else "90")
    assert account.change_sets == set()


@pytest.mark.parametrize("point", ["before its change set", "between two stacks"])
def test_who_replaces_what_was_deployed_after_the_plan_is_told(point: str, account: Account) -> None:
    """CloudFormation has no trace of Anna's deployment when Ben looks, and none of Ben's when Anna's continues."""
    assert account.deploy("zoe", "0") == (ExitCode.DONE, "")
    results = AtOnce(account, point).results
    assert results["ben"] == (ExitCode.DONE, "")
    assert results["anna"][0] == ExitCode.FAILED
    assert "this replaced what somebody else deployed after the plan was made" in results["anna"][1]


def test_a_stack_that_somebody_else_is_about_to_create_is_left_to_them(account: Account) -> None:
    def killed(point: str) -> None:
        if point == "change set":
            raise KeyboardInterrupt

    def meanwhile(point: str) -> None:
        if point == "question":
            with pytest.raises(KeyboardInterrupt):
                account.deploy("ben", "120", killed)

    code, told = account.deploy("anna", "90", meanwhile)
    assert code == ExitCode.FAILED
    assert re.match(
        rf"dev-network changed after this plan was made.*REVIEW_IN_PROGRESS, started {BEN}", told, re.DOTALL
    )
    assert account.deploy("anna", "90") == (ExitCode.DONE, "")  # what is older than the plan is a change set left over
    assert account.deployed == dict.fromkeys(STACKS, "90")


def test_a_change_set_that_was_not_executed_leaves_no_stack(account: Account) -> None:
    """As after Ctrl-C: the CDK ends between the two."""

    def ended(point: str) -> None:
        if point == "change set":
            raise refusal("Interrupted")

    assert account.deploy("anna", "90", ended)[0] == ExitCode.FAILED
    assert account.cloudformation.describe_stacks()["Stacks"] == []
    assert account.deploy("anna", "90") == (ExitCode.DONE, "")
    assert account.deploy("anna", "120", ended)[0] == ExitCode.FAILED
    assert (account.deployed, account.change_sets) == (dict.fromkeys(STACKS, "90"), set())


def test_the_same_deployment_twice_is_no_conflict(account: Account) -> None:
    def meanwhile(point: str) -> None:
        if point == "change set":
            assert account.deploy("ben", "90") == (ExitCode.DONE, "")

    assert account.deploy("zoe", "90") == (ExitCode.DONE, "")
    assert account.deploy("anna", "90", meanwhile) == (ExitCode.DONE, "")


def test_other_tags_are_no_success(account: Account) -> None:
    def meanwhile(point: str) -> None:
        if point == "after the CDK":
            assert account.deploy("ben", "90", tag="two") == (ExitCode.DONE, "")

    code, told = account.deploy("anna", "90", meanwhile)
    assert code == ExitCode.FAILED
    assert "not the tags that you approved" in told


def test_the_pipelines_roles_are_not_deployed_beside_somebody_else(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_assembly(tmp_path / "pipeline", "0", "one", waits=False)
    started: list[tuple[str, ...]] = []

    def run(*words: str) -> int:
        started.append(words)
        return ExitCode.DONE

    monkeypatch.setattr(options, "BUILD", tmp_path)
    monkeypatch.setattr(pipeline, "load", lambda **_: SimpleNamespace(region=DEV.region))
    monkeypatch.setattr(pipeline, "synthesize", lambda: ExitCode.DONE)
    monkeypatch.setattr(pipeline, "run", run)
    assert account.deploy("zoe", "0") == (ExitCode.DONE, "")
    assert pipeline.deploy("--verbose") == (ExitCode.DONE, [])
    [words] = started
    assert words[:4] == ("deploy", "--all", "--app", str(directory))
    assert (words[4], words[-1]) == ("--change-set-name", "--verbose")
    write_assembly(tmp_path / "pipeline", "1", "one", waits=False)
    code, conflicts = pipeline.deploy()  # nothing deploys that
    assert (code, len(conflicts)) == (ExitCode.FAILED, len(STACKS))
    monkeypatch.setattr(StackState, "is_in_progress", True)
    account.act_as("anna")
    with pytest.raises(OperationError, match=r"dev-network: .* by zoe with \./ultracluster deploy"):
        pipeline.deploy()
    assert len(started) == 2
