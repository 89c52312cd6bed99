"""Shell commands on the head node, through Systems Manager: no open port and no key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from scripts.aws_errors import is_unreachable
from scripts.clock import Clock
from scripts.command import OperationError
from scripts.deployment import Deployment

SECONDS_TO_START = 60
"""How long the head node may take to begin."""
SECONDS_BETWEEN_LOOKS = 2.0
LONGEST = 172_800
"""Seconds that Systems Manager lets a command run at most: 48 hours.

https://docs.aws.amazon.com/systems-manager/latest/userguide/documents-command-ssm-plugin-reference.html
"""
OUTPUT_LIMIT, ERRORS_LIMIT = 24_000, 8_000
"""Characters of a command's standard output and standard error that Systems Manager gives back.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html
"""
T = TypeVar("T")
_UNDER_WAY = frozenset({"Pending", "InProgress", "Delayed", "Cancelling"})


class HeadNodeError(OperationError):
    """The head node could not be reached, or did not run a command; the message says why."""


class NotRunError(HeadNodeError):
    """A command did not come to its end: nobody took it, its time was over, or it was cancelled.

    Attributes:
        began: Whether it ran at all.
    """

    def __init__(self, message: str, *, began: bool) -> None:
        """Keep whether it ran."""
        super().__init__(message)
        self.began = began


@dataclass(frozen=True)
class Answer:
    """What came of a command.

    Attributes:
        code: Its exit code.
        output: What it printed, cut off after `OUTPUT_LIMIT`.
        errors: The same of standard error, cut off after `ERRORS_LIMIT`.
    """

    code: int
    output: str
    errors: str


def is_head_node(instance: Mapping[str, Any]) -> bool:
    """Tell whether an instance, as EC2 describes it, is a head node."""
    return {"Key": "parallelcluster:node-type", "Value": "HeadNode"} in instance.get("Tags", [])


class HeadNode:
    """The head node of a deployment's cluster.

    Attributes:
        instance_id: Its EC2 instance.
    """

    def __init__(self, deployment: Deployment, clock: Clock | None = None) -> None:
        """Find it. Needs ec2:DescribeInstances.

        Raises:
            HeadNodeError: There is none that runs.
        """
        states = {each["InstanceId"]: each["State"]["Name"] for each in deployment.nodes() if is_head_node(each)}
        running = [instance_id for instance_id, state in states.items() if state == "running"]
        if not running:
            name, region = deployment.settings.cluster_spec.name, deployment.settings.region
            found = [f"The head node {instance_id} of {name} is {state}." for instance_id, state in states.items()]
            found = found or [f"The cluster {name} has no head node in {region}."]
            raise HeadNodeError(f"{' '.join(found)} How it is: {status_command(deployment)}")
        self.instance_id: str = running[0]
        self._deployment = deployment
        self._client = deployment.account.client("ssm")
        self._clock = clock or Clock()

    def start(self, script: str, *, seconds: int = 3600, log_group: str = "", comment: str = "") -> str:
        """Begin to run a shell script as root, and return the id of the command. Needs ssm:SendCommand.

        Args:
            script: For /bin/sh.
            seconds: How long it may take, at most `LONGEST`; it is ended then.
            log_group: Where its output goes while it runs; empty: nowhere.
            comment: Goes with a command that has a log group, and `comment` returns it; up to 100 characters.
        """
        streamed = {"CloudWatchOutputEnabled": True, "CloudWatchLogGroupName": log_group}
        sent = self._client.send_command(
            InstanceIds=[self.instance_id],
            DocumentName="AWS-RunShellScript",
            Parameters={"commands": [script], "executionTimeout": [str(seconds)]},
            TimeoutSeconds=SECONDS_TO_START,
            **({"CloudWatchOutputConfig": streamed, "Comment": comment} if log_group else {}),
        )
        return str(sent["Command"]["CommandId"])

    def comment(self, command_id: str) -> str:
        """Return the comment of a command of the last 30 days. Needs ssm:GetCommandInvocation.

        Raises:
            HeadNodeError: No such command was sent to this head node.
        """
        try:
            found = self._client.get_command_invocation(CommandId=command_id, InstanceId=self.instance_id)
        except self._client.exceptions.InvocationDoesNotExist as error:
            raise HeadNodeError(f"The head node {self.instance_id} knows no command {command_id}") from error
        return str(found["Comment"])

    def cancel(self, command_id: str) -> None:
        """End a command. Needs ssm:CancelCommand."""
        self._client.cancel_command(CommandId=command_id, InstanceIds=[self.instance_id])

    def answer(self, command_id: str) -> Answer | None:
        """Return what came of a command; None: it has not ended. One call; needs ssm:GetCommandInvocation.

        Raises:
            NotRunError: The head node did not run it to its end.
        """
        try:
            found = self._client.get_command_invocation(CommandId=command_id, InstanceId=self.instance_id)
        except self._client.exceptions.InvocationDoesNotExist:
            return None  # not yet: the answer to SendCommand comes first
        if found["Status"] in _UNDER_WAY:
            return None
        if found["Status"] not in ("Success", "Failed") or found["ResponseCode"] < 0:
            details = found["StatusDetails"]
            raise NotRunError(
                f"The head node {self.instance_id} did not run the command to its end: {details}",
                began=bool(found["ExecutionStartDateTime"]),
            )
        return Answer(found["ResponseCode"], found["StandardOutputContent"], found["StandardErrorContent"])

    def run(self, script: str, *, seconds: int = 60) -> Answer:
        """Run a shell script as root, wait for its end, and return what came of it.

        Raises:
            HeadNodeError: Systems Manager does not reach the head node, it did not run it, or it did not end in time.
        """
        with reaching(self._deployment, self.instance_id):
            command_id = self.start(script, seconds=seconds)
        found: list[Answer] = []

        def ended() -> bool:
            answer = self.answer(command_id)
            found.extend([answer] if answer else [])
            return bool(found)

        if not self._clock.until(ended, every=SECONDS_BETWEEN_LOOKS, limit=SECONDS_TO_START + seconds):
            raise HeadNodeError(f"The head node {self.instance_id} did not answer within {seconds} s")
        return found[0]


def status_command(deployment: Deployment) -> str:
    """Return the command that shows what there is of a deployment."""
    return f"make status ENV={deployment.environment}"


@contextmanager
def reaching(deployment: Deployment, instance_id: str) -> Iterator[None]:
    """Say what helps when Systems Manager answers that it does not reach an instance that runs.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/troubleshooting-ssm-agent.html

    Raises:
        HeadNodeError: It does not.
    """
    from botocore.exceptions import ClientError

    try:
        yield
    except ClientError as error:
        if not is_unreachable(error):
            raise
        raise HeadNodeError(
            f"Systems Manager does not reach {instance_id}. If it was started minutes ago, it still boots: try again. "
            "Else its agent is down, it has no route to Systems Manager (a NAT gateway or VPC endpoints), or its role "
            f"lacks the policy for it (docs/permissions.md). How it is: {status_command(deployment)}"
        ) from error


def ask_slurm(head_node: HeadNode, script: str, parse: Callable[[str], T]) -> T:
    """Run a script that asks Slurm, and return what is read of what it prints.

    Args:
        head_node: Where Slurm's controller runs.
        script: For its shell.
        parse: Reads what it prints, and raises ValueError where that is not Slurm's answer.

    Raises:
        HeadNodeError: The head node could not be asked, or Slurm did not answer.
    """
    answer = head_node.run(script)
    try:
        return parse(answer.output)
    except ValueError as error:
        raise HeadNodeError(f"Slurm on the head node did not answer: {answer.errors or answer.output}") from error
