"""Shell commands on the head node, through Systems Manager: no open port and no key."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from scripts.account.deployment import Deployment
from scripts.core.aws_errors import is_unreachable
from scripts.core.clock import Clock
from scripts.core.errors import HeadNodeError

SECONDS_TO_START = 60
"""How long the head node may take to start a command."""
SECONDS = 75
"""How long a command may take, unless its caller says more.

Programs of Slurm try for the 60 seconds of MessageTimeout, of a controller that is dead as of one that hangs, and say
why only then (src/common/slurm_protocol_api.c, _open_controller). ParallelCluster sets it:
https://github.com/aws/aws-parallelcluster-cookbook/blob/develop/cookbooks/aws-parallelcluster-slurm/templates/default/slurm/slurm.conf.erb
"""
SECONDS_TO_END = 15
"""How much later Systems Manager would kill a command: of those that it kills it returns no output (see below)."""
SECONDS_BETWEEN_POLLS = 2.0
OUTPUT_LIMIT = 24_000
"""Characters of a command's standard output that Systems Manager returns; of standard error 8,000.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCommandInvocation.html
"""
_TIMED_OUT = 124
"""https://www.gnu.org/software/coreutils/manual/html_node/timeout-invocation.html"""
_RUNNING = frozenset({"Pending", "InProgress", "Delayed", "Cancelling"})


class NotRunError(HeadNodeError):
    """A command did not run to its end: it was not delivered, it timed out, or it was cancelled."""

    def __init__(self, problem: str, hint: str = "", *, is_started: bool) -> None:
        super().__init__(problem, hint)
        self.is_started = is_started


@dataclass(frozen=True)
class Answer:
    """Exit code, standard output (truncated after `OUTPUT_LIMIT`) and standard error of a command."""

    code: int
    output: str
    errors: str


def limited(script: str, seconds: int) -> str:
    """Return a script that ends after so many seconds, so that what was said until then is returned."""
    return shlex.join(["timeout", "--kill-after=5", str(seconds), "sh", "-c", script])


def is_head_node(instance: Mapping[str, Any]) -> bool:
    """Tell whether an instance, as EC2 describes it, is a head node."""
    return {"Key": "parallelcluster:node-type", "Value": "HeadNode"} in instance.get("Tags", [])


class HeadNode:
    """The head node of a deployment's cluster."""

    def __init__(self, deployment: Deployment, clock: Clock | None = None) -> None:
        """Find it. Needs ec2:DescribeInstances.

        Raises:
            HeadNodeError: None is running.
        """
        states = {each["InstanceId"]: each["State"]["Name"] for each in deployment.nodes() if is_head_node(each)}
        running = [instance_id for instance_id, state in states.items() if state == "running"]
        if not running:
            name, region = deployment.settings.cluster_spec.name, deployment.settings.region
            sentences = [f"The head node {instance_id} of {name} is {state}." for instance_id, state in states.items()]
            sentences = sentences or [f"The cluster {name} has no head node in {region}."]
            raise HeadNodeError(" ".join(sentences), status_command(deployment))
        self.instance_id: str = running[0]
        self._deployment = deployment
        self._client = deployment.account.client("ssm")
        self.clock = clock or Clock()

    def start(self, script: str, *, seconds: int = 3600, log_group: str = "", comment: str = "") -> str:
        """Start a script of /bin/sh as root, and return the id of the command. Needs ssm:SendCommand.

        Args:
            script: The script.
            seconds: How long it may take, at most 48 hours; then it is killed.
            log_group: Where its output goes while it runs; empty: nowhere.
            comment: For a command with a log group; `comment` returns it; up to 100 characters.
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
        invocation = self._invocation(command_id)
        if invocation is None:
            raise HeadNodeError(f"The head node {self.instance_id} has no command {command_id}")
        return str(invocation["Comment"])

    def cancel(self, command_id: str) -> None:
        """Cancel a command. Needs ssm:CancelCommand."""
        self._client.cancel_command(CommandId=command_id, InstanceIds=[self.instance_id])

    def answer_within(self, script: str, *, seconds: int, limit: float) -> Answer | None:
        """Start a script as `start` does, and return its result; None: there is none after `limit` seconds."""
        command_id = self.start(script, seconds=seconds)
        found: Answer | None = None

        def has_answered() -> bool:
            nonlocal found
            found = self.answer(command_id)
            return found is not None

        self.clock.until(has_answered, every=1, limit=limit)
        return found

    def answer(self, command_id: str) -> Answer | None:
        """Return the result of a command; None: it has not ended. One call; needs ssm:GetCommandInvocation.

        Raises:
            NotRunError: The head node did not run it to its end.
        """
        invocation = self._invocation(command_id)
        if invocation is None or invocation["Status"] in _RUNNING:  # none yet: the answer to SendCommand comes first
            return None
        code, details = invocation["ResponseCode"], invocation["StatusDetails"]
        if invocation["Status"] not in ("Success", "Failed") or code < 0:
            is_started = bool(invocation["ExecutionStartDateTime"])
            sentence = f"did not run the command to its end: {details}"
            if not is_started:
                why = "it may be booting or stopped"
                if "AWS_ENDPOINT_URL" in os.environ:
                    why += ", or this emulated AWS (AWS_ENDPOINT_URL is set) runs no nodes"
                sentence = f"does not answer ({details}): {why}"
            hint = status_command(self._deployment)
            raise NotRunError(f"The head node {self.instance_id} {sentence}", hint, is_started=is_started)
        return Answer(code, invocation["StandardOutputContent"], invocation["StandardErrorContent"])

    def _invocation(self, command_id: str) -> dict[str, Any] | None:
        try:
            invocation: dict[str, Any] = self._client.get_command_invocation(
                CommandId=command_id, InstanceId=self.instance_id
            )
        except self._client.exceptions.InvocationDoesNotExist:
            return None
        return invocation

    def run(self, script: str, *, seconds: int = SECONDS) -> Answer:
        """Run a shell script as root, wait for its end, and return the result.

        A script that does not end in time is ended on the head node: what it said until then comes first among the
        errors of the answer, whose exit code is not 0.

        Raises:
            HeadNodeError: Systems Manager does not reach the head node, or the script did not run, or not to an end.
        """
        longest = seconds + SECONDS_TO_END
        with reaching(self._deployment, self.instance_id):
            command_id = self.start(limited(script, seconds), seconds=longest)
        answer: Answer | None = None

        def has_ended() -> bool:
            nonlocal answer
            answer = self.answer(command_id)
            return answer is not None

        self.clock.until(has_ended, every=SECONDS_BETWEEN_POLLS, limit=SECONDS_TO_START + longest)
        if answer is None:
            raise HeadNodeError(
                f"The head node {self.instance_id} did not answer within {SECONDS_TO_START + longest} s"
            )
        if answer.code == _TIMED_OUT:
            return replace(answer, errors=f"{answer.errors.rstrip()}\nno answer within {seconds} s".strip())
        return answer


def status_command(deployment: Deployment) -> str:
    """Return the command that shows the state of a deployment."""
    return f"./ultracluster status {deployment.name}"


@contextmanager
def reaching(deployment: Deployment, instance_id: str) -> Iterator[None]:
    """Explain what to do if Systems Manager does not reach a running instance.

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
            f"Systems Manager does not reach {instance_id}: it still boots, its agent is down, it has no route to "
            "Systems Manager (a NAT gateway or VPC endpoints), or its role lacks the policy for it "
            "(docs/reference/permissions.md)",
            f"if it was started minutes ago, try again; {status_command(deployment)}",
        ) from error
