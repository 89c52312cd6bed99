"""What a person sees of a rehearsal: steps, the commands that are typed in them, and what they print."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final, NamedTuple

from rich.console import Console

from scripts.core.errors import ExitCode
from scripts.core.options import ROOT

_COMMAND: Final = (sys.executable, "-P", "-m", "scripts")
_EVENT_COLUMNS: Final = 5
_NOISE = re.compile(
    r": (start|success): |: (creating CloudFormation changeset|deploying)\.\.\.|^(✨|Stack ARN:|arn:aws:cl|$)"
)
_SECTIONS: Final = ("IAM, security groups and the like", "Outputs:")
"""Headings of what is left out up to the next empty line: the log has it."""


class Ran(NamedTuple):
    """A command that has ended.

    Attributes:
        code: Its exit code.
        text: What it printed.
    """

    code: int
    text: str


class RehearsalError(RuntimeError):
    """A step did not succeed; the message says what."""


class Relay:
    """Takes what a command prints, a line each, and returns what to show of it; the CDK prints hundreds of lines."""

    def __init__(self) -> None:
        self._skips = False

    def __call__(self, line: str) -> str | None:
        """Return what to show of a line; None: nothing."""
        if line in _SECTIONS:
            self._skips = True
        if not line:
            self._skips = False
        event = [part.strip() for part in line.split("|")]
        if len(event) > _EVENT_COLUMNS:
            status, resource_type, what = event[3:6]
            if status.endswith("COMPLET"):  # the CDK cuts long ones
                status += "E"
            ended = status.endswith(("COMPLETE", "FAILED"))
            return f"{status:24}  {resource_type:37}  {what}" if ended else None
        return None if self._skips or _NOISE.search(line) else line


@dataclass
class Stage:
    """Where a rehearsal is shown.

    Attributes:
        console: What people see.
        log: Gets all that commands print.
        pauses: Whether each step waits for Enter.
        environment: In which commands run.
    """

    console: Console
    log: IO[str]
    pauses: bool
    environment: Mapping[str, str]

    @contextmanager
    def step(self, title: str, shows: str) -> Iterator[None]:
        """Say what a step is and what it shows, wait for Enter if wanted, and measure it."""
        self.console.print(f"\n{title}", style="bold")
        self.console.print(shows)
        if self.pauses:
            self.console.input("(Enter) ")
        started = time.monotonic()
        yield
        self.console.print(f"done in {time.monotonic() - started:.1f} s", style="green")

    def say(self, line: str) -> None:
        """Show a line of a step."""
        self.console.print(f"  {line}", style="dim", soft_wrap=True)

    def run(self, *words: str, codes: Collection[int] = (ExitCode.DONE,)) -> Ran:
        """Run `./ultracluster WORDS`, and show what it prints and its exit code, which must be one of these.

        Raises:
            RehearsalError: It is not.
        """
        relay, lines = Relay(), []
        with self.start(*words) as process:
            assert process.stdout is not None  # noqa: S101 - stdout=PIPE
            try:
                for text in process.stdout:
                    line = text.rstrip()
                    self.log.write(f"{line}\n")
                    lines.append(line)
                    if shown := relay(line):
                        self.say(shown)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        self.say(f"exit code {process.returncode}")
        if process.returncode not in codes:
            raise RehearsalError(f"./ultracluster {shlex.join(words)} ended with exit code {process.returncode}")
        return Ran(process.returncode, "\n".join(lines))

    def ask(self, *words: str) -> str:
        """Run `./ultracluster WORDS` without showing it, and return its standard output."""
        done = subprocess.run(
            [*_COMMAND, *words], cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        return done.stdout

    def start(self, *words: str, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start `./ultracluster WORDS`, in a process group of its own, and show the command line."""
        line = f"./ultracluster {shlex.join(words)}"
        self.console.print(f"  $ {line}", soft_wrap=True)
        self.log.write(f"$ {line}\n")
        return subprocess.Popen(
            [*_COMMAND, *words], cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, text=True, errors="replace", process_group=0,
        )  # fmt: skip
