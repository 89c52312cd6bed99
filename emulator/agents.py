"""Systems Manager's agent of every node: it runs shell commands and returns their results.

A node that is a machine runs a script by its own `sh -c`, as the real agent does. Without machines a program stands
for the shell of all nodes: bash text, which gets the script as its standard input. What is printed and the exit code
are the node's answer. Words, limits and exit codes are those of the real agent
(https://github.com/aws/amazon-ssm-agent, agent/framework/processor and agent/plugins/runscript).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import IO, Final

from emulator.clients import Clients, write_log

STREAMS: Final = ("stdout", "stderr")
STOPPED_CODE: Final = 137
"""Exit code of what was ended before it was done: 128, and 9 for SIGKILL."""

_EVENT_BYTES: Final = 200_000
"""The most that the agent puts into one event of CloudWatch Logs; it may be several lines."""


Log = Callable[[str, str], None]
"""Takes what a command prints while it runs: the stream, and the text."""


class CommandRun:
    """A command on one node, from its start to its end.

    Attributes:
        status: As CommandInvocationStatus of the API has it.
        code: Its exit code; -1: it has not ended.
    """

    def __init__(self, command: Sequence[str], script: str, seconds: float, log: Log | None) -> None:
        """Start a command of this computer, which gets a script as its standard input."""
        self.status = "InProgress"
        self.code = -1
        self.output = dict.fromkeys(STREAMS, "")
        self.started = datetime.now(UTC)
        self._script = script
        self._seconds = seconds
        self._log = log
        self._stopped_as = ""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"]},  # root of a machine may read what a process has that enters it
            start_new_session=True,
        )
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, or so many seconds."""
        self._thread.join(seconds)

    def cancel(self) -> None:
        """End it; nothing happens if it has ended."""
        if self.status == "InProgress":
            self.status = "Cancelling"
            self._stop("Cancelled")

    def _live(self) -> None:
        pipes = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        readers = [threading.Thread(target=self._read, args=each, daemon=True) for each in pipes.items()]
        for work in (*readers, threading.Thread(target=self._write, daemon=True)):
            work.start()
        try:
            self._process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            self._stop("TimedOut")
        for reader in readers:
            reader.join()
        code = self._process.wait()
        if code and not self._stopped_as:
            complaint = f"failed to run commands: exit status {code}"
            self.output["stderr"] += complaint
            self._upload("stderr", complaint)
        self.code = STOPPED_CODE if self._stopped_as else code
        self.status = self._stopped_as or ("Failed" if code else "Success")

    def _write(self) -> None:
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE
        with contextlib.suppress(BrokenPipeError), self._process.stdin as file:
            file.write(self._script.encode())

    def _read(self, stream: str, pipe: IO[bytes]) -> None:
        """Take what is printed until the end of it; whole lines go to the log meanwhile."""
        read, sent = b"", 0
        while chunk := os.read(pipe.fileno(), _EVENT_BYTES):
            read += chunk
            end = max(read.rfind(b"\n") + 1, sent)
            self._upload(stream, read[sent:end].decode(errors="replace"))
            sent = end
        self._upload(stream, read[sent:].decode(errors="replace"))
        self.output[stream] = read.decode(errors="replace")

    def _upload(self, stream: str, text: str) -> None:
        if self._log and text:
            self._log(stream, text)

    def _stop(self, status: str) -> None:
        """End the process group of the shell; what has left that continues, as with the real agent.

        https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/executers/executers_unix.go
        """
        self._stopped_as = status
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Agents:
    """The agents of all nodes of one server.

    Attributes:
        shell: The program that is every node's shell; None: each node has its own.
        shells: Returns what runs a command on an instance, the beginning of a command of this computer; None: its agent
            does not answer.
    """

    def __init__(self, clients: Clients) -> None:
        self.shell: str | None = None
        self.shells: Callable[[str], Sequence[str] | None] = lambda _: None
        self._clients = clients
        self._runs: list[CommandRun] = []

    def answers(self, instance_id: str) -> bool:
        """Tell whether the agent of an instance is connected."""
        return self.shell is not None or self.shells(instance_id) is not None

    def run(self, instance_id: str, script: str, seconds: float, log: Log | None) -> CommandRun | None:
        """Start a script on an instance, which may take so many seconds; None: its agent does not answer."""
        if self.shell is not None:
            run = CommandRun(["bash", "-c", self.shell], script, seconds, log)
        elif (prefix := self.shells(instance_id)) is not None:
            run = CommandRun([*prefix, "sh", "-c", script], "", seconds, log)
        else:
            return None
        self._runs.append(run)
        return run

    def log(self, region: str, group: str, name: str) -> Log:
        """Return what writes output into log streams of the command and node with a name; line ends stay in it."""
        logs = self._clients("logs", region)
        return lambda stream, text: write_log(logs, group, f"{name}/aws-runShellScript/{stream}", text)

    def reset(self) -> None:
        """End what runs, and remove the shell."""
        self.shell = None
        for run in self._runs:
            run.cancel()
        self._runs = []
