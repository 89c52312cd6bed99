"""How every rule reports a value that breaks it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

MAX_SHOWN = 200
"""Characters of a value that a message shows."""

Path = tuple[str | int, ...]
"""Keys and indices that lead to a value."""


@dataclass(frozen=True)
class Violation:
    """A value that breaks a rule, what would be accepted and why, in words. Paths start at what was checked."""

    path: Path
    got: object
    allowed: str
    reason: str

    def __str__(self) -> str:
        return f"got {shown(self.got)}; allowed: {self.allowed} ({self.reason})"


def shown(value: object) -> str:
    """Return a value as messages show it, cut after `MAX_SHOWN` characters."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def below(prefix: Path, violations: Iterable[Violation]) -> list[Violation]:
    """Return the violations with ``prefix`` put before each path."""
    return [replace(violation, path=prefix + violation.path) for violation in violations]
