"""A command on the head node whose output is read while it runs, and whole, from CloudWatch Logs.

The agent on the node sends both outputs to log streams, each second and in whole lines. A mark ends each of them, and
is not shown: without it nobody could tell whether the last lines are still on their way. What the agent adds of its own
comes after the mark, and is not shown either.
https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-rc-setting-up-cwlogs.html (names of the streams),
https://github.com/aws/amazon-ssm-agent, agentlogstocloudwatch/cloudwatchlogspublisher/cloudwatchlogsservice.go (how the
agent cuts output into events).
"""

from __future__ import annotations

import shlex
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from scripts.deployment import Deployment
from scripts.operations.clock import Clock
from scripts.operations.head_node import ERRORS_LIMIT, OUTPUT_LIMIT, Answer, HeadNode, HeadNodeError

RETENTION_DAYS = 7
SECONDS_BETWEEN_READS = 1.0
SECONDS_OF_GRACE = 20.0
"""How long after a command's end its last lines may be on their way."""
_LARGEST_EVENT = 200_000
"""Bytes of an event, at which the agent cuts a line that is longer."""
_COMMENT = "ultracluster-end-of-output-"
OUTPUT, ERRORS = "stdout", "stderr"

Write = Callable[[str, str], None]
"""Takes `OUTPUT` or `ERRORS`, and what came on it."""
Say = Callable[[str], None]
"""Takes what there is to say about a command, for people."""


def log_group(deployment: Deployment) -> str:
    """Return the log group of the outputs of a deployment's commands. It outlives the cluster."""
    return f"/ultracluster/{deployment.settings.name}/commands"


def login_command(user: str, words: Sequence[str]) -> str:
    """Return what runs a command in a login shell of a user, its words as they are."""
    return shlex.join(["runuser", "--login", user, "--command", shlex.join(words)])


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
    """

    def __init__(self, deployment: Deployment, head_node: HeadNode, command_id: str, mark: str) -> None:
        """Know of a command; ``mark`` stands at the end of both outputs."""
        self.command_id = command_id
        self._head_node = head_node
        self._streams = [
            _Stream(
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
            HeadNodeError: The head node did not run the command to its end.
        """
        readable = True
        while (answer := self._answer(write, say)) is None:
            readable = readable and self._read(write, say)
            clock.sleep(SECONDS_BETWEEN_READS)

        def complete() -> bool:
            return self._read(write, say) and all(each.complete for each in self._streams)

        if readable and clock.until(complete, every=SECONDS_BETWEEN_READS, limit=SECONDS_OF_GRACE):
            return answer.code
        if any(each.began for each in self._streams):
            say(f"The end of the output has not come. Look again: run --attach {self.command_id}")
        else:
            self._write_answer(answer, write, say)
        return answer.code

    def follow_or_cancel(self, write: Write, say: Say, clock: Clock) -> int:
        """Do as `follow` does, and end the command on Ctrl-C. That needs ssm:CancelCommand."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return self.follow(write, say, clock)
        except KeyboardInterrupt:
            self.cancel()
            say(f"The command {self.command_id} is cancelled.")
            raise
        except (BotoCoreError, ClientError):
            say(f"The command goes on, unseen. To look again: run --attach {self.command_id}")
            raise

    def cancel(self) -> None:
        """End the command. Needs ssm:CancelCommand."""
        self._head_node.cancel(self.command_id)

    def _answer(self, write: Write, say: Say) -> Answer | None:
        try:
            return self._head_node.answer(self.command_id)
        except HeadNodeError:
            self._read(write, say)
            raise

    def _read(self, write: Write, say: Say) -> bool:
        """Hand on what is new, and return whether it may be read."""
        from botocore.exceptions import ClientError

        try:
            self.new(write)
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDeniedException":
                raise
            say("logs:GetLogEvents is not allowed: the output comes at the end, and not all of it if it is long.")
            return False
        return True

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

    Needs ssm:SendCommand; logs:CreateLogGroup and logs:PutRetentionPolicy to have the outputs
    deleted after `RETENTION_DAYS`: without them the node makes the log group, and its events stay.

    Args:
        deployment: Whose log group takes the output.
        head_node: Where it runs.
        words: The command and its arguments, as they are.
        user: Whose login shell it is.
        seconds: How long it may take.
    """
    _prepare(deployment.account.client("logs"), log_group(deployment))
    mark = f"{_COMMENT}{uuid.uuid4().hex}"
    script = f"{login_command(user, words)}\ncode=$?\necho {mark}\necho {mark} >&2\nexit $code\n"
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


def _prepare(logs: Any, group: str) -> None:
    """Make a log group that forgets, unless it exists or this may not."""
    from botocore.exceptions import ClientError

    try:
        logs.create_log_group(logGroupName=group)
        logs.put_retention_policy(logGroupName=group, retentionInDays=RETENTION_DAYS)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("ResourceAlreadyExistsException", "AccessDeniedException"):
            raise


class _Stream:
    """One output of a command, as it reaches its log stream.

    Attributes:
        mark: What stands at its end.
        began: Whether anything came.
        complete: Whether the mark came.
    """

    def __init__(self, logs: Any, group: str, name: str, mark: str) -> None:
        self.mark = mark
        self.began = self.complete = False
        self._logs = logs
        self._place = {"logGroupName": group, "logStreamName": name}
        self._token: dict[str, str] = {}

    def new(self) -> str:
        """Return what has come since the last call."""
        found = ""
        while not self.complete:
            try:
                page = self._logs.get_log_events(**self._place, **self._token, startFromHead=True)
            except self._logs.exceptions.ResourceNotFoundException:
                break  # there is no stream before the first line
            for event in page["events"]:
                found += "" if self.complete else self._text(event["message"])
            token = {"nextToken": page["nextForwardToken"]}
            if token == self._token:
                break
            self._token = token
        return found

    def _text(self, message: str) -> str:
        """Return what an event stands for: whole lines, maybe without the last one's end, or a part of a long line."""
        self.began = True
        shown, mark, _ = message.partition(self.mark)
        self.complete = bool(mark)
        part = mark or shown.endswith("\n") or len(shown.encode()) >= _LARGEST_EVENT
        return shown if part else f"{shown}\n"
