"""A command on the head node whose output is read while it runs, and whole, from CloudWatch Logs.

The agent on the node sends both outputs to log streams while the command runs. A mark ends each of them, and is not
shown: without it nobody could tell whether the last lines are still on their way. What the agent adds of its own comes
after the mark, and is not shown either. A command that is ended from outside leaves no mark.
https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-rc-setting-up-cwlogs.html (names of the streams),
https://github.com/aws/amazon-ssm-agent.
"""

from __future__ import annotations

import re
import shlex
import sys
import uuid
from collections.abc import Callable, Sequence

from scripts.aws_errors import is_denied
from scripts.clock import Clock
from scripts.command import Say, UnusableError
from scripts.deployment import Deployment
from scripts.plan.interrupts import uninterrupted
from scripts.remote.head_node import (
    ERRORS_LIMIT,
    OUTPUT_LIMIT,
    Answer,
    HeadNode,
    HeadNodeError,
    NotRunError,
    reaching,
)
from scripts.remote.output_stream import OutputStream, prepare

SECONDS_BETWEEN_READS = 1.0
SECONDS_OF_GRACE = 20.0
"""How long after a command's end its last lines may be on their way."""
_COMMENT = "ultracluster-end-of-output-"
_PARAMETER = re.compile(r"\{\{\s*ssm(-secure)?:")
"""https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-paramstore-securestring.html"""
OUTPUT, ERRORS = "stdout", "stderr"

Write = Callable[[str, str], None]
"""Takes `OUTPUT` or `ERRORS`, and what came on it."""


def log_group(deployment: Deployment) -> str:
    """Return the log group of the outputs of a deployment's commands. It outlives the cluster."""
    return f"/ultracluster/{deployment.settings.name}/commands"


def login_command(user: str, words: Sequence[str]) -> str:
    """Return what runs a command in a login shell of a user, its words as they are.

    In the session that runs it, not one of its own as by ``--command``: the agent ends a command by SIGKILL to the
    process group of its shell, and what had left that would go on.
    https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/executers/executers_unix.go,
    https://man7.org/linux/man-pages/man1/runuser.1.html

    Raises:
        UnusableError: Systems Manager would replace a part of the words.
    """
    if found := _PARAMETER.search(" ".join(words)):
        raise UnusableError(
            f"got {found[0]} in the command, which Systems Manager replaces by a parameter's value; "
            "allowed: words without it, such as a script on the file system that has it"
        )
    return shlex.join(["runuser", "--login", user, "--session-command", shlex.join(words)])


def print_output(stream: str, text: str) -> None:
    """Print what came on an output of the command on the same one of this program."""
    print(text, end="", file=getattr(sys, stream), flush=True)


def print_remark(text: str) -> None:
    """Print what there is to say about a command, apart from its output."""
    print(text, file=sys.stderr)


class StreamedCommand:
    """A command that was sent.

    Attributes:
        command_id: Its id.
        hint: How to look at it again.
    """

    def __init__(self, deployment: Deployment, head_node: HeadNode, command_id: str, mark: str) -> None:
        """Know of a command; ``mark`` stands at the end of both outputs."""
        self.command_id = command_id
        self.hint = f"To look again: make run ENV={deployment.environment} ARGS='--attach {command_id}'"
        self._head_node = head_node
        self._is_readable = True
        self._streams = [
            OutputStream(
                deployment.account.client("logs"),
                log_group(deployment),
                f"{command_id}/{head_node.instance_id}/aws-runShellScript/{name}",
                mark,
            )
            for name in (OUTPUT, ERRORS)
        ]

    def new(self, write: Write) -> None:
        """Hand on what has come since the last call. Two or more calls; needs logs:GetLogEvents."""
        for name, stream in zip((OUTPUT, ERRORS), self._streams, strict=True):
            if text := stream.new():
                write(name, text)

    def follow(self, write: Write, say: Say, clock: Clock) -> int:
        """Hand on the output as it comes, and return the exit code. Three calls or more each second.

        Without logs the output comes at the end, cut off. Needs ssm:GetCommandInvocation and logs:GetLogEvents.

        Args:
            write: Takes the output.
            say: Takes what there is to say about it, such as what is missing.
            clock: Waits.

        Raises:
            NotRunError: The head node did not run the command to its end; the output until then was handed on.
        """
        try:
            while (answer := self._head_node.answer(self.command_id)) is None:
                self._read(write, say)
                clock.sleep(SECONDS_BETWEEN_READS)
        except NotRunError as error:
            if error.began:
                self._read_to_the_end(write, say, clock)
            raise
        if self._read_to_the_end(write, say, clock):
            return answer.code
        if any(each.began for each in self._streams):
            say(f"The end of the output has not come. {self.hint}")
        else:
            self._write_answer(answer, write, say)
        return answer.code

    def follow_or_cancel(self, write: Write, say: Say, clock: Clock) -> int:
        """Do as `follow` does, and end the command if its output can be shown no more: Ctrl-C, a pipe that is closed.

        After an error of AWS, as when credentials have expired, it goes on, and this tells how to look again.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return self.follow(write, say, clock)
        except HeadNodeError:
            raise
        except (BotoCoreError, ClientError):
            say(self._goes_on())
            raise
        except BaseException:
            self.cancel(say)
            raise

    def cancel(self, say: Say) -> None:
        """End the command, and say whether it was possible. Needs ssm:CancelCommand."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            with uninterrupted():
                self._head_node.cancel(self.command_id)
        except (BotoCoreError, ClientError) as error:
            say(f"The command {self.command_id} could not be cancelled: {error}\n{self._goes_on()}")
        else:
            say(f"The command {self.command_id} is cancelled.")

    def _goes_on(self) -> str:
        return f"The command goes on, unseen. {self.hint}"

    def _read_to_the_end(self, write: Write, say: Say, clock: Clock) -> bool:
        """Hand on the last lines, which may be on their way after a command's end; return whether these are all."""

        def complete() -> bool:
            self._read(write, say)
            return not self._is_readable or all(each.complete for each in self._streams)

        return clock.until(complete, every=SECONDS_BETWEEN_READS, limit=SECONDS_OF_GRACE) and self._is_readable

    def _read(self, write: Write, say: Say) -> None:
        """Hand on what is new, if it may be read."""
        from botocore.exceptions import ClientError

        try:
            if self._is_readable:
                self.new(write)
        except ClientError as error:
            if not is_denied(error):
                raise
            self._is_readable = False
            say("logs:GetLogEvents is not allowed: the output comes at the end, and not all of it if it is long.")

    def _write_answer(self, answer: Answer, write: Write, say: Say) -> None:
        """Hand on what Systems Manager itself has of the output."""
        for stream, text, limit in ((OUTPUT, answer.output, OUTPUT_LIMIT), (ERRORS, answer.errors, ERRORS_LIMIT)):
            shown, mark, _ = text.partition(self._streams[0].mark)
            write(stream, shown)
            if not mark and len(text) >= limit:
                say(f"{stream} is cut off after {limit:,} characters.")


def start(
    deployment: Deployment, head_node: HeadNode, words: Sequence[str], *, user: str, seconds: int
) -> StreamedCommand:
    """Begin to run a command in a login shell of a user.

    Needs ssm:SendCommand; logs:CreateLogGroup, logs:DescribeLogGroups and logs:PutRetentionPolicy to have the outputs
    deleted after `RETENTION_DAYS`: without them the node makes the log group, and its events stay.

    Args:
        deployment: Whose log group takes the output.
        head_node: Where it runs.
        words: The command and its arguments, as they are.
        user: Whose login shell it is.
        seconds: How long it may take.

    Raises:
        UnusableError: Systems Manager would replace a part of the words.
        HeadNodeError: Systems Manager does not reach the head node.
    """
    mark = f"{_COMMENT}{uuid.uuid4().hex}"
    script = f"{login_command(user, words)}\ncode=$?\necho {mark}\necho {mark} >&2\nexit $code\n"
    prepare(deployment.account.client("logs"), log_group(deployment))
    with reaching(deployment, head_node.instance_id):
        command_id = head_node.start(script, seconds=seconds, log_group=log_group(deployment), comment=mark)
    return StreamedCommand(deployment, head_node, command_id, mark)


def attach(deployment: Deployment, head_node: HeadNode, command_id: str) -> StreamedCommand:
    """Look again at a command that `start` sent in the last 30 days. Needs ssm:GetCommandInvocation.

    Raises:
        HeadNodeError: There is no such command.
    """
    mark = head_node.comment(command_id)
    if not mark.startswith(_COMMENT):
        raise HeadNodeError(f"The command {command_id} was not sent by `run`: its output is in no logs")
    return StreamedCommand(deployment, head_node, command_id, mark)
