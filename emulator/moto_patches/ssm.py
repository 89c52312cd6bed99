"""AWS Systems Manager: public parameters, commands that nodes run, and sessions with them."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, cast
from uuid import uuid4

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import Instance
from moto.ssm.responses import SimpleSystemManagerResponse

from emulator.agents import Agents, CommandRun
from emulator.moto_patches.instances import RegisteredAmi

_PUBLIC = "/aws/service/"
_IMAGES = f"{_PUBLIC}ami-amazon-linux-latest/"
_ROOT_DEVICE = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}

_DOCUMENT: Final = "AWS-RunShellScript"
DEFAULT_SESSION_DOCUMENT: Final = "SSM-SessionManagerRunShell"


def _session_document(session_type: str, *parameters: str) -> Mapping[str, Any]:
    """Return a session document whose properties are its parameters."""
    return {
        "sessionType": session_type,
        "parameters": {name: {"type": "String"} for name in parameters},
        "properties": {name: f"{{{{ {name} }}}}" for name in parameters},
    }


SESSION_DOCUMENTS: Final = {
    DEFAULT_SESSION_DOCUMENT: _session_document("Standard_Stream"),
    "AWS-PasswordReset": _session_document("InteractiveCommands", "username"),
    "AWS-StartInteractiveCommand": _session_document("InteractiveCommands", "command"),
    "AWS-StartNonInteractiveCommand": _session_document("NonInteractiveCommands", "command"),
    "AWS-StartPortForwardingSession": _session_document("Port", "portNumber", "localPortNumber"),
    "AWS-StartPortForwardingSessionToRemoteHost": _session_document("Port", "host", "portNumber", "localPortNumber"),
    "AWS-StartSSHSession": _session_document("Port", "portNumber"),
}
"""Session documents that every account has, with what their sessions take from the caller.

https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-sessions-start.html,
https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-schema.html
"""
_LONGEST: Final = {"stdout": 24_000, "stderr": 8_000}
"""Characters of a command's output that GetCommandInvocation returns.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html
"""
_PATIENCE: Final = 0.2
"""Seconds that a look waits for the end of a command, so that quick ones are done at the second look."""


_SYSTEMS: Final = {
    "amzn2023": ("Amazon Linux", "2023"),
    "rhel8": ("Red Hat Enterprise Linux", "8"),
    "rhel9": ("Red Hat Enterprise Linux", "9"),
    "rocky8": ("Rocky Linux", "8"),
    "rocky9": ("Rocky Linux", "9"),
    "ubuntu-2204": ("Ubuntu", "22.04"),
    "ubuntu-2404": ("Ubuntu", "24.04"),
}
"""Name and version of the operating system, by what the name of ParallelCluster's image of it contains."""
_UNFINISHED: Final = ("Pending", "InProgress", "Cancelling")


@dataclass
class _Command:
    """A command as SendCommand takes it, and where it runs."""

    request: dict[str, Any]
    invocations: list[_Invocation]

    def described(self) -> dict[str, Any]:
        """Return it as ListCommands does: unfinished as long as one node is."""
        statuses = [each.status for each in self.invocations]
        unfinished = [each for each in statuses if each in _UNFINISHED]
        failed = [each for each in statuses if each not in (*_UNFINISHED, "Success")]
        status = (unfinished or failed or ["Success"])[0]
        return {
            **self.request,
            "Status": status,
            "StatusDetails": status,
            "TargetCount": len(statuses),
            "CompletedCount": len(statuses) - len(unfinished),
            "ErrorCount": len(failed),
        }


@dataclass
class _Invocation:
    """A command on a node; without a run no agent answered. The first look at it comes too early, as it can on AWS."""

    command_id: str
    instance_id: str
    comment: str
    run: CommandRun | None
    is_known: bool = False

    @property
    def status(self) -> str:
        return self.run.status if self.run else "Failed"

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
            "Status": self.status,
            "StatusDetails": run.status if run else "Undeliverable",
            "StandardOutputContent": output["stdout"],
            "StandardErrorContent": output["stderr"],
            "ExecutionStartDateTime": f"{run.started:%Y-%m-%dT%H:%M:%S}.000Z" if run else "",
        }


class Ssm(SimpleSystemManagerResponse):
    """Parameter Store whose public parameters name images that exist, and are not listed among the account's own.

    Run Command with the document AWS-RunShellScript, and the part of Session Manager that is an API.
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
        if not (self._get_param("NextToken") or "0").isdecimal():
            raise JsonRESTError("InvalidNextToken", "The specified token isn't valid.")
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
        instance_ids, parameters = self._targets(), self._get_param("Parameters")
        if not (parameters or {}).get("commands"):
            raise JsonRESTError("InvalidParameters", f"Parameter commands is required by document {_DOCUMENT}.")
        if missing := [each for each in instance_ids if each not in self._running_nodes()]:
            raise JsonRESTError(
                "InvalidInstanceId",
                f"Instances [[{', '.join(missing)}]] not in a valid state for account {self.current_account}",
            )
        config, comment = self._get_param("CloudWatchOutputConfig", {}), self._get_param("Comment", "")
        command_id, script = str(uuid4()), "\n".join(parameters["commands"])
        seconds = float(parameters.get("executionTimeout", ["3600"])[0])
        invocations = []
        for instance_id in instance_ids:
            log = None
            if config.get("CloudWatchOutputEnabled"):
                log = self.agents.log(self.region, config["CloudWatchLogGroupName"], f"{command_id}/{instance_id}")
            run = self.agents.run(instance_id, script, seconds, log)
            invocations.append(_Invocation(command_id, instance_id, comment, run))
        request = {
            "CommandId": command_id,
            "DocumentName": _DOCUMENT,
            "Comment": comment,
            "InstanceIds": instance_ids,
            "Parameters": parameters,
            "RequestedDateTime": datetime.now(UTC),
        }
        self._commands.append(_Command(request, invocations))
        return ActionResult({"Command": {**request, "Status": "Pending"}})

    def list_commands(self) -> ActionResult:
        command_id, instance_id = self._get_param("CommandId"), self._get_param("InstanceId")
        described = [
            each.described()
            for each in self._commands
            if command_id in (None, each.request["CommandId"])
            and (instance_id is None or instance_id in each.request["InstanceIds"])
        ]
        return ActionResult({"Commands": described[::-1]})  # the newest first

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
        described = [each.described() for each in invocations]
        if self._get_param("Details"):
            for each in described:
                output = {"Output": each["StandardOutputContent"], "Name": "aws:runShellScript"}
                each["CommandPlugins"] = [{**output, "Status": each["Status"], "ResponseCode": each["ResponseCode"]}]
        return ActionResult({"CommandInvocations": described})

    def cancel_command(self) -> ActionResult:
        for invocation in self._invocations_of(self._get_param("CommandId"), None):
            if invocation.run:
                invocation.run.cancel()
        return EmptyResult()

    def start_session(self) -> ActionResult:
        """Start a session that nothing carries: the plugin finds no data channel at its URL, which leads here.

        Its document is one of AWS's, or a Session document of the account, by name or ARN, and has its parameters.
        https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-troubleshooting.html,
        https://github.com/boto/boto3/issues/3151 (words of the last refusal)
        """
        target, document = self._get_param("Target"), self._get_param("DocumentName", DEFAULT_SESSION_DOCUMENT)
        content = SESSION_DOCUMENTS.get(document) or self._own_session_document(document)
        if set(self._get_param("Parameters") or {}) - content.get("parameters", {}).keys():
            raise JsonRESTError("InvalidParameters", f"document {document} does not support parameters.")
        if not self._is_connected(target):
            raise JsonRESTError("TargetNotConnected", f"{target} is not connected.")
        session_id = f"session-{uuid4().hex[:17]}"
        url = f"ws://{self.headers['Host']}/v1/data-channel/{session_id}?role=publish_subscribe"
        return ActionResult({"SessionId": session_id, "TokenValue": uuid4().hex, "StreamUrl": url})

    def _own_session_document(self, document: str) -> Mapping[str, Any]:
        own = self.ssm_backend._documents.get(document.rpartition("/")[2])
        if own is None:
            raise JsonRESTError("InvalidDocument", f"Document with name {document} does not exist.")
        version = own.get_default_version()
        if version.document_type != "Session":
            raise JsonRESTError(
                "InvalidDocument",
                f"Document type: '{version.document_type}' is not supported. Only type: 'Session' is supported for "
                "Session Manager.",
            )
        return cast(Mapping[str, Any], version.content_json)

    def get_connection_status(self) -> ActionResult:
        target = self._get_param("Target")
        return ActionResult({"Target": target, "Status": "connected" if self._is_connected(target) else "notconnected"})

    def describe_instance_information(self) -> ActionResult:
        """List the nodes whose agents answer, by id if that is asked for."""
        wanted = [(each["Key"], each["Values"]) for each in self._get_param("Filters") or []]
        wanted += [(each["key"], each["valueSet"]) for each in self._get_param("InstanceInformationFilterList") or []]
        described = []
        for instance in self._running_nodes().values():
            node = self._described_node(instance)
            if self._is_connected(instance.id) and all(self._passes(node, *each) for each in wanted):
                described.append(node)
        return ActionResult({"InstanceInformationList": described})

    def terminate_session(self) -> ActionResult:
        return ActionResult({"SessionId": self._get_param("SessionId")})

    def _targets(self) -> list[str]:
        """Return the instances that SendCommand names: by id, or by tags."""
        chosen = list(self._get_param("InstanceIds") or [])
        for target in self._get_param("Targets") or []:
            key, values = target.get("Key"), target.get("Values", [])
            if key == "InstanceIds":
                chosen += values
            for instance in self._running_nodes().values():
                tags = {f"tag:{tag['key']}": tag["value"] for tag in instance.get_tags()}
                if tags.get(key) in values:
                    chosen.append(instance.id)
        return chosen

    def _is_connected(self, instance_id: str) -> bool:
        return instance_id in self._running_nodes() and self.agents.answers(instance_id)

    def _described_node(self, instance: Instance) -> dict[str, Any]:
        image = instance.ec2_backend.amis.get(instance.image_id)
        image_name = image.name if image else ""
        name, version = next((each for key, each in _SYSTEMS.items() if key in image_name), ("Linux", ""))
        return {
            "InstanceId": instance.id,
            "PingStatus": "Online",
            "LastPingDateTime": datetime.now(UTC),
            "PlatformType": "Linux",
            "PlatformName": name,
            "PlatformVersion": version,
            "ResourceType": "EC2Instance",
            "IPAddress": instance.private_ip,
            "ComputerName": instance.private_dns_name,
        }

    def _passes(self, node: dict[str, Any], key: str, values: list[str]) -> bool:
        """Tell whether a node passes a filter.

        https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_InstanceInformationStringFilter.html
        """
        member = {"InstanceIds": "InstanceId", "PlatformTypes": "PlatformType"}.get(key, key)
        if member not in ("InstanceId", "PingStatus", "PlatformType", "ResourceType"):
            raise JsonRESTError("InvalidFilterKey", f"Filter key {key} is not valid")
        return node[member] in values

    def _running_nodes(self) -> dict[str, Instance]:
        instances = ec2_backends[self.current_account][self.region].all_running_instances()
        return {each.id: each for each in instances}

    def _invocations_of(self, command_id: str | None, instance_id: str | None) -> list[_Invocation]:
        """Return those of a command and of a node; None: of any."""
        return [
            each
            for command in self._commands
            for each in command.invocations
            if command_id in (None, each.command_id) and instance_id in (None, each.instance_id)
        ]

    @property
    def _commands(self) -> list[_Command]:
        commands: list[_Command] = vars(self.ssm_backend).setdefault("sent_commands", [])
        return commands
