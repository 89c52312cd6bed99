"""Asks the head node for nodes, jobs and software, without waiting for the answer before it is needed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from scripts.aws_errors import is_unreachable
from scripts.remote.head_node import HeadNode, HeadNodeError
from scripts.slurm import SCRIPT, SlurmError, SlurmState, parse
from scripts.status import software
from scripts.status.model import Unseen, seen

if TYPE_CHECKING:
    from scripts.clock import Clock
    from scripts.deployment import Deployment

PATIENCE_SECONDS = 5.0
"""How long to wait for the answer at most, once everything else is there."""
_LONGEST_SECONDS = 60


class SlurmQuestion:
    """The question for nodes and jobs, again and again.

    Attributes:
        reached: Whether Session Manager reaches the head node; None: that is not known.
        answered: When the last answer came; None: there was none.
        software: What the last answer told of the software of jobs; None: nothing.
    """

    def __init__(self, deployment: Deployment, clock: Clock) -> None:
        self._deployment = deployment
        self._clock = clock
        self._asked: tuple[HeadNode, str] | Unseen | None = None
        self._state: SlurmState | Unseen = Unseen(f"the head node did not answer within {PATIENCE_SECONDS:g} s")
        self.reached: bool | None = None
        self.answered: datetime | None = None
        self.software: software.Software | None = None

    def ask(self) -> None:
        """Send the command, unless one is under way. One call; needs ec2:DescribeInstances and ssm:SendCommand."""
        if not isinstance(self._asked, tuple):
            self._asked = seen(self._send, "ec2:DescribeInstances", "ssm:SendCommand")

    def answer(self, looks: int) -> SlurmState | Unseen:
        """Return what Slurm says, or what it said the last time if the answer is not there yet.

        At most so many calls; needs ssm:GetCommandInvocation.
        """
        if not isinstance(self._asked, tuple):
            if self._asked is not None:
                self._state = self._asked
            return self._state
        head_node, command_id = self._asked
        for _ in range(looks):
            self._clock.sleep(PATIENCE_SECONDS / looks)
            found = seen(lambda: self._collect(head_node, command_id), "ssm:GetCommandInvocation")
            if found is not None:
                self._asked, self._state = None, found
                break
        return self._state

    def _send(self) -> tuple[HeadNode, str]:
        from botocore.exceptions import ClientError

        head_node = HeadNode(self._deployment)
        try:
            command_id = head_node.start(software.SCRIPT + SCRIPT, seconds=_LONGEST_SECONDS)
        except ClientError as error:
            if not is_unreachable(error):
                raise
            self.reached = False
            raise HeadNodeError(f"Session Manager does not reach the head node {head_node.instance_id}") from error
        return head_node, command_id

    def _collect(self, head_node: HeadNode, command_id: str) -> SlurmState | None:
        try:
            answer = head_node.answer(command_id)
        except HeadNodeError:
            self.reached = False
            raise
        if answer is None:
            return None
        self.reached = True
        self.software, told = software.parse(answer.output)
        try:
            state = parse(told)
        except SlurmError:
            said = [*(answer.errors or told).splitlines(), f"exit code {answer.code}"]
            raise HeadNodeError(f"Slurm on the head node does not answer: {said[0]}") from None
        self.answered = self._clock.now()
        return state
