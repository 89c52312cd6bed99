"""How every rule reports a value that breaks it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_SHOWN = 200
"""Characters of a value that a message shows."""
MAX_KEY = 100
"""Characters of a key that a message shows."""
MAX_LINE = 2000
"""Characters of a line of a message."""
MAX_REPORTED = 100
"""Lines of a message; it says how many more there are."""
MAX_LISTED = 30
"""Names of a list that a message shows."""
_MAX_BYTES = 16_000

WORDS: dict[str, str] = {}
"""What each pattern of a text allows, in words."""

Path = tuple[str | int, ...]
"""Keys and indices that lead to a value."""


@dataclass(frozen=True)
class Violation:
    """A value that breaks a rule, what would be accepted and why, in words. Paths start at what was checked.

    There is no reason where a value has a wrong type. Where a value should be among those of a list, ``among`` is the
    place of that list in a settings file.
    """

    path: Path
    got: object
    allowed: str
    reason: str
    among: Path = ()

    def __str__(self) -> str:
        text = f"got {shown(self.got)}; allowed: {self.allowed}" + (f" ({self.reason})" if self.reason else "")
        return printable(text)


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
        super().__init__(capped(f"invalid arguments of {construct}:{''.join(lines)}"))


def shape_violations(error: "ValidationError") -> list[Violation]:
    """Return what has a wrong type or lies outside its range, of the values that a model was made of."""
    return [
        Violation(each["loc"], None, "a value", "required")
        if each["type"] == "missing"
        else Violation(each["loc"], each["input"], _allowed(each["type"], each["msg"], each.get("ctx", {})), "")
        for each in error.errors(include_url=False)
    ]


def _allowed(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Return what pydantic accepts, by the type, the message and the context of its error."""
    if kind in _ALLOWED:
        return _ALLOWED[kind]
    if kind == "string_pattern_mismatch":
        return WORDS[context["pattern"]]
    text = re.sub(r"^(Input|String|List|Dictionary|Value) should (be )?", "", message)
    return text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")


_ALLOWED = {
    "extra_forbidden": "no argument of this name",
    "finite_number": "a finite number",
    "int_parsing_size": "an integer of fewer digits",
    "model_type": "an object of the library, or a mapping",
}


PLACEHOLDERS = {
    "name": "unnamed",
    "max_count": 1,
    "path": "/x",
    "uid": 2000,
    "monthly_usd": 10**9,
    "vpc_id": "vpc-00000000",
    "public_subnet_id": "subnet-00000000",
    "private_subnet_id": "subnet-00000001",
    "host": "x",
    "user": "x",
    "password_secret_arn": "arn:aws:secretsmanager:us-west-2:000000000000:secret:x-000000",
    "security_group_id": "sg-00000000",
    "domain_name": "x.example.com",
    "domain_addr": "ldaps://x.example.com",
    "domain_read_only_user": "cn=x,dc=example,dc=com",
    "validator": "x",
    "reason": "x",
}
"""Values of required keys, which have no default."""
DECIDES: Mapping[str | int, Collection[str]] = {
    "capacity_gib": ("metadata_iops",),
    "deployment_type": (
        "backup_retention_days",
        "kms_key_arn",
        "metadata_iops",
        "throughput_mbps",
        "throughput_mbps_per_tib",
    ),
    "existing": ("database",),
    "gid": ("uid",),
    "max_hours": ("node_hours_per_month",),
    "forecast_percent": ("actual_percent",),
    "usd_per_hour": ("max_usd_per_hour", "monthly_usd"),
    **dict.fromkeys(("backup_retention_days", "compression", "kms_key_arn", "metadata_iops", "mount_dir"), ()),
    **dict.fromkeys(("throughput_mbps_per_tib", "name", "uid", "groups", "ssh_keys", "account", "admin"), ()),
    **dict.fromkeys(("parent", "share", "max_nodes", "node_hours_per_month", "priority", "preempts", "accounts"), ()),
    **dict.fromkeys(("emails", "monthly_usd", "max_usd_per_hour", "max_idle_minutes", "action", "actual_percent"), ()),
    **dict.fromkeys(("quota_gib_per_user", "throughput_mbps"), ()),
}
"""Keys, and which of the keys beside them have rules that look at them; of a key that is not here, all have."""


def without(value: Any, places: Collection[Path]) -> Any:
    """Return a copy of nested mappings and lists without what is at some places, so that rules can check the rest.

    A key that is required has a placeholder there. A list goes as a whole, because places have numbers.
    """
    keys = {_key_of(place) for place in places}

    def copied(each: Any, place: Path) -> Any:
        if isinstance(each, dict):
            kept = {key: copied(child, (*place, key)) for key, child in each.items() if (*place, key) not in keys}
            return kept | {key: child for key, child in PLACEHOLDERS.items() if (*place, key) in keys}
        return [copied(child, (*place, i)) for i, child in enumerate(each)] if isinstance(each, list) else each

    return copied(value, ())


def beside(violations: Iterable[Violation], places: Collection[Path]) -> list[Violation]:
    """Return violations of values that are `without` others, but for those that their absence may be the reason of.

    A default or placeholder may be to blame for what is said of the keys that it `DECIDES`.
    """
    keys = {_key_of(place) for place in places}
    return [each for each in violations if not any(_may_be_due_to(place, each) for place in keys)]


def _may_be_due_to(place: Path, violation: Violation) -> bool:
    *around, key = place
    path, among = violation.path, violation.among
    if among[: len(place)] == place or (
        place[: len(among)] == among != () and (key == "name" or len(place) == len(among) + 1)
    ):
        return True
    if path[: len(around)] != tuple(around):
        return False
    if key not in DECIDES:  # a section has too many keys for one to decide them all
        return len(around) > 1
    return path[len(around) :][:1] in [(each,) for each in (key, *DECIDES[key])]


def _key_of(place: Path) -> Path:
    """Return the place of the key whose value has a place, or is a list that has it."""
    while place and isinstance(place[-1], int):
        place = place[:-1]
    return place


def dotted(path: Path) -> str:
    """Return a path as people write it: ``queues[0].name``, keys cut after `MAX_KEY` characters."""
    parts = (f"[{_cut(str(part), MAX_KEY)}]" if isinstance(part, int) else f".{_key(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def _key(part: object) -> str:
    return printable(_cut(str(part), MAX_KEY)) or "''"


def of_other_types(*values: tuple[Path, object, str, str]) -> list[Violation]:
    """Return which values, with their places, lack an attribute of the type that is allowed."""
    return [
        Violation(place, value, allowed, "")
        for place, value, attribute, allowed in values
        if value is not None and not hasattr(value, attribute)
    ]


def shown(value: object) -> str:
    """Return a value as messages show it, cut after `MAX_SHOWN` characters."""
    try:
        return _cut(repr(value), MAX_SHOWN)
    except ValueError:  # Python writes no integers of more than some thousand digits
        return "a number that is too long to show"


def printable(text: str) -> str:
    """Return a text with control characters, line ends and the like as escapes, cut after `MAX_LINE` characters."""
    cut = _cut(text, MAX_LINE)
    return cut if cut.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in cut)


def capped(message: str, more: int = 0) -> str:
    """Return the first lines of a message, and how many more there are, with those that were left out before."""
    kept, size, lines = list[str](), 0, message.split("\n")
    for line in lines[:MAX_REPORTED]:
        size += len(line.encode("utf-8", "replace")) + 1
        if size > _MAX_BYTES:
            break
        kept.append(line)
    more += len(lines) - len(kept)
    return "\n".join([*kept, f"... and {more} more"] if more else kept)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


def listed(names: Collection[str], none: str) -> str:
    """Return names as what is allowed, the first of many: ``a or b``; `none` where there are none."""
    first = " or ".join(islice(names, MAX_LISTED))
    return f"{first} or {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else first or none


def below(prefix: Path, violations: Iterable[Violation]) -> list[Violation]:
    """Return the violations with ``prefix`` put before each path."""
    return [replace(violation, path=prefix + violation.path) for violation in violations]
