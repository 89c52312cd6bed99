"""How every rule reports a value that breaks it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ultracluster.domain.types import WORDS

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_SHOWN = 200
"""Characters of a value that a message shows."""

Path = tuple[str | int, ...]
"""Keys and indices that lead to a value."""


@dataclass(frozen=True)
class Violation:
    """A value that breaks a rule, what would be accepted and why, in words. Paths start at what was checked.

    There is no reason where a value has a wrong type.
    """

    path: Path
    got: object
    allowed: str
    reason: str

    def __str__(self) -> str:
        return f"got {shown(self.got)}; allowed: {self.allowed}" + (f" ({self.reason})" if self.reason else "")


class InvalidArguments(ValueError):
    """Arguments of a construct that break rules; the message has a line for each violation.

    Attributes:
        violations: All of them; paths start at the construct's arguments.
    """

    def __init__(self, construct: str, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        lines = [f"\n  {dotted(each.path)}: {each}" for each in self.violations]
        super().__init__(f"invalid arguments of {construct}:{''.join(lines)}")


def shape_violations(error: "ValidationError") -> list[Violation]:
    """Return what has a wrong type or lies outside its range, of the values that a model was made of."""
    violations = []
    for each in error.errors():
        pattern = str(each.get("ctx", {}).get("pattern"))
        allowed = WORDS.get(pattern) or re.sub(r"^(Input|Value) should (be )?", "", each["msg"])
        violations.append(Violation(each["loc"], each["input"], allowed, ""))
    return violations


def dotted(path: Path) -> str:
    """Return a path as people write it: ``queues[0].name``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def shown(value: object) -> str:
    """Return a value as messages show it, cut after `MAX_SHOWN` characters."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def below(prefix: Path, violations: Iterable[Violation]) -> list[Violation]:
    """Return the violations with ``prefix`` put before each path."""
    return [replace(violation, path=prefix + violation.path) for violation in violations]
