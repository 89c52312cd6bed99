"""How a program ends: the exit codes that a job understands, and the exceptions behind them."""

from __future__ import annotations

from collections.abc import Sequence

FINISHED, FAILED, BAD_INPUT, DIVERGED, STOPPED = 0, 1, 2, 3, 75
"""Exit codes: all is done; a failure; the input cannot be used; a number is not finite; stopped with a checkpoint."""


class BadInputError(Exception):
    """What was asked for cannot be done.

    Attributes:
        problems: A line for each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class TrainingError(Exception):
    """The run cannot continue; the message is for the user."""


class DivergedError(TrainingError):
    """A number of a step is not finite."""
