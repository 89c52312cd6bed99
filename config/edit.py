"""Changes of a settings file that leave its comments and its layout alone."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from config.messages import dotted
from config.yaml_source import LOADER
from ultracluster.domain.violations import Path as Place

Scalar = str | int | float | bool | None


class EditError(ValueError):
    """A value that cannot be set; the message says which and why. The file is as before."""


def set_values(path: Path, values: Mapping[Place, Scalar]) -> None:
    """Change scalars of a settings file, or add keys to mappings; every other character stays.

    The file is replaced as a whole: a reader sees the old or the new one.

    Args:
        path: A YAML file.
        values: The new values by place, which is keys and indices: ``("cluster", "queues", 0, "name")``.

    Raises:
        EditError: There is no such place, it holds something else than a scalar, or it is written in a way that cannot
            be changed without changing more (an anchor with aliases).
        OSError: The file cannot be read or written.
    """
    path = path.resolve()  # the target of a link is replaced
    text = path.read_bytes().decode("utf-8")  # read_text would translate line ends
    for place, value in values.items():
        text = _changed(text, place, value)
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(text.encode("utf-8"))
        temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _changed(text: str, place: Place, value: Scalar) -> str:
    """Return a YAML text with another value at a place. A candidate counts only if nothing else in it changes."""
    try:
        node = yaml.compose(text, Loader=LOADER)
        wanted = _with(yaml.load(text, Loader=LOADER), place, value)  # noqa: S506 - a safe one
        start, end, before, after = _span(text, node, place)
    except yaml.YAMLError as error:
        raise EditError(f"not YAML: {error}") from None
    except (IndexError, KeyError, TypeError):
        raise EditError(f"{dotted(place)}: there is no such value") from None
    writings = [json.dumps(value, ensure_ascii=False)]
    if isinstance(value, str) and text[start : start + 1] not in ('"', "'"):
        writings.insert(0, value)
    for written in writings:
        candidate = f"{text[:start]}{before}{written}{after}{text[end:]}"
        if _has(candidate, wanted):
            return candidate
    raise EditError(f"{dotted(place)}: cannot be set to {value!r} without changing more than that")


def _with(data: Any, place: Place, value: Scalar) -> Any:
    """Return data with another value at a place; of mappings, the last key of the place may be missing."""
    if not place:
        if isinstance(data, dict | list):
            raise TypeError(data)
        return value
    key, below = place[0], place[1:]
    if isinstance(data, dict) and key not in data and not below:
        return {**data, key: value}
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[key] = _with(data[key], below, value)  # type: ignore[index]  # an index of a list, or a key
    return changed


def _span(text: str, node: yaml.Node | None, place: Place) -> tuple[int, int, str, str]:
    """Return start and end of what is to be replaced, and what may surround the new value."""
    for depth, key in enumerate(place):
        if isinstance(node, yaml.SequenceNode):
            node = node.value[key]  # `_with` has tried it
            continue
        assert isinstance(node, yaml.MappingNode)  # noqa: S101 - `_with` has tried it
        children = [child for name, child in node.value if name.value == key]
        if not children:
            assert depth == len(place) - 1  # noqa: S101 - `_with` has tried it
            return _span_of_new_key(text, node, key)
        node = children[0]
    assert node is not None  # noqa: S101 - `_with` has tried it
    start = node.start_mark.index
    return start, node.end_mark.index, " " if text[start - 1 : start] == ":" else "", ""


def _span_of_new_key(text: str, mapping: yaml.MappingNode, key: str | int) -> tuple[int, int, str, str]:
    """Return where a key is added: before the last one and the comment above that."""
    mark = mapping.value[-1][0].start_mark
    if mapping.flow_style:
        return mark.index, mark.index, f"{key}: ", ", "
    indent = " " * mark.column
    lines = re.search(rf"^(?:{indent}#.*\n)*{indent}\Z", text[: mark.index], re.MULTILINE)
    start = lines.start() + mark.column if lines else mark.index  # after "- " there is no comment of the key's own
    return start, start, f"{key}: ", f"\n{indent}"


def _has(text: str, wanted: Any) -> bool:
    """Return whether a text has the wanted values, types included: 1 is neither true nor 1.0."""
    try:
        return _canonical(yaml.load(text, Loader=LOADER)) == _canonical(wanted)  # noqa: S506 - a safe one
    except (yaml.YAMLError, ValueError):
        return False


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, default=repr)
