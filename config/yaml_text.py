"""YAML that users write, that of pull requests, too: nothing else reads it.

What lets a small file cost much, or mean something else to other programs, is refused before any value is made:
aliases, tags, deep nesting, huge files and numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import yaml
from yaml.reader import Reader

from ultracluster.domain.violations import MAX_REPORTED, capped, dotted, printable, shown
from ultracluster.domain.violations import Path as KeyPath

MAX_BYTES = 1 << 20
MAX_DEPTH = 50
MAX_NUMBER = 100
"""Characters of a number or date."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fast one, where PyYAML was built with libyaml."""
_UNSEEN = re.compile(r"\r(?!\n)|[\x85\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]|(?<!^)\ufeff")
"""What ends a line for YAML and not for who reviews it, or turns or hides text: a comment would hold settings."""
_TAGS = "tag:yaml.org,2002:"
_NUMBERS = frozenset(f"{_TAGS}{kind}" for kind in ("int", "float", "timestamp"))


class NotYamlError(ValueError):
    """A text that is not read.

    Attributes:
        problems: The line of each problem, and what it is.
    """

    def __init__(self, problems: Sequence[tuple[int, str]]) -> None:
        self.problems = problems
        super().__init__(capped("\n".join(f"line {line}: {text}" for line, text in problems)))


@dataclass(frozen=True)
class Document:
    """A YAML text: its value, how it is written, and the line of each value in it."""

    value: Any
    node: yaml.Node | None
    lines: dict[KeyPath, int]


def decode(data: bytes) -> str:
    """Return the text of a file.

    Raises:
        NotYamlError: It is too large, or is not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise NotYamlError([(1, f"the file is larger than {MAX_BYTES} bytes; allowed: up to 1 MiB")])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = f"byte {error.start} of the file, 0x{data[error.start]:02x}, is not UTF-8; save the file as UTF-8"
        raise NotYamlError([(line, text)]) from None


def parse(text: str) -> Document:
    """Read a YAML text.

    Raises:
        NotYamlError: It is not YAML, or has what is not read: more than one document, a key twice, aliases, tags,
            values nested too deeply, numbers that are too long or not finite.
    """
    if odd := Reader.NON_PRINTABLE.search(text) or _UNSEEN.search(text):
        line = text.count("\n", 0, odd.start()) + 1
        allowed = "allowed: printable characters, others as escapes in double quotes"
        raise NotYamlError([(line, f"got the character {odd[0]!a}; {allowed}")])
    # Events first: libyaml makes them without recursion, but nodes with it, which nesting of thousands ends in a crash.
    if problems := list(islice(_refused(text), MAX_REPORTED)):
        raise NotYamlError(problems)
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        lines = dict[KeyPath, int]()
        if problems := list(islice(_problems(loader, node, (), lines), MAX_REPORTED)):
            raise NotYamlError(problems)
        return Document(None if node is None else loader.construct_document(node), node, lines)
    except yaml.YAMLError as error:
        raise NotYamlError([_position(error, text)]) from None


def _refused(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of what is refused whatever it says, and what it is."""
    documents = depth = 0
    try:
        event: Any  # what typeshed says of events lacks their attributes
        for event in yaml.parse(text, Loader=_LOADER):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                yield line, f"got the alias *{printable(str(event.anchor))}; allowed: the value itself, written again"
            elif tag := getattr(event, "tag", None):
                tag = printable(tag.replace(_TAGS, "!!", 1))
                yield line, f"got the tag {tag}; allowed: values without tags, texts in quotes"
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    yield line, "a second document starts here; allowed: one document in a file"
                    return
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    yield line, f"nested more than {MAX_DEPTH} levels deep; allowed: up to {MAX_DEPTH}"
                    return
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError as error:
        yield _position(error, text)


def _problems(
    loader: Any, node: yaml.Node | None, place: KeyPath, lines: dict[KeyPath, int]
) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with keys and numbers, and note the line of each value."""
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                yield line, f"got a {key.id} as a key; allowed: text"
                continue
            yield from _scalar_problems(loader, key)
            below = (*place, key.value)
            if below in lines:
                yield line, f"{dotted(below[-1:])}: given twice, first on line {lines[below]}"
            lines.setdefault(below, line)
            yield from _problems(loader, child, below, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            below = (*place, index)
            lines[below] = child.start_mark.line + 1
            yield from _problems(loader, child, below, lines)
    elif isinstance(node, yaml.ScalarNode):
        yield from _scalar_problems(loader, node)


def _scalar_problems(loader: Any, node: yaml.ScalarNode) -> Iterator[tuple[int, str]]:
    if node.tag not in _NUMBERS:
        return
    line = node.start_mark.line + 1
    if len(node.value) > MAX_NUMBER:
        got = f"a number of {len(node.value)} characters, {shown(node.value[:20])}..."
        yield line, f"got {got}; allowed: up to {MAX_NUMBER}, or a text in quotes"
        return
    try:
        value = loader.construct_object(node)  # kept for the document
    except (ValueError, OverflowError) as error:
        yield line, f"got {shown(node.value)}, which is no number or date: {error}; allowed: a text in quotes"
        return
    if isinstance(value, float) and not math.isfinite(value):
        yield line, f"got {shown(node.value)}; allowed: finite numbers"


def _position(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """Return the line of an error of PyYAML, and what it is."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    line = 0 if mark is None else mark.line
    said = f"not YAML: {problem or error}"
    context, start = getattr(error, "context", None), getattr(error, "context_mark", None)
    if context and start is not None and start.line != line:
        said += f", {context} that starts on line {start.line + 1}"
    if "".join(text.splitlines()[line : line + 1]).lstrip(" ").startswith("\t"):
        said += "; indent by spaces, not tabs"
    return line + 1, printable(said)
