"""How every rule reports a value that breaks it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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
        # Rules speak of settings files, where null is what None is here.
        words = {"null": "None", "true": "True", "false": "False"}
        lines = [
            re.sub(r"\b(null|true|false)\b", lambda word: words[word[0]], f"\n  {dotted(each.path)}: {each}")
            for each in self.violations
        ]
        super().__init__(f"invalid arguments of {construct}:{''.join(lines)}")


def shape_violations(error: "ValidationError") -> list[Violation]:
    """Return what has a wrong type or lies outside its range, of the values that a model was made of."""
    return [
        Violation(each["loc"], None, "a value", "required")
        if each["type"] == "missing"
        else Violation(each["loc"], each["input"], _allowed(each["type"], each["msg"], each.get("ctx", {})), "")
        for each in error.errors()
    ]


def _allowed(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Return what pydantic accepts, by the type, the message and the context of its error."""
    if kind in _ALLOWED:
        return _ALLOWED[kind]
    if kind == "string_pattern_mismatch":
        return WORDS[context["pattern"]]
    text = re.sub(r"^(Input|String|List|Value) should (be )?", "", message)
    return text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")


_ALLOWED = {
    "extra_forbidden": "no argument of this name",
    "model_type": "an object of the library, or a mapping",
}


_PLACEHOLDERS = {"name": "xx", "max_count": 1, "path": "/x", "uid": 2000, "monthly_usd": 10**9}
"""Values of required keys, which have no default."""
DECIDES: Mapping[str | int, Collection[str]] = {
    "backup_retention_days": (),
    "capacity_gib": ("metadata_iops",),
    "compression": (),
    "deployment_type": ("backup_retention_days", "kms_key_arn", "metadata_iops", "throughput_mbps_per_tib"),
    "kms_key_arn": (),
    "metadata_iops": (),
    "mount_dir": (),
    "throughput_mbps_per_tib": (),
    "uid": (),
}
"""Keys of file systems and users, and which of the keys beside them have rules that look at them."""


def without(value: Any, places: Collection[Path]) -> Any:
    """Return a copy of nested mappings and lists without what is at some places, so that rules can check the rest.

    A key that is required has a placeholder there.
    """

    def copied(each: Any, place: Path) -> Any:
        if isinstance(each, dict):
            kept = {key: copied(child, (*place, key)) for key, child in each.items() if (*place, key) not in places}
            return kept | {key: child for key, child in _PLACEHOLDERS.items() if (*place, key) in places}
        return [copied(child, (*place, i)) for i, child in enumerate(each)] if isinstance(each, list) else each

    return copied(value, ())


def beside(violations: Iterable[Violation], places: Collection[Path]) -> list[Violation]:
    """Return violations of values that are `without` others, but for those in the mappings that lack one.

    There a default or placeholder may be to blame. Where `DECIDES` tells of which values, the others are left.
    """

    def may_be_due_to(place: Path, path: Path) -> bool:
        *around, key = place
        if len(around) <= 1 or path[: len(around)] != tuple(around):
            return False
        return key not in DECIDES or path[len(around)] in (key, *DECIDES[key])

    return [each for each in violations if not any(may_be_due_to(place, each.path) for place in places)]


def dotted(path: Path) -> str:
    """Return a path as people write it: ``queues[0].name``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def of_other_types(*values: tuple[Path, object, str, str]) -> list[Violation]:
    """Return which values, with their places, lack an attribute of the type that is allowed."""
    return [
        Violation(place, value, allowed, "")
        for place, value, attribute, allowed in values
        if value is not None and not hasattr(value, attribute)
    ]


def shown(value: object) -> str:
    """Return a value as messages show it, cut after `MAX_SHOWN` characters."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def below(prefix: Path, violations: Iterable[Violation]) -> list[Violation]:
    """Return the violations with ``prefix`` put before each path."""
    return [replace(violation, path=prefix + violation.path) for violation in violations]
