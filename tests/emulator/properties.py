"""Values for every property that AWS's published schemas know, made from the schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolchain import schemas

Path = tuple[str, ...]
"""Names of members from the outermost on; `*` is an item of a list."""

_TEXTS = (
    "x", "1", "10.0.0.0/16", "arn:aws:iam::123456789012:role/x", "arn:aws:sns:us-west-2:123456789012:x",
    "a@example.com", "ami-12345678", "sg-12345678", "subnet-12345678", "fs-0123456789abcdef0",
    "fsvol-0123456789abcdef0", "/x", "05:00", "1:05:00", "2030-01-01T00:00:00Z", "https://example.com/x", "s3://x/y",
    "123456789012", "alias/x", "example.com", "us-west-2a",
)  # fmt: skip
"""For patterns, the first that fits."""


def paths(resource_type: str) -> list[Path]:
    """Return the paths of all properties that can be set; what contains itself, once."""
    schema = schemas._schema(resource_type)
    fixed = {each.removeprefix("/properties/") for each in schema.get("readOnlyProperties", [])}
    return [path for path in _members(schema, schema, (), ()) if "/".join(path) not in fixed]


def with_sample(resource_type: str, properties: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return properties in which one has a value that its schema allows, and what has to stand beside it."""
    schema = schemas._schema(resource_type)
    placed: dict[str, Any] = _placed(dict(properties), schema, path, schema)
    return placed


def _members(schema: Mapping[str, Any], root: Mapping[str, Any], path: Path, seen: Path) -> Iterator[Path]:
    schema = schemas._dereferenced(schema, root)
    if isinstance(schema.get("items"), dict):
        yield from _members(schema["items"], root, (*path, "*"), seen)
    for name, member in schema.get("properties", {}).items():
        yield (*path, name)
        items = member.get("items")
        reference = member.get("$ref") or (items.get("$ref") if isinstance(items, dict) else None)
        if reference not in seen:
            yield from _members(member, root, (*path, name), (*seen, *([reference] if reference else [])))


def _placed(value: Any, schema: Mapping[str, Any], path: Path, root: Mapping[str, Any]) -> Any:
    schema = schemas._dereferenced(schema, root)
    if not path:
        return _sample(schema, root)
    name, *rest = path
    if name == "*":
        items = value if isinstance(value, list) and value else [_sample(schema["items"], root)]
        return [_placed(items[0], schema["items"], tuple(rest), root), *items[1:]]
    members = value if isinstance(value, dict) else _sample(schema, root)
    members = members if isinstance(members, dict) else {}
    return {**members, name: _placed(members.get(name), schema["properties"][name], tuple(rest), root)}


def _sample(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Return a value that a schema allows, as far as single keywords say."""
    schema = schemas._dereferenced(schema, root)
    for keyword in ("oneOf", "anyOf"):
        if keyword in schema and "type" not in schema:
            return _sample({**schema[keyword][0]}, root)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    value: Any = _text(schema)
    match kind[0] if isinstance(kind, list) else kind:
        case "array":
            value = [_sample(schema.get("items", {}), root)] * max(schema.get("minItems", 1), 1)
        case "boolean":
            value = True
        case "integer" | "number":
            value = max(schema.get("minimum", 1), 1)
        case "object":
            members = schema.get("properties", {})
            required = set(schema.get("required", [])) & members.keys()
            value = {name: _sample(members[name], root) for name in sorted(required)} if members else {"a": "b"}
    return value


def _text(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
    candidates = [each if len(each) >= least else each.ljust(least, "x") for each in _TEXTS]
    try:
        pattern = re.compile(schema.get("pattern", ""))
    except re.error:  # some have classes that Python does not know, such as \\p{L}
        pattern = re.compile("")
    return next((each for each in candidates if len(each) <= most and pattern.search(each)), "x")
