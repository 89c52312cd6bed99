"""What may stand at each path of a ParallelCluster configuration, and what breaks it.

parallelcluster_schema.json has what the package of `parallelcluster_versions.PINNED` declares, as
toolchain/pcluster_schema.py reads it (`make snapshots`). Rules between keys, and those that ask AWS, are left to its
validators.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path as FilePath
from typing import Any, Literal

from ultracluster.domain.parallelcluster_versions import PINNED
from ultracluster.domain.violations import Path, Violation, is_token

_SOURCE = f"ParallelCluster {PINNED}"
_SEQUENCE = "Sequence"
_NUMBERS = ("integer", "number")
FILE = FilePath(__file__).with_suffix(".json")
_WRITTEN = {
    "boolean": (re.compile("(true|false|yes|no|on|off|[tfyn01])$", re.IGNORECASE), "true or false"),
    "integer": (re.compile(r"[+-]?\d+$"), "a whole number"),
    "number": (re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$", re.IGNORECASE), "a number"),
}
"""How a value of a kind is written, and what it is called."""


_LARGEST = 2**63
_TRUE, _FALSE = ("t", "true", "on", "y", "yes", "1"), ("f", "false", "off", "n", "no", "0")
_FUNCTION = re.compile("Ref$|Fn::")


@dataclass(frozen=True, kw_only=True)
class Field:
    """What may stand at a path.

    Attributes:
        kind: What it is, or each item of a list. A ``section`` has keys of its own, a ``mapping`` any.
        list: Whether it is a list.
        by: The key by which items of a list are told apart.
        or_sequence: Whether ``{"Sequence": [...]}`` may stand instead of one section.
        required: Whether it must stand where the section does.
        policy: When it may change, as pcluster/config/update_policy.py calls it.
        choices: The values that it may have.
        pattern: What a text begins with, as a regular expression.
        least: The smallest number, or the fewest characters of a text.
        most: The largest number, or the most characters of a text.
        items_least: The fewest items of a list.
        items_most: The most items of a list.
    """

    kind: Literal["section", "mapping", "text", "boolean", "integer", "number", "any"]
    list: bool = False
    by: str | None = None
    or_sequence: bool = False
    required: bool = False
    policy: str
    choices: tuple[Any, ...] = ()
    pattern: str | None = None
    least: float | None = None
    most: float | None = None
    items_least: int | None = None
    items_most: int | None = None


@cache
def fields() -> Mapping[str, Field]:
    """Return what may stand at each path, which has no indices of lists: ``Scheduling.SlurmQueues.Name``."""
    return {path: Field(**facts) for path, facts in json.loads(FILE.read_text(encoding="utf-8")).items()}


def told_apart_by(path: str) -> str | None:
    """Return the key by which items of the list at a path are told apart; None: it is no such list."""
    field = fields().get(path)
    return None if field is None else field.by


def violations(configuration: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what the schema knows not, or not so, of a part of a configuration.

    Null says that there is nothing. Keys that a section needs may stand elsewhere, and what a token stands for is not
    known. Scalars may be texts, as which CloudFormation sends them.
    """
    yield from _of_section(configuration, "", ())


def _of_section(section: Mapping[str, Any], place: str, path: Path) -> Iterator[Violation]:
    for key, value in section.items():
        if (field := fields().get(f"{place}{key}")) is not None:
            yield from _of_value(value, field, f"{place}{key}", (*path, key))
        else:
            names = [each.removeprefix(place) for each in fields() if each.startswith(place)]
            names = [each for each in names if "." not in each]
            if (of_section := fields().get(place.removesuffix("."))) is not None and of_section.or_sequence:
                names.append(_SEQUENCE)
            close = get_close_matches(str(key), names, n=1)
            allowed = close[0] if close else f"one of {', '.join(sorted(names))}"
            yield Violation((*path, key), value, allowed, f"{_SOURCE} has no {key} here")


def _of_value(value: Any, field: Field, place: str, path: Path) -> Iterator[Violation]:
    if value is None or (_may_be_unknown(field) and (is_token(value) or _is_function(value))):
        return
    items, where = [value], [path]
    in_sequence = field.or_sequence and isinstance(value, dict) and _SEQUENCE in value
    if in_sequence:
        for key in value.keys() - {_SEQUENCE}:
            yield Violation((*path, key), value[key], f"{_SEQUENCE} alone, or no {_SEQUENCE}", _SOURCE)
        path, value = (*path, _SEQUENCE), value[_SEQUENCE]
    if field.list or in_sequence:
        if not isinstance(value, list) or not _within(len(value), field.items_least, field.items_most):
            allowed = f"a list{_range(field.items_least, field.items_most, 'items')}"
            yield Violation(path, value, allowed, _SOURCE)
            return
        items, where = value, [(*path, index) for index in range(len(value))]
    for item, place_of_item in zip(items, where, strict=True):
        if field.kind == "section" and isinstance(item, dict):
            yield from _of_section(item, f"{place}.", place_of_item)
        elif item is None or (_may_be_unknown(field) and (is_token(item) or _is_function(item))):
            continue
        elif not _fits(item, field):
            yield Violation(place_of_item, item, _words(field), _SOURCE)


def missing(configuration: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the sections of a whole configuration that lack a key which they need, each with the key."""
    yield from _missing(configuration, "", ())


@cache
def _needs() -> Mapping[str, list[str]]:
    """Return the keys that sections need, by the place of the section with a dot behind it."""
    needs: dict[str, list[str]] = {}
    for path, field in fields().items():
        place, dot, key = path.rpartition(".")
        if field.required:
            needs.setdefault(place + dot, []).append(key)
    return needs


def _missing(section: Mapping[str, Any], place: str, path: Path) -> Iterator[tuple[Path, str]]:
    yield from ((path, key) for key in _needs().get(place, ()) if section.get(key) is None)
    for key, value in section.items():
        where, inner = f"{place}{key}", (*path, key)
        field = fields().get(where)
        if field is None or field.kind != "section" or is_token(value) or _is_function(value):
            continue
        if field.list and not isinstance(value, list):  # refused as a whole
            continue
        items = value
        if field.or_sequence and isinstance(value, dict) and _SEQUENCE in value:
            items, inner = value[_SEQUENCE], (*inner, _SEQUENCE)
        for index, item in enumerate(items) if isinstance(items, list) else [(None, items)]:
            if isinstance(item, dict) and not _is_function(item):
                yield from _missing(item, f"{where}.", inner if index is None else (*inner, index))


def _may_be_unknown(field: Field) -> bool:
    """Return whether only CloudFormation may know a value: not of a section, in which keys are looked for."""
    return field.kind != "section"


def _is_function(value: Any) -> bool:
    """Return whether a value is a function of CloudFormation, whose result nobody knows yet; no macro, which is any."""
    return (
        isinstance(value, dict)
        and len(value) == 1
        and _FUNCTION.match(str(*value)) is not None
        and "Fn::Transform" not in value
    )


def truth(value: object) -> bool | None:
    """Return how the package reads a boolean; None: it is none."""
    text = str(value).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def _fits(value: Any, field: Field) -> bool:
    if field.kind in ("section", "mapping", "any") or isinstance(value, dict | list):
        return field.kind == "any" or (field.kind in ("section", "mapping") and isinstance(value, dict))
    if isinstance(value, int) and abs(value) > _LARGEST:
        return False
    if isinstance(value, float) and value.is_integer():  # JSON writes it without a fraction
        value = int(value)
    text = json.dumps(value) if isinstance(value, bool) else str(value)
    if field.choices and text not in map(str, field.choices):
        return False
    written = _WRITTEN[field.kind][0] if field.kind in _WRITTEN else field.pattern or ""
    if not re.match(written, text):
        return False
    return _within(float(text) if field.kind in _NUMBERS else len(text), field.least, field.most)


def _words(field: Field) -> str:
    if field.choices:
        return f"one of {', '.join(map(str, field.choices))}"
    if field.kind != "text":
        called = _WRITTEN[field.kind][1] if field.kind in _WRITTEN else "a mapping"
        return called + _range(field.least, field.most)
    like = f" like {field.pattern}" if field.pattern else ""
    return f"text{like}{_range(field.least, field.most, 'characters')}"


def _within(size: float, least: float | None, most: float | None) -> bool:
    return (least is None or size >= least) and (most is None or size <= most)


def _range(least: float | None, most: float | None, of: str = "") -> str:
    """Return words for a range, with a space before them; empty: anything is in it."""
    unit = f" {of}" if of else ""
    if least is None and most is None:
        return ""
    if least == most:
        return f" of {least:g}{unit}"
    if least is None or most is None:
        return f", at most {most:g}{unit}" if least is None else f", at least {least:g}{unit}"
    return f" from {least:g} to {most:g}{unit}"
