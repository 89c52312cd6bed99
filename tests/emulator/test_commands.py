"""Commands on nodes, and sessions with them, as Systems Manager has them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.account import REGION, Account
from tests.emulator.stacks import code_and_message

UNDER_WAY = ("Pending", "InProgress", "Delayed", "Cancelling")
GROUP = "/aws/commands"
LOGGED = {"CloudWatchOutputEnabled": True, "CloudWatchLogGroupName": GROUP}


class Node:
    """An instance, and the commands that it is sent."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.aws = aws
        self.ssm = aws.client("ssm", REGION)
        [self.id] = Account(aws).launch()

    def send(self, script: str, *, seconds: int = 60, **options: Any) -> str:
        sent = self.ssm.send_command(
            InstanceIds=[self.id],
            DocumentName="AWS-RunShellScript",
            Parameters={"commands": script.split("\n"), "executionTimeout": [str(seconds)]},
            **options,
        )
        return str(sent["Command"]["CommandId"])

    def look(self, command_id: str) -> dict[str, Any]:
        invocation: dict[str, Any] = self.ssm.get_command_invocation(CommandId=command_id, InstanceId=self.id)
        return invocation

    def answer(self, command_id: str) -> tuple[str, str, int, str, str]:
        """Wait for the end of a command; return status, its details, exit code, output, errors."""
        with pytest.raises(ClientError, match="InvocationDoesNotExist"):
            self.look(command_id)
        while (invocation := self.look(command_id))["Status"] in UNDER_WAY:
            time.sleep(0.02)
        keys = ("Status", "StatusDetails", "ResponseCode", "StandardOutputContent", "StandardErrorContent")
        return tuple(invocation[key] for key in keys)

    def logged(self, command_id: str, stream: str) -> str:
        """Return what a stream of a command holds; an event may be several lines, or a part of one."""
        logs = self.aws.client("logs", REGION)
        name = f"{command_id}/{self.id}/aws-runShellScript/{stream}"
        try:
            events = logs.get_log_events(logGroupName=GROUP, logStreamName=name)["events"]
        except logs.exceptions.ResourceNotFoundException:
            return ""
        return "".join(event["message"] for event in events)


@pytest.fixture
def node(aws: EmulatedAws) -> Node:
    return Node(aws)


def test_the_shell_gets_the_script_and_its_answer_comes_back(node: Node) -> None:
    node.aws.set_shell("sed 's/^/> /'; echo trouble >&2")
    assert node.answer(node.send("one\ntwo")) == ("Success", "Success", 0, "> one\n> two", "trouble\n")


def test_a_command_that_takes_too_long_is_ended(node: Node) -> None:
    node.aws.set_shell("echo started; sleep 60")
    assert node.answer(node.send("true", seconds=1)) == ("TimedOut", "TimedOut", 137, "", "")


def test_a_command_is_in_progress_until_it_is_cancelled(node: Node, wait_for: Callable[..., None]) -> None:
    node.aws.set_shell("sleep 60 & wait")
    command_id = node.send("true")
    with pytest.raises(ClientError, match="InvocationDoesNotExist"):
        node.look(command_id)
    seen = node.look(command_id)
    assert (seen["Status"], seen["ResponseCode"]) == ("InProgress", -1)
    node.ssm.cancel_command(CommandId=command_id)
    wait_for(lambda: node.look(command_id)["Status"] == "Cancelled")
    [listed] = node.ssm.list_command_invocations(CommandId=command_id)["CommandInvocations"]
    assert (listed["InstanceId"], listed["Status"]) == (node.id, "Cancelled")


def test_output_goes_to_the_log_while_the_command_runs(
    node: Node, wait_for: Callable[..., None], tmp_path: Path
) -> None:
    node.aws.set_shell("bash")
    flag = tmp_path / "flag"
    script = f"printf 'a\\n\\n\\nhalf a'; until test -e {flag}; do :; done; echo ' line'; echo trouble >&2; exit 4"
    command_id = node.send(script, CloudWatchOutputConfig=LOGGED)
    wait_for(lambda: node.logged(command_id, "stdout") == "a\n\n\n")
    flag.touch()
    assert node.answer(command_id)[2] == 4
    assert node.logged(command_id, "stdout") == "a\n\n\nhalf a line\n"
    assert node.logged(command_id, "stderr") == "trouble\nfailed to run commands: exit status 4"


def test_a_node_writes_to_the_log_with_its_own_permissions(node: Node) -> None:
    node.aws.set_shell("bash")
    statement = {"Effect": "Allow", "Action": "ssm:*", "Resource": "*"}
    with node.aws.restricted({"Version": "2012-10-17", "Statement": [statement]}) as user:
        session = boto3.Session(user["AWS_ACCESS_KEY_ID"], user["AWS_SECRET_ACCESS_KEY"])
        node.ssm = session.client("ssm", REGION, endpoint_url=node.aws.endpoint)
        node.aws.calls()
        command_id = node.send("echo out", CloudWatchOutputConfig=LOGGED)
        assert node.answer(command_id)[0] == "Success"
    assert {each.split(":")[0] for each in node.aws.calls()} == {"ssm"}, "nobody but the node calls CloudWatch Logs"
    assert node.logged(command_id, "stdout") == "out\n"


def test_a_node_that_does_not_run_is_refused(node: Node) -> None:
    node.id = "i-0123456789abcdef0"
    with pytest.raises(ClientError) as refusal:
        node.send("true")
    assert code_and_message(refusal.value)[0] == "InvalidInstanceId"


OWN, SSH = "own-sessions", "AWS-StartSSHSession"
SESSION = {"schemaVersion": "1.0", "description": "x", "sessionType": "Port", "properties": {"portNumber": "22"}}
TAKING_A_PORT = {**SESSION, "parameters": {"portNumber": {"type": "String"}}}
COMMAND = {"schemaVersion": "2.2", "description": "x", "mainSteps": []}
OF_COMMANDS = "Document type: 'Command' is not supported. Only type: 'Session' is supported for Session Manager."
WITHOUT_PARAMETERS = "document {} does not support parameters."


@pytest.mark.parametrize(
    ("made", "name", "parameters", "refusal"),
    [
        (("Session", SESSION), OWN, [], None),
        (("Session", TAKING_A_PORT), OWN, ["portNumber"], None),
        (("Session", SESSION), OWN, ["portNumber"], ("InvalidParameters", WITHOUT_PARAMETERS.format(OWN))),
        (("Command", COMMAND), OWN, [], ("InvalidDocument", OF_COMMANDS)),
        (None, OWN, [], ("InvalidDocument", f"Document with name {OWN} does not exist.")),
        (None, SSH, ["portNumber"], None),
        (None, SSH, ["host"], ("InvalidParameters", WITHOUT_PARAMETERS.format(SSH))),
    ],
)
def test_a_session_has_a_session_document_that_exists_and_its_parameters(
    node: Node,
    made: tuple[str, dict[str, object]] | None,
    name: str,
    parameters: list[str],
    refusal: tuple[str, str] | None,
) -> None:
    node.aws.set_shell("true")
    if made:
        node.ssm.create_document(Name=OWN, DocumentType=made[0], Content=json.dumps(made[1]))
    request = {"Target": node.id, "DocumentName": name, "Parameters": {each: ["22"] for each in parameters}}
    if refusal is None:
        assert node.ssm.start_session(**request)["SessionId"]
        return
    with pytest.raises(ClientError) as caught:
        node.ssm.start_session(**request)
    assert code_and_message(caught.value) == refusal
