"""AWS Systems Manager: public parameters, commands that nodes run, and sessions with them."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, cast
from uuid import uuid4

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.models import ec2_backends
from moto.ssm.responses import SimpleSystemManagerResponse

from emulator.agents import Agents, CommandRun
from emulator.moto_patches.instances import RegisteredAmi

_PUBLIC = "/aws/service/"
_IMAGES = f"{_PUBLIC}ami-amazon-linux-latest/"
_ROOT_DEVICE = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}

_DOCUMENT: Final = "AWS-RunShellScript"
_LONGEST: Final = {"stdout": 24_000, "stderr": 8_000}
"""Characters of a command's output that GetCommandInvocation returns.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html
"""
_PATIENCE: Final = 0.2
"""Seconds that a look waits for the end of a command, so that quick ones are done at the second look."""


@dataclass
class _Invocation:
    """A command on a node; without a run no agent answered. The first look at it comes too early, as it can on AWS."""

    command_id: str
    instance_id: str
    comment: str
    run: CommandRun | None
    is_known: bool = False

    def described(self) -> dict[str, Any]:
        """Return it as GetCommandInvocation does."""
        run = self.run
        has_output = run is not None and run.status in ("Success", "Failed")
        output = {stream: run.output[stream][:most] if run and has_output else "" for stream, most in _LONGEST.items()}
        return {
            "CommandId": self.command_id,
            "InstanceId": self.instance_id,
            "Comment": self.comment,
            "DocumentName": _DOCUMENT,
            "ResponseCode": run.code if run else -1,
            "Status": run.status if run else "Failed",
            "StatusDetails": run.status if run else "Undeliverable",
            "StandardOutputContent": output["stdout"],
            "StandardErrorContent": output["stderr"],
            "ExecutionStartDateTime": f"{run.started:%Y-%m-%dT%H:%M:%S}.000Z" if run else "",
        }


class Ssm(SimpleSystemManagerResponse):
    """Parameter Store whose public parameters name images that exist, and are not listed among the account's own.

    Run Command with the document AWS-RunShellScript, for nodes that are named one by one, and Session Manager.
    """

    agents: ClassVar[Agents]

    def get_parameter(self) -> ActionResult:
        answer = super().get_parameter()
        self._publish([cast(dict[str, Any], answer.result)["Parameter"]])
        return answer

    def get_parameters(self) -> ActionResult:
        answer = super().get_parameters()
        self._publish(cast(dict[str, Any], answer.result)["Parameters"])
        return answer

    def describe_parameters(self) -> ActionResult:
        answer = super().describe_parameters()
        result = cast(dict[str, Any], answer.result)
        own = [each for each in result["Parameters"] if not each["Name"].startswith(_PUBLIC)]
        return ActionResult({**result, "Parameters": own})

    def _publish(self, parameters: list[dict[str, Any]]) -> None:
        """Make the images that the parameters name, unless they exist."""
        ec2 = ec2_backends[self.current_account][self.region]
        for parameter in parameters:
            image_id = parameter["Value"]
            if parameter["Name"].startswith(_IMAGES) and image_id not in ec2.amis:
                ec2.amis[image_id] = RegisteredAmi(
                    ec2,
                    image_id,
                    name=parameter["Name"].removeprefix(_IMAGES),
                    architecture="arm64" if "arm64" in parameter["Name"] else "x86_64",
                    root_device_name=_ROOT_DEVICE["DeviceName"],
                    root_device_type="ebs",
                    virtualization_type="hvm",
                    owner_alias="amazon",
                    tags={},
                    devices=[_ROOT_DEVICE],
                )

    def send_command(self) -> ActionResult:
        instance_ids, parameters = self._get_param("InstanceIds"), self._get_param("Parameters")
        if missing := [each for each in instance_ids if each not in self._running_nodes()]:
            raise JsonRESTError(
                "InvalidInstanceId",
                f"Instances [[{', '.join(missing)}]] not in a valid state for account {self.current_account}",
            )
        config, comment = self._get_param("CloudWatchOutputConfig", {}), self._get_param("Comment", "")
        command_id, script = str(uuid4()), "\n".join(parameters["commands"])
        seconds = float(parameters.get("executionTimeout", ["3600"])[0])
        for instance_id in instance_ids:
            log = None
            if config.get("CloudWatchOutputEnabled"):
                log = self.agents.log(self.region, config["CloudWatchLogGroupName"], f"{command_id}/{instance_id}")
            run = self.agents.run(script, seconds, log)
            self._invocations.append(_Invocation(command_id, instance_id, comment, run))
        command = {
            "CommandId": command_id,
            "DocumentName": _DOCUMENT,
            "Comment": comment,
            "InstanceIds": instance_ids,
            "RequestedDateTime": datetime.now(UTC),
            "Status": "Pending",
        }
        return ActionResult({"Command": command})

    def get_command_invocation(self) -> ActionResult:
        for invocation in self._invocations_of(self._get_param("CommandId"), self._get_param("InstanceId")):
            if invocation.is_known:
                if invocation.run:
                    invocation.run.wait(_PATIENCE)
                return ActionResult(invocation.described())
            invocation.is_known = True
        raise JsonRESTError("InvocationDoesNotExist", "")

    def list_command_invocations(self) -> ActionResult:
        invocations = self._invocations_of(self._get_param("CommandId"), self._get_param("InstanceId"))
        return ActionResult({"CommandInvocations": [each.described() for each in invocations]})

    def cancel_command(self) -> ActionResult:
        for invocation in self._invocations_of(self._get_param("CommandId"), None):
            if invocation.run:
                invocation.run.cancel()
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

    def _running_nodes(self) -> set[str]:
        instances = ec2_backends[self.current_account][self.region].all_instances()
        return {each.id for each in instances if each.state == "running"}

    def _invocations_of(self, command_id: str | None, instance_id: str | None) -> list[_Invocation]:
        """Return those of a command and of a node; None: of any."""
        return [
            each
            for each in self._invocations
            if command_id in (None, each.command_id) and instance_id in (None, each.instance_id)
        ]

    @property
    def _invocations(self) -> list[_Invocation]:
        invocations: list[_Invocation] = vars(self.ssm_backend).setdefault("invocations", [])
        return invocations
