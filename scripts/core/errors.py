"""Exit codes, and the errors that a command ends with."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command ends with, unless it passes on the code of another program once that has started.

    docs/reference/exit-codes.md names those that do.
    """

    DONE = 0
    """Done, healthy, nothing differs."""
    FAILED = 1
    """A negative result: failed, blocked, unhealthy, drifted, declined."""
    UNUSABLE = 2
    """Arguments, settings or credentials cannot be used, or nobody can be asked."""
    TIMED_OUT = 124
    """A time limit that was given is over, as of timeout(1)."""
    INTERRUPTED = 130
    """Ctrl-C."""
    HUNG_UP = 129
    """The terminal was closed."""
    TERMINATED = 143
    """SIGTERM."""


ENDED = (ExitCode.INTERRUPTED, ExitCode.HUNG_UP, ExitCode.TERMINATED)
"""Codes of a program that a person or the machine ended before it was done."""


class CliError(Exception):
    """A command cannot do what was asked; the message says what is wrong and what to do."""

    exit_code: int = ExitCode.FAILED

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


def told(error: Exception) -> str:
    """Return what an error says, with its hint, to be part of another sentence."""
    hint = getattr(error, "hint", "")
    return f"{str(error).rstrip('.')}. {hint}" if hint else str(error)


class OperationError(CliError):
    """An operation is impossible or failed."""


class UnusableError(CliError):
    """A value that was given cannot be used."""

    exit_code: int = ExitCode.UNUSABLE


class HeadNodeError(OperationError):
    """The head node is not reachable, or did not run a command; the message says why."""
