"""Changes of a settings file that leave its comments and its layout alone."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from config.messages import dotted
from config.yaml_text import NotYamlError, decode, parse
from ultracluster.domain.violations import Path as Place

Scalar = str | int | float | bool | None


class EditError(ValueError):
    """A value that cannot be set; the message says which and why. The file is as before."""


def set_values(path: Path, values: Mapping[Place, Scalar]) -> None:
    """Change scalars of a settings file, or add keys that it leaves to their defaults; every other character stays.

    The file is replaced as a whole: a reader sees the old or the new one.

    Args:
        path: A YAML file.
        values: The new values by place, which is keys and indices: ``("cluster", "queues", 0, "name")``.

    Raises:
        EditError: There can be no such place, it holds something else than a scalar, or it is written in a way that
            cannot be changed without changing more; or the file is no YAML that is read.
        OSError: The file cannot be read or written.
    """
    path = path.resolve()  # the target of a link is replaced
    try:
        text = decode(path.read_bytes())  # read_text would translate line ends
    except NotYamlError as error:
        raise EditError(str(error)) from None
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
        document = parse(text)
        kept = {each: leaf for each, leaf in _leaves(document.value).items() if each != place[: len(each)]}
        wanted = kept | {place: repr(value)}  # without {} around it
        start, end, before, after = _span(text, document.node, place)
    except NotYamlError as error:
        raise EditError(str(error)) from None
    except LookupError:
        raise EditError(f"{dotted(place)}: there is no such value") from None
    writings = [json.dumps(value, ensure_ascii=False)]
    if isinstance(value, str) and text[start : start + 1] not in ('"', "'"):
        writings.insert(0, value)
    for written in writings:
        candidate = f"{text[:start]}{before}{written}{after}{text[end:]}"
        with suppress(NotYamlError):
            if _leaves(parse(candidate).value) == wanted:
                return candidate
    raise EditError(f"{dotted(place)}: cannot be set to {value!r} without changing more than that")


def _leaves(value: Any) -> dict[Place, str]:
    """Return how Python shows each value in others that holds no more: 1 is neither true nor 1.0."""
    leaves: dict[Place, str] = {}

    def collect(data: Any, place: Place) -> None:
        if not data or not isinstance(data, dict | list):
            leaves[place] = repr(data)
            return
        for key, member in data.items() if isinstance(data, dict) else enumerate(data):
            collect(member, (*place, key))

    collect(value, ())
    return leaves


def _span(text: str, node: yaml.Node | None, place: Place) -> tuple[int, int, str, str]:
    """Return start and end of what is to be replaced, and what may surround the new value.

    Raises:
        LookupError: There is no such scalar, nor a mapping to which it could be added.
    """
    for depth, key in enumerate(place):
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            node = node.value[key]
            continue
        if not isinstance(node, yaml.MappingNode):
            raise LookupError(key)
        children = [child for name, child in node.value if name.value == key]
        if not children:
            return _span_of_new_keys(text, node, place[depth:])
        node = children[0]
    if not isinstance(node, yaml.ScalarNode):
        raise LookupError(place)
    start = node.start_mark.index
    return start, node.end_mark.index, " " if text[start - 1 : start] == ":" else "", ""


def _span_of_new_keys(text: str, mapping: yaml.MappingNode, keys: Place) -> tuple[int, int, str, str]:
    """Return where keys, each within the one before it, are added: before the last one and the comment above that."""
    if any(isinstance(key, int) for key in keys):
        raise LookupError(keys)
    if mapping.flow_style:
        start = mapping.value[-1][0].start_mark.index if mapping.value else mapping.start_mark.index + 1
        return start, start, "{".join(f"{key}: " for key in keys), "}" * (len(keys) - 1) + ", " * bool(mapping.value)
    mark = mapping.value[-1][0].start_mark
    indent = " " * mark.column
    lines = re.search(rf"^(?:{indent}#.*\n)*{indent}\Z", text[: mark.index], re.MULTILINE)
    start = lines.start() + mark.column if lines else mark.index  # after "- " there is no comment of the key's own
    nested = ":\n".join(f"{indent * (depth > 0)}{'  ' * depth}{key}" for depth, key in enumerate(keys))
    return start, start, f"{nested}: ", f"\n{indent}"
