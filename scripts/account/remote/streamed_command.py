"""A command on the head node whose whole output is read from CloudWatch Logs while it runs.

The agent on the node sends both outputs to log streams while the command runs. A mark ends each of them, and is not
shown: without it nobody could tell whether the last lines are still on their way. Text that the agent adds comes after
the mark, and is not shown either. A command that is killed leaves no mark.
https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-rc-setting-up-cwlogs.html (names of the streams),
https://github.com/aws/amazon-ssm-agent.
"""

from __future__ import annotations

import base64
import fcntl
import os
import re
import shlex
import stat
import sys
import termios
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pydantic import Field

from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import OUTPUT_LIMIT, HeadNode, NotRunError, reaching
from scripts.core.aws_errors import is_denied
from scripts.core.document import Document
from scripts.core.errors import HeadNodeError, UnusableError
from scripts.core.interrupts import uninterrupted
from scripts.core.text import echo, fit, obeyed_by_no_runner

SECONDS_BETWEEN_READS = 1.0
SECONDS_OF_GRACE = 20.0
"""How long after a command's end its last lines may arrive."""
_COMMENT = "ultracluster-end-of-output-"
_PARAMETER = re.compile(r"\{\{\s*ssm(-secure)?:")
"""https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-paramstore-securestring.html"""
RETENTION_DAYS = 7
LARGEST_EVENT = 200_000
"""Bytes of an event: the agent cuts longer lines.

https://github.com/aws/amazon-ssm-agent, agentlogstocloudwatch/cloudwatchlogspublisher/cloudwatchlogsservice.go
"""
MOST_INPUT = 32 * 1024
"""Bytes of standard input that a command may bring: they travel within it, as Base64.

AWS says how long a document may be, 64 KB, and of the parameters of SendCommand nothing; this stays below it together
with the words. https://docs.aws.amazon.com/general/latest/gr/ssm.html
"""
_END_OF_INPUT = "-"
"""A line that Base64 has not."""
OUTPUT, ERRORS = "stdout", "stderr"

Write = Callable[[str, str], None]
"""Takes `OUTPUT` or `ERRORS`, and text of it."""


def log_group(deployment: Deployment) -> str:
    """Return the log group of the outputs of a deployment's commands. It outlives the cluster."""
    return f"/ultracluster/{deployment.settings.name}/commands"


def create_log_group(logs: Any, group: str) -> None:
    """Create a log group with a retention, if permissions allow: logs:CreateLogGroup and logs:PutRetentionPolicy."""
    from botocore.exceptions import ClientError

    try:
        with suppress(logs.exceptions.ResourceAlreadyExistsException):
            logs.create_log_group(logGroupName=group)
            logs.put_retention_policy(logGroupName=group, retentionInDays=RETENTION_DAYS)
    except ClientError as error:
        if not is_denied(error):
            raise


def login_command(user: str, words: Sequence[str]) -> list[str]:
    """Return the command that runs words, unchanged, in a login shell of a user.

    In the session of the agent, not a new one as by ``--command``: the agent ends a command by SIGKILL to the process
    group of its shell, and processes outside of that would continue.
    https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/executers/executers_unix.go,
    https://man7.org/linux/man-pages/man1/runuser.1.html
    """
    return ["runuser", "--login", "--session-command", shlex.join(words), "--", user]


def print_output(stream: str, text: str) -> None:
    """Print text of an output of the command on the same output of this program; what goes to a terminal fits it."""
    target = getattr(sys, stream)
    shown = fit(text.replace("\r\n", "\n").replace("\r", "\n")) if target.isatty() else text
    print(obeyed_by_no_runner(shown), end="", file=target, flush=True)


def print_remark(text: str) -> None:
    """Print a note about a command to standard error."""
    echo(text, err=True)


def is_something_left(descriptor: int = 0) -> bool:
    """Tell whether a pipe or a file on standard input has something to read now."""
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return os.lseek(descriptor, 0, os.SEEK_CUR) < status.st_size
        if stat.S_ISFIFO(status.st_mode):
            return any(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    except OSError:  # it is closed
        pass
    return False


class OutputStream:
    """One output of a command in its log stream, which is complete once the mark has arrived."""

    def __init__(self, logs: Any, group: str, name: str, mark: str) -> None:
        self.mark = mark
        self.is_started = self.is_complete = False
        self._logs = logs
        self._stream = {"logGroupName": group, "logStreamName": name}
        self._token: dict[str, str] = {}

    def new(self) -> str:
        """Return what has arrived since the last call."""
        text = ""
        while not self.is_complete:
            try:
                page = self._logs.get_log_events(**self._stream, **self._token, startFromHead=True)
            except self._logs.exceptions.ResourceNotFoundException:
                break  # there is no stream before the first line
            for event in page["events"]:
                text += "" if self.is_complete else self._text(event["message"])
            token = {"nextToken": page["nextForwardToken"]}
            if token == self._token:
                break
            self._token = token
        return text

    def _text(self, message: str) -> str:
        """Return the text of an event: whole lines, maybe without the end of the last one, or a part of a long line."""
        self.is_started = True
        shown, mark, _ = message.partition(self.mark)
        self.is_complete = bool(mark)
        is_part = mark or shown.endswith("\n") or len(shown.encode()) >= LARGEST_EVENT
        return shown if is_part else f"{shown}\n"


class CommandResult(Document):
    """What ``exec --output json`` prints."""

    command_id: str = Field(description="The id of the command in Systems Manager.")
    instance_id: str = Field(description="The head node.")
    exit_code: int = Field(description="The command's exit code.")
    stdout: str = Field(description="Its standard output.")
    stderr: str = Field(description="Its standard error.")


class StreamedCommand:
    """A command that was sent."""

    def __init__(self, deployment: Deployment, head_node: HeadNode, command_id: str, mark: str) -> None:
        """Represent a command; ``mark`` is at the end of both outputs."""
        self.command_id = command_id
        self.hint = f"To show it again: ./ultracluster exec {deployment.name} --attach {command_id}"
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
        """Write what has arrived since the last call. Two or more calls; needs logs:GetLogEvents."""
        for name, stream in zip((OUTPUT, ERRORS), self._streams, strict=True):
            if text := stream.new():
                write(name, text)

    def follow(self, write: Write) -> int:
        """Write the output as it arrives, and return the exit code. Three calls or more each second.

        Without logs the output comes at the end, truncated. Needs ssm:GetCommandInvocation and logs:GetLogEvents.

        Raises:
            NotRunError: The head node did not run the command to its end; the output until then was written.
        """
        try:
            while (answer := self._head_node.answer(self.command_id)) is None:
                self._read(write)
                self._head_node.clock.sleep(SECONDS_BETWEEN_READS)
        except NotRunError as error:
            if error.is_started:
                self._read_rest(write)
            raise
        if self._read_rest(write):
            return answer.code
        if any(each.is_started for each in self._streams):
            print_remark(f"The end of the output has not arrived. {self.hint}")
        else:
            for name, stream, text in zip((OUTPUT, ERRORS), self._streams, (answer.output, answer.errors), strict=True):
                shown, mark, _ = text.partition(stream.mark)
                write(name, shown)
                if shown and not mark:
                    print_remark(f"{name} is truncated after {len(shown):,} characters.")
        return answer.code

    def follow_or_cancel(self, write: Write) -> int:
        """Do as `follow`, and cancel the command if its output can be shown no more: Ctrl-C, a closed pipe.

        After an error of AWS, such as for expired credentials, it continues, and a note tells how to show it again.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return self.follow(write)
        except HeadNodeError:
            raise
        except (BotoCoreError, ClientError):
            print_remark(f"The command continues. {self.hint}")
            raise
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Cancel the command, and say whether that worked. Needs ssm:CancelCommand."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            with uninterrupted():
                self._head_node.cancel(self.command_id)
        except (BotoCoreError, ClientError) as error:
            print_remark(
                f"The command {self.command_id} could not be cancelled: {error}\nThe command continues. {self.hint}"
            )
        else:
            print_remark(f"The command {self.command_id} is cancelled.")

    def _read_rest(self, write: Write) -> bool:
        """Write the last lines, which may arrive after a command's end; return whether these are all."""

        def complete() -> bool:
            self._read(write)
            return not self._is_readable or all(each.is_complete for each in self._streams)

        return (
            self._head_node.clock.until(complete, every=SECONDS_BETWEEN_READS, limit=SECONDS_OF_GRACE)
            and self._is_readable
        )

    def _read(self, write: Write) -> None:
        """Write what is new, if permissions allow."""
        from botocore.exceptions import ClientError

        try:
            if self._is_readable:
                self.new(write)
        except ClientError as error:
            if not is_denied(error):
                raise
            self._is_readable = False
            print_remark(
                f"logs:GetLogEvents is not allowed: the output comes at the end, {OUTPUT_LIMIT:,} characters at most."
            )


def start(
    deployment: Deployment, head_node: HeadNode, words: Sequence[str], *, seconds: int, given: bytes = b""
) -> StreamedCommand:
    """Start a command as root; `login_command` and `program.as_user` return such of users.

    Needs ssm:SendCommand; logs:CreateLogGroup and logs:PutRetentionPolicy to have the outputs deleted after
    `RETENTION_DAYS`: without them the node creates the log group, and its events stay.

    Args:
        deployment: Whose log group takes the output.
        head_node: Where it runs.
        words: The command and its arguments, which no shell interprets.
        seconds: How long it may take.
        given: Its standard input, up to `MOST_INPUT`.

    Raises:
        UnusableError: Systems Manager would replace a part of the words, or the input is too long.
        HeadNodeError: Systems Manager does not reach the head node.
    """
    if parameter := _PARAMETER.search(" ".join(words)):
        raise UnusableError(
            f"got {parameter[0]} in the command, which Systems Manager replaces by a parameter's value; "
            "allowed: words without it, such as a script on the file system that contains it"
        )
    if len(given) > MOST_INPUT:
        raise UnusableError(
            f"got more than {MOST_INPUT:,} bytes on standard input; allowed: up to {MOST_INPUT:,}, as they are a part "
            "of the command",
            f"larger files: ./ultracluster ssh {deployment.name} --write-config, then scp; or the links to S3 of the "
            "file system (docs/guides/data.md)",
        )
    mark = f"{_COMMENT}{uuid.uuid4().hex}"
    script = f"{_with_input(words, given)}code=$?\necho {mark}\necho {mark} >&2\nexit $code\n"
    create_log_group(deployment.account.client("logs"), log_group(deployment))
    with reaching(deployment, head_node.instance_id):
        command_id = head_node.start(script, seconds=seconds, log_group=log_group(deployment), comment=mark)
    return StreamedCommand(deployment, head_node, command_id, mark)


def _with_input(words: Sequence[str], given: bytes) -> str:
    """Return lines of a script that run words with a standard input, and end with their exit code."""
    if not given:
        return f"{shlex.join(words)} </dev/null\n"
    text = base64.encodebytes(given).decode()
    return f"base64 --decode <<'{_END_OF_INPUT}' | {shlex.join(words)}\n{text}{_END_OF_INPUT}\n"


def attach(deployment: Deployment, head_node: HeadNode, command_id: str) -> StreamedCommand:
    """Return a command that `start` sent in the last 30 days. Needs ssm:GetCommandInvocation.

    Raises:
        HeadNodeError: There is no such command.
    """
    mark = head_node.comment(command_id)
    if not mark.startswith(_COMMENT):
        raise HeadNodeError(f"The command {command_id} was not sent by `exec`: its output is in no logs")
    return StreamedCommand(deployment, head_node, command_id, mark)
