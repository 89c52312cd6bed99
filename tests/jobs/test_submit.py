"""`make submit`: on the cluster, and through Session Manager from elsewhere. Stubs check requests against AWS's API."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from scripts import submit
from scripts.deployment import Account

INSTANCE, COMMAND = "i-0123456789abcdef0", "01234567-89ab-cdef-0123-456789abcdef"
LOGIN = (
    "runuser --login ubuntu --command "
    "'python3 /fsx/ultracluster/jobs/current/submit.py --nodes 16 --output '\"'\"'/fsx/my run'\"'\"''"
)
STACK = {"StackName": "trn1-16-cluster", "CreationTime": "2026-11-20T00:00:00Z", "StackStatus": "CREATE_COMPLETE"}


class HeadNode:
    """What Session Manager tells of a command."""

    def __init__(self) -> None:
        options = {"region_name": "us-west-2", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
        self.clients = {service: boto3.client(service, **options) for service in ("cloudformation", "ssm")}
        self._stubbers = {service: Stubber(client) for service, client in self.clients.items()}
        for stubber in self._stubbers.values():
            stubber.activate()

    def deployed(self) -> None:
        outputs = [{"OutputKey": "HeadNodeInstanceId", "OutputValue": INSTANCE}]
        expected = {"StackName": "trn1-16-cluster"}
        answer = {"Stacks": [{**STACK, "Outputs": outputs}]}
        self._stubbers["cloudformation"].add_response("describe_stacks", answer, expected)

    def missing(self) -> None:
        self._stubbers["cloudformation"].add_client_error("describe_stacks", "ValidationError", "Stack does not exist")

    def sent(self) -> None:
        expected = {
            "InstanceIds": [INSTANCE],
            "DocumentName": "AWS-RunShellScript",
            "Parameters": {"commands": [LOGIN]},
            "TimeoutSeconds": 60,
        }
        self._stubbers["ssm"].add_response("send_command", {"Command": {"CommandId": COMMAND}}, expected)

    def unknown_instance(self) -> None:
        self._stubbers["ssm"].add_client_error("send_command", "InvalidInstanceId", "not in a valid state")

    def not_yet(self) -> None:
        self._stubbers["ssm"].add_client_error("get_command_invocation", "InvocationDoesNotExist")

    def answer(self, status: str, code: int = -1, output: str = "", error: str = "") -> None:
        answer = {
            "Status": status,
            "StatusDetails": status,
            "ResponseCode": code,
            "StandardOutputContent": output,
            "StandardErrorContent": error,
        }
        expected = {"CommandId": COMMAND, "InstanceId": INSTANCE}
        self._stubbers["ssm"].add_response("get_command_invocation", answer, expected)

    def all_was_asked(self) -> None:
        for stubber in self._stubbers.values():
            stubber.assert_no_pending_responses()


@pytest.fixture
def head_node(boto3_data: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HeadNode]:
    head_node = HeadNode()

    def client(_: Account, service: str) -> Any:
        return head_node.clients[service]

    monkeypatch.setattr(Account, "client", client)
    monkeypatch.setattr(submit, "SECONDS_BETWEEN_POLLS", 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["submit", "trn1-16", "--nodes", "16", "--output", "/fsx/my run"])
    yield head_node
    head_node.all_was_asked()


def test_the_command_goes_to_the_head_node_and_its_answer_comes_back(
    head_node: HeadNode, capsys: pytest.CaptureFixture[str]
) -> None:
    head_node.deployed()
    head_node.sent()
    head_node.not_yet()
    head_node.answer("Pending")
    head_node.answer("InProgress")
    head_node.answer("Success", 0, output="train        job 2\n")
    assert submit.main() == 0
    assert capsys.readouterr() == ("train        job 2\n", "")


def test_bad_input_is_the_exit_code_there_and_here(head_node: HeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    head_node.deployed()
    head_node.sent()
    head_node.answer("Failed", 2, error="--steps: got 0; allowed: a whole number from 1 on\n")
    assert submit.main() == 2
    assert capsys.readouterr().err == "--steps: got 0; allowed: a whole number from 1 on\n"


def test_a_command_that_never_ran_is_no_success(head_node: HeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    head_node.deployed()
    head_node.sent()
    head_node.answer("TimedOut")
    assert submit.main() == 1
    assert capsys.readouterr().err == f"The head node {INSTANCE} did not run the command: TimedOut\n"


def test_without_a_cluster_it_says_so(head_node: HeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    head_node.missing()
    assert submit.main() == 1
    assert capsys.readouterr().err == (
        "There is no stack trn1-16-cluster with a head node in us-west-2. First: make deploy\n"
    )


def test_a_head_node_that_session_manager_does_not_know(
    head_node: HeadNode, capsys: pytest.CaptureFixture[str]
) -> None:
    head_node.deployed()
    head_node.unknown_instance()
    assert submit.main() == 1
    assert "InvalidInstanceId" in capsys.readouterr().err


def test_on_the_cluster_it_is_called_directly(
    head_node: HeadNode, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, body in {"sbatch": "exit 99", "python3": 'echo "$@"; exit 2'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    assert submit.main() == 2
    assert capfd.readouterr().out == ("/fsx/ultracluster/jobs/current/submit.py --nodes 16 --output /fsx/my run\n")


@pytest.mark.parametrize("arguments", [[], ["trn2"]])
def test_an_unknown_environment_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["submit", *arguments])
    with pytest.raises(SystemExit) as end:
        submit.main()
    assert end.value.code == 2


def test_settings_that_cannot_be_used_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text("name: 1\n", encoding="utf-8")
    monkeypatch.setattr(submit, "CONFIG", tmp_path)
    monkeypatch.setattr(sys, "argv", ["submit", "mine"])
    assert submit.main() == 2
    assert "mine.yaml" in capsys.readouterr().err
