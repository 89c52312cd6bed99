"""AWS Systems Manager: commands that nodes run, and sessions with them."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final
from uuid import uuid4

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.models import ec2_backends
from moto.ssm.responses import SimpleSystemManagerResponse

from emulator.agents import Agents, CommandOrder, CommandRun

_DOCUMENT: Final = "AWS-RunShellScript"
_PLUGIN: Final = "aws:runShellScript"
_PARAMETERS: Final = {"commands", "executionTimeout"}
_SUMMARY: Final = {"CommandId", "InstanceId", "Comment", "DocumentName", "Status", "StatusDetails"}
"""What ListCommandInvocations tells of what GetCommandInvocation tells."""
_LONGEST: Final = {"stdout": 24_000, "stderr": 8_000}
"""Characters of a command's output that GetCommandInvocation returns.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html
"""
_PATIENCE: Final = 0.2
"""Seconds that a look waits for the end of a command, so that quick ones are done at the second look."""


@dataclass
class _Invocation:
    """A command on a node. The first look at it comes too early, as it can on AWS."""

    order: CommandOrder
    comment: str
    requested: datetime
    run: CommandRun | None
    is_known: bool = False

    @property
    def details(self) -> str:
        """What the API calls StatusDetails."""
        return self.run.status if self.run else "Undeliverable"

    @property
    def status(self) -> str:
        """What the API calls Status."""
        return self.run.status if self.run else "Failed"

    def text(self, stream: str) -> str:
        """Return the beginning of what was printed, if the command came to its own end."""
        ended = self.run and self.run.status in ("Success", "Failed")
        return self.run.output[stream][: _LONGEST[stream]] if self.run and ended else ""


class Commands(SimpleSystemManagerResponse):
    """Run Command with the document AWS-RunShellScript, for nodes that are named one by one, and Session Manager."""

    agents: ClassVar[Agents]

    def send_command(self) -> ActionResult:
        self._check_request()
        config = self._get_param("CloudWatchOutputConfig", {})
        parameters = self._get_param("Parameters", {})
        group = config.get("CloudWatchLogGroupName") or f"/aws/ssm/{_DOCUMENT}"
        command_id, now = str(uuid4()), datetime.now(UTC)
        invocations = self._invocations.setdefault(command_id, {})
        for instance_id in self._get_param("InstanceIds"):
            order = CommandOrder(
                self.region,
                command_id,
                instance_id,
                "\n".join(parameters["commands"]),
                float(parameters.get("executionTimeout", ["3600"])[0]),
                group if config.get("CloudWatchOutputEnabled") else None,
            )
            invocations[instance_id] = _Invocation(order, self._get_param("Comment", ""), now, self.agents.run(order))
        command = {
            "CommandId": command_id,
            "DocumentName": _DOCUMENT,
            "Comment": self._get_param("Comment", ""),
            "Parameters": parameters,
            "InstanceIds": list(invocations),
            "RequestedDateTime": now,
            "Status": "Pending",
            "StatusDetails": "Pending",
            "TargetCount": len(invocations),
            "CloudWatchOutputConfig": config,
        }
        return ActionResult({"Command": command})

    def get_command_invocation(self) -> ActionResult:
        command = self._invocations.get(self._get_param("CommandId"), {})
        invocation = command.get(self._get_param("InstanceId"))
        if invocation is None or not invocation.is_known:
            if invocation:
                invocation.is_known = True
            raise JsonRESTError("InvocationDoesNotExist", "")
        if invocation.run:
            invocation.run.wait(_PATIENCE)
        return ActionResult({**_described(invocation), **_timed(invocation.run), "PluginName": _PLUGIN})

    def list_command_invocations(self) -> ActionResult:
        wanted_command, wanted_node = self._get_param("CommandId"), self._get_param("InstanceId")
        found = [
            {
                **{key: value for key, value in _described(each).items() if key in _SUMMARY},
                "RequestedDateTime": each.requested,
            }
            for command_id, command in self._invocations.items()
            for instance_id, each in command.items()
            if wanted_command in (None, command_id) and wanted_node in (None, instance_id)
        ]
        return ActionResult({"CommandInvocations": found})

    def cancel_command(self) -> ActionResult:
        command = self._invocations.get(self._get_param("CommandId"))
        if command is None:
            raise JsonRESTError("InvalidCommandId", "")
        for instance_id in self._get_param("InstanceIds") or list(command):
            if run := command[instance_id].run:
                run.cancel()
        return EmptyResult()

    def start_session(self) -> ActionResult:
        target = self._get_param("Target")
        if target not in self._running_nodes() or self.agents.shell is None:
            raise JsonRESTError("TargetNotConnected", f"{target} is not connected.")
        session_id = f"session-{uuid4().hex[:17]}"
        url = f"wss://ssmmessages.{self.region}.amazonaws.com/v1/data-channel/{session_id}?role=publish_subscribe"
        return ActionResult({"SessionId": session_id, "TokenValue": uuid4().hex, "StreamUrl": url})

    def terminate_session(self) -> ActionResult:
        return ActionResult({"SessionId": self._get_param("SessionId")})

    def _check_request(self) -> None:
        """Refuse what AWS refuses, and what is not known here."""
        if self._get_param("DocumentName") != _DOCUMENT:
            raise JsonRESTError(
                "InvalidDocument", f"Document with name {self._get_param('DocumentName')} does not exist."
            )
        parameters = self._get_param("Parameters", {})
        if (unknown := parameters.keys() - _PARAMETERS) or "commands" not in parameters:
            raise JsonRESTError("InvalidParameters", f"{', '.join(sorted(unknown)) or 'no commands'}: not known here")
        if self._get_param("Targets"):
            raise JsonRESTError("InvalidParameters", "Targets are not known here")
        if missing := [each for each in self._get_param("InstanceIds", []) if each not in self._running_nodes()]:
            raise JsonRESTError(
                "InvalidInstanceId",
                f"Instances [[{', '.join(missing)}]] not in a valid state for account {self.current_account}",
            )

    def _running_nodes(self) -> set[str]:
        instances = ec2_backends[self.current_account][self.region].all_instances()
        return {each.id for each in instances if each.state == "running"}

    @property
    def _invocations(self) -> dict[str, dict[str, _Invocation]]:
        """The invocations by command and node."""
        commands: dict[str, dict[str, _Invocation]] = vars(self.ssm_backend).setdefault("rehearsed_commands", {})
        return commands


def _described(invocation: _Invocation) -> dict[str, Any]:
    return {
        "CommandId": invocation.order.command_id,
        "InstanceId": invocation.order.instance_id,
        "Comment": invocation.comment,
        "DocumentName": _DOCUMENT,
        "ResponseCode": invocation.run.code if invocation.run else -1,
        "Status": invocation.status,
        "StatusDetails": invocation.details,
        "StandardOutputContent": invocation.text("stdout"),
        "StandardErrorContent": invocation.text("stderr"),
        "StandardOutputUrl": "",
        "StandardErrorUrl": "",
    }


def _timed(run: CommandRun | None) -> dict[str, str]:
    """Return when a command started and ended, in ISO 8601; empty: it did not."""
    ended = run.ended if run else None
    return {
        "ExecutionStartDateTime": f"{run.started:%Y-%m-%dT%H:%M:%S}.000Z" if run else "",
        "ExecutionEndDateTime": f"{ended:%Y-%m-%dT%H:%M:%S}.000Z" if ended else "",
        "ExecutionElapsedTime": f"PT{(ended - run.started).total_seconds():.3f}S" if run and ended else "",
    }
