"""What is reported about violations in a settings file."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic_core import PydanticCustomError

from ultracluster.domain import violations
from ultracluster.domain.violations import WORDS, Path, Violation, capped, shown

RULE = "rule"
"""Type of the errors that rules raise; their message is complete."""

_EXPECTED = {
    "dict_type": "should be a mapping",
    "finite_number": "should be a finite number",
    "int_parsing_size": "should be an integer of fewer digits",
    "invalid_key": "keys should be text",
    "list_type": "should be a list",
    "model_type": "should be a mapping",
}
_SUBJECT = re.compile(r"^(Input|String|List|Dictionary|Value) should ")


class SettingsError(ValueError):
    """A settings file that cannot be used; the message names every violation, with its place.

    After the first hundred it says how many ``more`` there are; ``last`` stands at the end all the same.
    """

    def __init__(self, message: str, *, more: int = 0, last: str = "") -> None:
        super().__init__(capped(message, more, last))


class CopyError(SettingsError):
    """A settings file that has the name of the deployment of another file beside it: what reads it acts on that one."""


def broken_rule(violation: Violation) -> PydanticCustomError:
    """Return pydantic's error for a rule that is broken."""
    return PydanticCustomError(RULE, "{text}", {"text": str(violation)})


def error_path(error: Mapping[str, Any]) -> Path:
    """Return the path of one of pydantic's ``errors()``; of a key that is wrong itself, that of its value."""
    loc: Path = error["loc"]
    return loc[:-1] if loc[-1:] == ("[key]",) else loc


def dotted(place: Path) -> str:
    """Return a place as people write it: ``cluster.queues[0].name``."""
    return violations.dotted(place) or "(file)"


def text_of(error: Mapping[str, Any], schema: dict[str, Any]) -> str:
    """Return what is wrong, what was got, what is allowed and what the key means.

    Args:
        error: One of pydantic's ``errors()``.
        schema: JSON Schema of the whole file.
    """
    kind, got, place = error["type"], error["input"], error_path(error)
    if kind == RULE:
        return str(error["msg"])
    if kind == "extra_forbidden":
        allowed = _keys_beside(place, schema)
        close = get_close_matches(str(place[-1]), allowed, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"unknown key; {hint}allowed: {', '.join(allowed)}"
    if kind == "missing":
        text = "missing; this key is required"
    elif kind == "string_pattern_mismatch":
        text = f"got {shown(got)}; allowed: {WORDS[error['ctx']['pattern']]}"
    else:
        expected = _EXPECTED.get(kind) or _SUBJECT.sub("should ", error["msg"])
        if kind == "literal_error" and (choices := [*map(repr, _node(place, schema).get("enum", ()))]):
            expected = f"should be {', '.join(choices[:-1])} or {choices[-1]}"  # a model of the library may take more
        quotes = ", put it in quotes" if kind == "string_type" and isinstance(got, int | float) else ""
        text = f"got {shown(got) if place or got is not None else 'an empty file'}; {expected}{quotes}"
    description = _node(place, schema).get("description", "").partition("\n\n")[0]
    meaning = " ".join(description.split()).removesuffix(".")
    return f"{text} ({meaning})" if place and meaning else text


def _keys_beside(place: Path, schema: dict[str, Any]) -> list[str]:
    return sorted(_with_fields(_node(place[:-1], schema), schema)["properties"])


def _node(place: Iterable[str | int], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the schema for a place, empty where the schema says nothing."""
    node = schema
    for part in place:
        holder = _with_fields(node, schema)
        node = holder.get("items", {}) if isinstance(part, int) else holder.get("properties", {}).get(part, {})
    return node


def _with_fields(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that is not null, references followed."""
    for option in (node, *node.get("anyOf", ())):
        if "$ref" in option:
            return dict(schema["$defs"][option["$ref"].rpartition("/")[2]])
    return node
