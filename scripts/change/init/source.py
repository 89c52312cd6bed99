"""A configuration of ParallelCluster that somebody has: a file of its own, or one within a CloudFormation template.

What a file leaves open is filled in: placeholders such as ``${NAME}``, ``<name>``, ``{{ name }}`` and ``{name}``, and
in a template its parameters, and what other stacks and resources would give.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from config.yaml_text import MAX_DEPTH, NotYamlError, decode
from scripts.core.figures import counted
from ultracluster.domain.violations import Path, capped, dotted, printable

RESOURCE = "Custom::PclusterCluster"
"""What AWS's provider of ParallelCluster makes
(https://docs.aws.amazon.com/parallelcluster/latest/ug/parallelcluster-v3-custom-resource.html)."""
_MOST_NODES = 50_000
"""Values of a file, each time that an alias names them."""
_TAGS = "tag:yaml.org,2002:"
_PLACEHOLDER = re.compile(
    r"\$\{(?P<shell>[A-Za-z_][\w.:-]*)\}|\{\{-?\s*(?P<jinja>[A-Za-z_][\w.]*)[^{}]*\}\}|<(?P<angle>[A-Za-z][\w .-]*)>"
    r"|(?<![$\{])\{(?P<brace>[A-Za-z_][\w -]*)\}"
)
_ID = re.compile(r"(subnet|sg|ami|vpc|fs|fsvol|vol|cr|lt)-\w+$")
_REAL_ID = re.compile(r"[a-z]+-([0-9a-f]{8}|[0-9a-f]{17})")
"""An id of EC2 or FSx; another one stands for one."""
_WHOLE = re.compile(r"\$(?P<bare>[A-Z_][A-Z0-9_]*)")
_SUBSTITUTED = re.compile(r"\$\{(?P<literal>!?)(?P<name>[^}]*)\}")
_UNKNOWN = "${Token[asked."
"""How what stands for a value that is asked for begins: rules let it pass, as what CloudFormation alone will know."""
_NO_VALUE = object()
"""What stands for a value that is none."""


class SourceError(ValueError):
    """A configuration that cannot be taken; the message names file, line and reason of everything."""


@dataclass(frozen=True)
class Question:
    """What a file leaves open.

    Attributes:
        key: Its name.
        line: The line that needs it; 0: none.
        where: What needs it.
        reason: Why it is asked; empty: the file has a placeholder.
        or_none: Whether it may be left out, by the answer ``none``.
    """

    key: str
    line: int
    where: str
    reason: str = ""
    or_none: bool = False


@dataclass
class Source:
    """A configuration with the lines of its values, and what it leaves open.

    Attributes:
        name: The file, as messages call it.
        value: The configuration.
        lines: The line of each value.
        missing: What it leaves open, by name. While there is any, the value lacks it.
    """

    name: str
    value: Any
    lines: Mapping[Path, int]
    missing: dict[str, Question] = field(default_factory=dict)

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the nearest thing around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def report(self, problems: Sequence[tuple[Path, str]]) -> SourceError:
        """Return the error of what cannot be taken: file, line, key and reason of each."""
        rows = sorted({(self.line(path), f"{dotted(path) or '(file)'}: {text}") for path, text in problems})
        return SourceError(capped("\n".join(f"{self.name}:{line}: {printable(text)}" for line, text in rows)))


def read(data: bytes, name: str, answers: Mapping[str, str]) -> Source:
    """Return the configuration of a text.

    Args:
        data: The text.
        name: How messages call it.
        answers: What is known of what it leaves open.

    Raises:
        SourceError: It is no YAML, or has no configuration.
    """
    try:
        root = _node(decode(data))
    except NotYamlError as error:
        raise SourceError("\n".join(f"{name}:{line}: {text}" for line, text in error.problems)) from None
    if not isinstance(root, yaml.MappingNode):
        raise SourceError(f"{name}:1: (file): got no mapping; allowed: a configuration of ParallelCluster 3")
    if isinstance(_child(root, "Resources"), yaml.MappingNode):
        return _Template(name, root, answers).configuration()
    reader = _Reader(name, answers)
    value = reader.value(root, ())
    return Source(name, value, reader.lines, reader.missing)


def _node(text: str) -> yaml.Node | None:
    """Return the only document of a text.

    Raises:
        NotYamlError: It is none, has several, or is nested too deeply.
    """
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):  # before nodes, which are made by recursion
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise NotYamlError([(1, f"nested more than {MAX_DEPTH} levels deep")])
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        said = getattr(error, "problem", None) or str(error)
        if re.search(r"^\s*\{%", text, re.MULTILINE):
            said += "; it has statements of Jinja: render it first"
        raise NotYamlError([(line, printable(f"not YAML: {said}"))]) from None


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a key of a mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


class _Reader:
    """Makes values of nodes, and fills in what they leave open."""

    def __init__(self, name: str, answers: Mapping[str, str], first_line: int = 0) -> None:
        self.name, self.answers, self.first_line = name, answers, first_line
        self.lines: dict[Path, int] = {}
        self.missing: dict[str, Question] = {}
        self._left = _MOST_NODES

    def value(self, node: yaml.Node, path: Path) -> Any:
        """Return what a node stands for."""
        self._left -= 1
        if self._left < 0:
            raise SourceError(f"{self.name}:{self._line(node)}: its aliases stand for too much")
        self.lines.setdefault(path, self._line(node))
        if path and (other := self.answers.get(dotted(path))) is not None:
            return other
        if (placeholder := _in_braces(node)) is not None:
            return self.ask(placeholder, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            items = [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            if any(isinstance(item, list) for item in items):  # a list of a template, written as an item
                items = [each for item in items for each in (item if isinstance(item, list) else [item])]
            return [item for item in items if item is not _NO_VALUE]
        return self.scalar(node, path)

    def scalar(self, node: yaml.Node, path: Path) -> Any:
        """Return a scalar, its placeholders filled in."""
        text = node.value
        if node.tag.removeprefix(_TAGS) in ("int", "bool", "null", "float"):
            return yaml.SafeLoader("").construct_object(node)
        if (whole := _WHOLE.fullmatch(text)) is not None:
            return self.ask(whole["bare"], path)
        if _ID.match(text) and not _REAL_ID.fullmatch(text):
            return self.ask(text, path)
        return self.filled(text, _PLACEHOLDER, path, lambda found: next(filter(None, found.groupdict().values())))

    def filled(self, text: str, pattern: re.Pattern[str], path: Path, called: Callable[[re.Match[str]], str]) -> Any:
        """Return a text with answers in place of what a pattern finds; one that is nothing else is the answer."""
        parts, end = list[str](), 0
        for found in pattern.finditer(text):
            answer = self.ask(called(found).strip(), path)
            if found[0] == text:
                return answer
            parts += [text[end : found.start()], _as_text(answer)]
            end = found.end()
        return "".join([*parts, text[end:]])

    def ask(self, key: str, path: Path, default: str | None = None) -> Any:
        """Return the answer to a question, and note it where there is none."""
        if (known := self.answers.get(key, default)) is not None:
            return known
        self.missing.setdefault(key, Question(key, self._line_of(path), dotted(path)))
        return asked(key)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> Any:
        yaml.SafeLoader("").flatten_mapping(node)
        result: dict[str, Any] = {}
        for key, child in node.value:
            name, where = str(key.value), (*path, str(key.value))
            if not isinstance(key, yaml.ScalarNode) or (name in result and f"{_TAGS}merge" != key.tag):
                raise SourceError(f"{self.name}:{self._line(key)}: {dotted(where)}: given twice, or no text")
            self.lines[where] = self._line(key)
            value = self.value(child, where)
            if value is not _NO_VALUE:
                result[name] = value
        return result

    def _line(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + 1 + self.first_line

    def _line_of(self, path: Path) -> int:
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def _in_braces(node: yaml.Node) -> str | None:
    """Return the name in ``{name}`` or ``{{ name }}``, which YAML takes for a mapping; None: it is none."""
    if not isinstance(node, yaml.MappingNode) or not node.flow_style or len(node.value) != 1:
        return None
    key, value = node.value[0]
    if not isinstance(value, yaml.ScalarNode) or value.value != "":
        return None
    if isinstance(key, yaml.MappingNode):
        return _in_braces(key)
    return key.value if isinstance(key, yaml.ScalarNode) and re.fullmatch(r"[A-Za-z_][\w .-]*", key.value) else None


_UNSET = ("AWS::NoValue",)


class _Template(_Reader):
    """Evaluates what of a CloudFormation template is known before it is deployed.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
    """

    def __init__(self, name: str, root: yaml.MappingNode, answers: Mapping[str, str]) -> None:
        super().__init__(name, answers)
        self._root = root

    def configuration(self) -> Source:
        """Return the configuration of the only cluster of the template."""
        found = list(self._clusters())
        if len(found) != 1:
            said = (
                f"{counted(len(found), 'resources')} of type {RESOURCE}" if found else f"no resource of type {RESOURCE}"
            )
            allowed = "one, or a configuration in a file of its own, also where a script of the template writes it"
            raise SourceError(f"{self.name}:1: Resources: got {said}; allowed: {allowed}")
        [(node, line)] = found
        if node is None:
            raise SourceError(f"{self.name}:{line}: Resources: its ClusterConfiguration is missing")
        value = self.value(node, ())
        if isinstance(value, str) and not self.missing:
            return self._inline(value, node)
        return Source(self.name, {} if _is_unknown(value) else value, self.lines, self.missing)

    def _clusters(self) -> Iterator[tuple[yaml.Node | None, int]]:
        resources = _child(self._root, "Resources")
        assert isinstance(resources, yaml.MappingNode)  # noqa: S101 - `read` looked
        for _, resource in resources.value:
            kind = _child(resource, "Type")
            if kind is not None and kind.value == RESOURCE:
                node = _child(_child(resource, "Properties"), "ClusterConfiguration")
                yield node, self._line(resource)

    def _inline(self, text: str, node: yaml.Node) -> Source:
        """Return the configuration of a text in the template."""
        while not isinstance(node, yaml.ScalarNode):  # the text of Fn::Sub
            node = node.value[0][1] if isinstance(node, yaml.MappingNode) else node.value[0]
        first = int(node.start_mark.line) + (node.style in ("|", ">"))
        inner = _Reader(self.name, self.answers, first)
        try:
            root = _node(text)
        except NotYamlError as error:
            [(line, said)] = error.problems
            raise SourceError(f"{self.name}:{line + first}: {said}") from None
        value = inner.value(root, ()) if isinstance(root, yaml.MappingNode) else None
        return Source(self.name, value, inner.lines, inner.missing)

    def value(self, node: yaml.Node, path: Path) -> Any:
        """Return what a node stands for, functions of CloudFormation evaluated."""
        if path and (other := self.answers.get(dotted(path))) is not None:
            self.lines.setdefault(path, self._line(node))
            return other
        if node.tag.startswith("!"):
            name = node.tag[1:]
            self.lines.setdefault(path, self._line(node))
            return self._call(name if name in ("Ref", "Condition") else f"Fn::{name}", node, path)
        if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
            key, argument = node.value[0]
            if isinstance(key, yaml.ScalarNode) and re.fullmatch("Ref|Condition|Fn::.*", key.value):
                self.lines.setdefault(path, self._line(node))
                return self._call(key.value, argument, path)
        return super().value(node, path)

    def scalar(self, node: yaml.Node, path: Path) -> Any:
        """Return a scalar as it is: placeholders of a template are functions."""
        if node.tag.startswith(_TAGS) and node.tag != f"{_TAGS}str":
            return yaml.SafeLoader("").construct_object(node)
        return node.value

    def _call(self, name: str, node: yaml.Node, path: Path) -> Any:
        functions: Mapping[str, Callable[[yaml.Node, Path], Any]] = {
            "Ref": lambda node, path: self._ref(node.value, path),
            "Condition": lambda node, path: self._condition(node.value, path),
            "Fn::Sub": self._sub,
            "Fn::GetAtt": self._attribute,
            "Fn::ImportValue": self._import,
            "Fn::If": self._if,
            "Fn::FindInMap": self._in_map,
            "Fn::Join": self._join,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Equals": self._equals,
            "Fn::Not": lambda node, path: self._decide(lambda values: not values[0], node, path),
            "Fn::And": lambda node, path: self._decide(all, node, path),
            "Fn::Or": lambda node, path: self._decide(any, node, path),
        }
        if name not in functions:
            return self.ask(f"{name} of line {self._line(node)}", path)
        return functions[name](node, path)

    def _arguments(self, node: yaml.Node, path: Path) -> list[Any]:
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        return [self.value(item, path) for item in items]

    def _ref(self, name: str, path: Path) -> Any:
        if name in _UNSET:
            return _NO_VALUE
        parameter = _child(_child(self._root, "Parameters"), name)
        if parameter is None:
            return self.ask(name, path, {"AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}.get(name))
        kind, default = (_child(parameter, key) for key in ("Type", "Default"))
        of_kind = "" if kind is None else str(kind.value)
        known = None if default is None or of_kind.startswith("AWS::SSM") or default.value == "" else default.value
        value = self.ask(name, path, known)
        choices = _child(parameter, "AllowedValues")
        allowed = [item.value for item in choices.value] if choices is not None else [value]
        if not _is_unknown(value) and value not in allowed:
            raise SourceError(
                f"{self.name}:{self._line(parameter)}: {name}: got {value}; allowed: {', '.join(allowed)}"
            )
        is_list = of_kind.startswith("List<") or "List<" in of_kind or of_kind == "CommaDelimitedList"
        return [each.strip() for each in value.split(",")] if is_list and isinstance(value, str) else value

    def _condition(self, name: str, path: Path) -> Any:
        node = _child(_child(self._root, "Conditions"), name)
        return self.ask(name, path) if node is None else self.value(node, path)

    def _sub(self, node: yaml.Node, path: Path) -> Any:
        own: dict[str, Any] = {}
        text = node
        if isinstance(node, yaml.SequenceNode):
            text, values = node.value
            own = {key.value: self.value(value, path) for key, value in values.value}

        def known(found: re.Match[str]) -> Any:
            if found["literal"]:
                return f"${{{found['name']}}}"
            name = found["name"].strip()
            if name in own:
                return own[name]
            is_attribute = "." in name and _child(_child(self._root, "Parameters"), name) is None
            return self.ask(name, path) if is_attribute else self._ref(name, path)

        return _SUBSTITUTED.sub(lambda found: _as_text(known(found)), str(text.value))

    def _attribute(self, node: yaml.Node, path: Path) -> Any:
        named = node.value if isinstance(node, yaml.ScalarNode) else ".".join(map(str, self._arguments(node, path)))
        return self.ask(named, path)

    def _import(self, node: yaml.Node, path: Path) -> Any:
        name = self.value(node, path)
        return name if _is_unknown(name) else self.ask(str(name), path)

    def _if(self, node: yaml.Node, path: Path) -> Any:
        condition, yes, no = node.value
        holds = self._condition(condition.value, path)
        return holds if _is_unknown(holds) else self.value(yes if holds in (True, "true") else no, path)

    def _in_map(self, node: yaml.Node, path: Path) -> Any:
        keys = self._arguments(node, path)
        if any(map(_is_unknown, keys)):
            return next(filter(_is_unknown, keys))
        found: yaml.Node | None = _child(self._root, "Mappings")
        for key in keys[:3]:
            found = _child(found, str(key))
        named = ".".join(map(str, keys))
        return self.ask(named, path) if found is None else self.value(found, path)

    def _join(self, node: yaml.Node, path: Path) -> Any:
        separator, items = self._arguments(node, path)
        return items if _is_unknown(items) else str(separator).join(map(_as_text, items))

    def _split(self, node: yaml.Node, path: Path) -> Any:
        separator, text = self._arguments(node, path)
        return text if _is_unknown(text) else str(text).split(str(separator))

    def _select(self, node: yaml.Node, path: Path) -> Any:
        index, items = self._arguments(node, path)
        if _is_unknown(items) or int(index) >= len(items):
            return items
        return items[int(index)]

    def _equals(self, node: yaml.Node, path: Path) -> Any:
        return self._decide(lambda values: _as_text(values[0]) == _as_text(values[1]), node, path)

    def _decide(self, rule: Callable[[list[Any]], bool], node: yaml.Node, path: Path) -> Any:
        """Return whether a rule holds of values; what is not known yet stands for the answer."""
        values = self._arguments(node, path)
        return next(filter(_is_unknown, values), None) or rule(values)


def asked(key: str) -> str:
    """Return what stands for a value that is asked for."""
    return f"{_UNKNOWN}{key}]}}"


def _is_unknown(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_UNKNOWN)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is _NO_VALUE else str(value)
