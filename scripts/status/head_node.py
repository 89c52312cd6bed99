"""Asks the head node for nodes, jobs and software, without waiting for the answer before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.remote.head_node import HeadNode, HeadNodeError
from scripts.slurm import SCRIPT, SlurmError, parse
from scripts.status import software
from scripts.status.model import SlurmStatus, Unavailable, try_fetch

if TYPE_CHECKING:
    from scripts.clock import Clock
    from scripts.deployment import Deployment

WAIT_SECONDS = 5
"""How long to wait for the answer at most, once everything else is there: a call each second."""
_LONGEST_SECONDS = 60


class HeadNodeQuery:
    """The question for nodes, jobs and software, again and again.

    Attributes:
        is_reachable: Whether Session Manager reaches the head node; None: not known.
        software: The software of jobs in the last answer; None: nothing.
    """

    def __init__(self, deployment: Deployment, clock: Clock) -> None:
        self._deployment = deployment
        self._clock = clock
        self._sent: tuple[HeadNode, str] | Unavailable | None = None
        self._slurm: SlurmStatus | Unavailable = Unavailable(
            reason=f"the head node did not answer within {WAIT_SECONDS} s"
        )
        self.is_reachable: bool | None = None
        self.software: software.Software | None = None

    def send(self) -> None:
        """Send the command, unless one is running. One call; needs ec2:DescribeInstances and ssm:SendCommand."""
        if not isinstance(self._sent, tuple):
            self._sent = try_fetch(self._start, "ec2:DescribeInstances", "ssm:SendCommand")

    def receive(self) -> SlurmStatus | Unavailable:
        """Return what Slurm says, or what it said the last time if the answer does not come in time.

        A call each second; needs ssm:GetCommandInvocation.
        """
        if not isinstance(self._sent, tuple):
            if self._sent is not None:
                self._slurm = self._sent
            return self._slurm
        head_node, command_id = self._sent
        for _ in range(WAIT_SECONDS):
            self._clock.sleep(1)
            answer = try_fetch(lambda: self._answer(head_node, command_id), "ssm:GetCommandInvocation")
            if answer is not None:
                self._sent, self._slurm = None, answer
                break
        return self._slurm

    def _start(self) -> tuple[HeadNode, str]:
        from botocore.exceptions import ClientError

        from scripts.aws_errors import is_unreachable

        head_node = HeadNode(self._deployment)
        try:
            command_id = head_node.start(software.SCRIPT + SCRIPT, seconds=_LONGEST_SECONDS)
        except ClientError as error:
            if not is_unreachable(error):
                raise
            self.is_reachable = False
            raise HeadNodeError(f"Session Manager does not reach the head node {head_node.instance_id}") from error
        return head_node, command_id

    def _answer(self, head_node: HeadNode, command_id: str) -> SlurmStatus | None:
        try:
            answer = head_node.answer(command_id)
        except HeadNodeError:
            self.is_reachable = False
            raise
        if answer is None:
            return None
        self.is_reachable = True
        self.software, of_slurm = software.parse(answer.output)
        try:
            state = parse(of_slurm)
        except SlurmError:
            output = [*(answer.errors or of_slurm).splitlines(), f"exit code {answer.code}"]
            raise HeadNodeError(f"Slurm on the head node does not answer: {output[0]}") from None
        return SlurmStatus.of(state, self._clock.now())
