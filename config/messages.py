"""What a person is told of a fault in a settings file."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from ultracluster.domain.faults import shown

RULE = "rule"
"""Type of the errors that rules raise; their message is complete."""

Place = tuple[str | int, ...]
"""Keys and indices that lead to a value."""

_EXPECTED = {
    "dict_type": "should be a mapping",
    "invalid_key": "keys should be text",
    "list_type": "should be a list",
    "model_type": "should be a mapping",
}


def place_of(loc: Place) -> Place:
    """Return the place of a pydantic error, without the mark of a key that is at fault itself."""
    return loc[:-1] if loc[-1:] == ("[key]",) else loc


def dotted(place: Place) -> str:
    """Return a place as people write it: ``cluster.queues[0].name``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".") or "(file)"


def text_of(detail: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what is wrong, what was got, what is allowed and what the key means.

    Args:
        detail: One of pydantic's ``errors()``.
        schema: JSON Schema of the whole file.
    """
    kind, got, place = detail["type"], detail["input"], place_of(detail["loc"])
    if kind == RULE:
        return str(detail["msg"])
    if kind == "extra_forbidden":
        allowed = sorted(_with_fields(_node(place[:-1], schema), schema)["properties"])
        close = get_close_matches(str(place[-1]), allowed, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"unknown key; {hint}allowed: {', '.join(allowed)}"
    if kind == "missing":
        text = "missing; this key is required"
    else:
        expected = _EXPECTED.get(kind) or re.sub(r"^(Input|String|List|Value) should ", "should ", detail["msg"])
        quotes = ", put it in quotes" if kind == "string_type" and isinstance(got, int | float) else ""
        text = f"got {shown(got)}; {expected}{quotes}"
    meaning = " ".join(_node(place, schema).get("description", "").split()).removesuffix(".")
    return f"{text} ({meaning})" if place and meaning else text


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
        if "items" in option:
            return dict(option)
    return node
