"""YAML that users write, that of pull requests, too: nothing else reads it.

What lets a small file cost much, or mean something else to other programs, is refused before any value is made:
aliases, tags, merge keys, deep nesting, huge files and numbers, and what YAML 1.1 and 1.2 read as different values, as
010, 1:30, yes and dates.
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
"""Characters of a number."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fast one, where PyYAML was built with libyaml."""
_UNSEEN = re.compile(r"\r(?!\n)|[\x85\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]|(?<!^)\ufeff")
"""What ends a line for YAML and not for who reviews it, or turns or hides text: a comment would hold settings."""
_TAGS = "tag:yaml.org,2002:"
_PLAIN = {
    "bool": re.compile("true|True|TRUE|false|False|FALSE"),
    "float": re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]\d+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
    "int": re.compile(r"[-+]?(0|[1-9]\d*)|0x[0-9a-fA-F]+"),
    "null": re.compile("~|null|Null|NULL|"),
}
"""What YAML 1.1, which PyYAML reads, and YAML 1.2, which most others read, take for the same value, by its kind
(https://yaml.org/type/, https://yaml.org/spec/1.2.2/#1032-tag-resolution)."""
_NEVER = re.compile("(?!)")
_NUMBER_IN_1_2 = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+")
_KINDS = {"bool": "true or false", "float": "a number", "int": "another number", "timestamp": "a date"}
_DECIMAL = ", or a number in decimal digits such as 10 or 0.5"
_FORMS = {"bool": ", or true or false", "int": _DECIMAL, "float": _DECIMAL}


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
            values nested too deeply, numbers that are too long or not finite, or that depend on the version of YAML.
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
        if problems := list(islice(_problems(node, (), lines), MAX_REPORTED)):
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


def _problems(node: yaml.Node | None, place: KeyPath, lines: dict[KeyPath, int]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with keys and scalars, and note the line of each value."""
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                yield line, f"got a {key.id} as a key; allowed: text"
                continue
            yield from _scalar_problems(key)
            below = (*place, key.value)
            if below in lines:
                yield line, f"{dotted(below[-1:])}: given twice, first on line {lines[below]}"
            lines.setdefault(below, line)
            yield from _problems(child, below, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            below = (*place, index)
            lines[below] = child.start_mark.line + 1
            yield from _problems(child, below, lines)
    elif isinstance(node, yaml.ScalarNode):
        yield from _scalar_problems(node)


def _scalar_problems(node: yaml.ScalarNode) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with a scalar: above all, that YAML 1.1 and 1.2 read it as different values."""
    line, text, kind = node.start_mark.line + 1, node.value, node.tag.removeprefix(_TAGS)
    if kind != "str" and len(text) > MAX_NUMBER:
        got = f"a number of {len(text)} characters, {shown(text[:20])}..."
        yield line, f"got {got}; allowed: up to {MAX_NUMBER}, or a text in quotes"
    elif kind == "merge":
        yield line, "got the key <<; allowed: the keys themselves"
    elif kind == "str":
        if not node.style and len(text) <= MAX_NUMBER and _NUMBER_IN_1_2.fullmatch(text):
            yield line, f"got {text}, a text here and a number to others; allowed: quotes around it{_DECIMAL}"
    elif not _PLAIN.get(kind, _NEVER).fullmatch(text):
        got = f"got {printable(text)}, which YAML 1.1 alone takes for {_KINDS.get(kind, kind)}"
        yield line, f"{got}; allowed: quotes around it{_FORMS.get(kind, '')}"
    elif kind == "float" and (text[-1] in "fFnN" or not math.isfinite(float(text))):
        yield line, f"got {shown(text)}; allowed: finite numbers"


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
