"""Who started an operation on a stack, and that no command changes a deployment beside somebody else's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from config.settings import load
from scripts.account import operations, stacks
from scripts.account.deployment import Account, Deployment
from scripts.account.operations import Operation
from scripts.account.stack_state import StackState
from scripts.core import options
from scripts.core.errors import ExitCode, OperationError
from scripts.core.options import CONFIG
from tests.command_line import Call, leaves
from tests.scripts.operated import Operated

DEV = load(CONFIG / "dev.yaml")
NAME = re.compile(r"[a-zA-Z][-a-zA-Z0-9]{0,127}")
"""What CloudFormation accepts as the name of a change set; of a token more.

https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateChangeSet.html
"""
ANNA = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Admin_0123/anna@example.com"
STARTED = datetime(2026, 5, 4, 3, 2, tzinfo=UTC)
UPDATES = StackState.UPDATE_IN_PROGRESS


class Caller(Account):
    """An account as somebody sees it, with the events of the last operation on a stack."""

    def __init__(self, arn: str = ANNA, *own: tuple[str, str]) -> None:
        super().__init__("us-west-2")
        self._arn = arn
        self._own = own

    def ask(self, service: str, operation: str, **_: Any) -> Any:
        assert (service, operation) == ("sts", "get_caller_identity")
        return {"Arn": self._arn}

    def client(self, service: str, region: str | None = None) -> Any:
        return self

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        """Yield the events of the stack itself, given as status and token, the newest first and a minute apart."""
        yield {
            "StackEvents": [
                {
                    "EventId": str(number),
                    "StackId": stack()["StackId"],
                    "StackName": "dev-cluster",
                    "LogicalResourceId": "dev-cluster",
                    "PhysicalResourceId": stack()["StackId"],
                    "ResourceType": stacks.NESTED,
                    "ResourceStatus": status,
                    "Timestamp": STARTED + timedelta(minutes=len(self._own) - 1 - number),
                    **({"ClientRequestToken": token} if token else {}),
                }
                for number, (status, token) in enumerate(self._own)
            ]
        }


def stack(change_set: str = "") -> dict[str, Any]:
    region, account = "us-west-2", "123456789012"
    described = {
        "StackName": "dev-cluster",
        "StackId": f"arn:aws:cloudformation:{region}:{account}:stack/dev-cluster/1",
        "StackStatus": "UPDATE_IN_PROGRESS",
    }
    if change_set:
        described["ChangeSetId"] = f"arn:aws:cloudformation:{region}:{account}:changeSet/{change_set}/2"
    return described


@pytest.fixture(autouse=True)
def somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")
    for name in operations._PIPELINES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("arn", "who"),
    [
        (ANNA, "anna-example-com"),
        ("arn:aws:iam::123456789012:user/team/a=b,c@d_e", "a-b-c-d-e"),
        ("arn:aws:iam::123456789012:root", "root"),
        ("arn:aws-cn:sts::123456789012:assumed-role/Role/---", "unnamed"),
        ("arn:aws:sts::123456789012:assumed-role/Role/" + "x1" * 32, ("x1" * 32)[:60]),
    ],
)
def test_a_name_is_unique_and_says_who(arn: str, who: str) -> None:
    first, second = (operations.new_name(Caller(arn), "deploy") for _ in range(2))
    assert first != second
    assert NAME.fullmatch(first)
    assert first.startswith(f"ultracluster-deploy-{who}-")
    operation = operations.last(Caller(arn, ("UPDATE_IN_PROGRESS", "exec1")), stack(first))
    assert (operation.name, operation.is_own) == (first, True)


OWN = "anna-example-com with ./ultracluster {} (you)"


@pytest.mark.parametrize(
    ("token", "by"),
    [
        ("execute-by-cdk", OWN.format("deploy")),
        ("TOKEN", OWN.format("destroy")),
        ("Console-UpdateStack-1", "the console of AWS"),
        ("update-by-cdk", "the CDK without ./ultracluster"),
        ("", "a program that left no name"),
    ],
)
def test_who_started_an_operation(token: str, by: str) -> None:
    """The change set that a stack names is that of an earlier operation, unless the token says that one is executed."""
    if token == "TOKEN":  # noqa: S105 - no secret
        token = operations.new_name(Caller(), "destroy")
    events = ("UPDATE_ROLLBACK_IN_PROGRESS", token), ("UPDATE_IN_PROGRESS", token), ("CREATE_COMPLETE", "earlier")
    found = operations.last(Caller(ANNA, *events), stack(operations.new_name(Caller(), "deploy")))
    assert (found.by, found.is_own) == (by, by.endswith("(you)"))
    assert found.since == STARTED + timedelta(minutes=1)


def test_a_cdk_without_this_command_is_nobodys_own() -> None:
    found = operations.last(Caller(ANNA, ("UPDATE_IN_PROGRESS", "exec1")), stack("cdk-deploy-change-set"))
    assert (found.by, found.is_own) == ("the CDK without ./ultracluster", False)


@pytest.mark.parametrize(
    ("arn", "host", "variables", "is_own"),
    [
        (ANNA, "laptop", {}, True),
        (ANNA, "desktop", {}, False),
        (ANNA.replace("anna", "ben"), "laptop", {}, False),
        (ANNA, "laptop", {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "team/fork"}, False),
        (ANNA, "laptop", {"GITHUB_REPOSITORY": "team/fork"}, True),
    ],
)
def test_ones_own_is_of_one_person_on_one_machine(
    arn: str, host: str, variables: Mapping[str, str], is_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = operations.new_name(Caller(), "deploy")
    monkeypatch.setattr("socket.gethostname", lambda: host)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert operations.last(Caller(arn, ("UPDATE_IN_PROGRESS", "exec1")), stack(name)).is_own == is_own


@pytest.mark.parametrize(("repository", "is_own"), [("team/fork", True), ("team/other", False)])
def test_a_pipelines_next_job_is_on_another_machine(
    repository: str, is_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = "arn:aws:sts::123456789012:assumed-role/ultracluster-ci-deploy-dev/"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_REPOSITORY", "team/fork")
    name = operations.new_name(Caller(f"{role}first"), "deploy")
    monkeypatch.setenv("GITHUB_REPOSITORY", repository)
    monkeypatch.setattr("socket.gethostname", lambda: "another-runner")
    found = operations.last(Caller(f"{role}second", ("UPDATE_IN_PROGRESS", "exec1")), stack(name))
    assert found.is_own == is_own


def test_the_next_session_of_a_role_is_the_same_person() -> None:
    role = "arn:aws:sts::123456789012:assumed-role/Admin/botocore-session-"
    name = operations.new_name(Caller(f"{role}1760000000"), "deploy")
    assert operations.last(Caller(f"{role}1760000099", ("UPDATE_IN_PROGRESS", "exec1")), stack(name)).is_own


def test_cloudtrail_is_named_where_cloudformation_does_not_know_who() -> None:
    nameless = Operation("dev-cluster", "us-west-2", UPDATES, STARTED, "the console of AWS", "", False)
    named = Operation("dev-cluster", "us-west-2", UPDATES, STARTED, "ben", "ultracluster-...", False)
    assert "--start-time 2026-05-04T02:57:00Z" in operations.refusal("No", [named, nameless], "wait").hint
    assert operations.refusal("No", [named], "wait").hint == "wait"


CHECKED: Mapping[str, tuple[str, ...]] = {
    "deploy": ("--yes",),
    "destroy": ("--confirm", "trn1-16", "--force", "--unprotect"),
    "fleet scale": ("--max", "4", "--yes", "--no-preflight"),
    "fleet start": (),
    "fleet stop": (),
    "recover": ("--confirm", "trn1-16"),
    "restore": (),
    "upgrade": ("--confirm", "trn1-16"),
}
"""Commands that change a deployment, with further words."""
UNCHECKED = {
    "bootstrap": "the account's stack CDKToolkit, which is of no deployment; the CDK's change set has a unique name",
    "env create": "files on the cluster, which are of no deployment",
    "env remove": "files on the cluster, likewise",
    "image build": "an image, which is of no deployment yet",
    "jobs cancel": "a job: a deployment that is in progress does not keep people from their work",
    "pipeline deploy": "stacks of the pipeline, which are of no deployment; it checks those",
    "prove": "the commands above do it, each of which checks",
    "runs export": "a directory on the cluster",
    "submit": "a job, likewise",
}
"""Commands that change something else, and what."""
READING = {
    "completion", "costs", "diagnose", "drift", "emulate", "env list", "estimate", "exec", "fleet status",
    "image render", "init",
    "inventory", "jobs list", "jobs logs", "jobs show", "logs", "pipeline outputs", "pipeline review", "pipeline synth",
    "plan", "port-forward", "preflight", "rehearse", "review", "runs list", "runs show", "shell", "ssh", "status",
    "synth",     "validate", "version",
}  # fmt: skip
"""Commands that change nothing in AWS, or pass on what a person types."""


def test_every_command_says_whether_it_changes_a_deployment() -> None:
    commands = dict(leaves())
    changing = {name for name, each in commands.items() if isinstance(each, options.Command) and each.is_changing}
    assert changing == CHECKED.keys() | UNCHECKED.keys()
    assert commands.keys() - changing == READING


READ_CALL = re.compile(r"[a-z0-9-]+:(AssumeRole|BatchGet|Describe|Get|Head|List|SendCommand)")
"""The last one asks Slurm for its jobs."""


class Refused:
    """Somebody else's operation on each stack that is looked at."""

    operation: ClassVar = Operation("trn1-16-cluster", "us-west-2", UPDATES, STARTED, "ben", "x", False)

    @classmethod
    def of(cls, _: Account, __: Any) -> Operation:
        return cls.operation


def test_no_command_changes_a_deployment_beside_somebody_else(
    operated: Operated, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "last", Refused.of)
    busy = SimpleNamespace(is_in_progress=True)
    monkeypatch.setattr(operations, "StackState", SimpleNamespace(of=lambda _: busy))
    operated.shell("cat >/dev/null")
    for name, words in CHECKED.items():
        operated.calls()
        printed = call(*name.split(), "trn1-16", *words)
        assert printed.code == ExitCode.FAILED, name
        assert "trn1-16-cluster: UPDATE_IN_PROGRESS, started 2026-05-04 03:02:00 UTC by ben" in printed.error, name
        assert "status trn1-16 --watch follows it" in printed.error, name
        assert [each for each in operated.calls() if not READ_CALL.match(each)] == [], name


def test_the_stacks_of_an_upgrade_count(monkeypatch: pytest.MonkeyPatch) -> None:
    second = {
        "StackName": "dev-cluster-2",
        "StackStatus": "CREATE_IN_PROGRESS",
        "Description": "Trn1 UltraCluster dev: cluster",
    }
    monkeypatch.setattr(Account, "list", lambda *_: [second])
    monkeypatch.setattr(operations, "last", Refused.of)
    with pytest.raises(OperationError, match="by ben"):
        operations.check(Deployment("dev", DEV))
