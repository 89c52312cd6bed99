"""The one shape in which a rule reports what is wrong with a value."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

MAX_SHOWN = 200
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class Fault:
    """A value that breaks a rule.

    Attributes:
        path: Where the value stands, relative to the object that was checked.
        got: The value found.
        allowed: What would be accepted, in words.
        reason: Why, in a few words.
    """

    path: tuple[str | int, ...]
    got: object
    allowed: str
    reason: str

    def __str__(self) -> str:
        return f"got {shown(self.got)}; allowed: {self.allowed} ({self.reason})"


def shown(value: object) -> str:
    """Return a value as messages show it; of a long one only the beginning."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def below(prefix: tuple[str | int, ...], faults: Iterable[Fault]) -> list[Fault]:
    """Return the faults with ``prefix`` put before each path."""
    return [replace(fault, path=prefix + fault.path) for fault in faults]
