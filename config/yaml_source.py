"""A YAML file whose values know the lines that they are on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from config.messages import SettingsError, dotted
from ultracluster.domain.violations import Path as KeyPath

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fast one, where PyYAML was built with libyaml."""

MAX_BYTES = 1024 * 1024
"""Size of the largest file that is read."""
MAX_ALIASED_VALUES = 10_000
"""Values that all aliases of a file may expand to. Aliases of aliases double it line by line."""
MAX_ALIASED_CHARACTERS = 1024 * 1024
"""Length of all text that the aliases of a file may expand to."""
MAX_DEPTH = 100
"""Mappings and lists within each other. libyaml's time grows with the square of it."""


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file.

    Attributes:
        name: The file, as it is named in messages.
        value: What it holds.
    """

    name: str
    value: Any
    _lines: dict[KeyPath, int]

    @classmethod
    def read(cls, path: Path) -> "YamlSource":
        """Parse a file.

        Raises:
            SettingsError: The file cannot be read, is larger than ``MAX_BYTES``, nests or repeats more than
                ``MAX_DEPTH``, ``MAX_ALIASED_VALUES`` and ``MAX_ALIASED_CHARACTERS`` allow, is not YAML, or gives a key
                twice.
        """
        name = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                line = content.count(b"\n", 0, MAX_BYTES) + 1
                raise SettingsError(f"{name}:{line}: got more than 1 MiB up to here; allowed: 1 MiB in a file")
            text = content.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{name}: cannot be read: {error}") from None
        try:
            if excess := _excess(text):
                raise SettingsError(f"{name}:{excess}")
            loader = LOADER(text)
            node = loader.get_single_node()
            places = list(_places(node, ()))
            value = None if node is None else loader.construct_document(node)
        except SettingsError:
            raise
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise SettingsError(f"{name}: not YAML: {error}") from None
        lines: dict[KeyPath, int] = {}
        for place, line in places:
            if place in lines:
                raise SettingsError(f"{name}:{line}: {place[-1]}: given twice, first on line {lines[place]}")
            lines[place] = line
        return cls(name, value, lines)

    def line(self, place: KeyPath) -> int:
        """Return the line of a value, or of the nearest thing around it that is in the file."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def report(self, texts: Iterable[tuple[KeyPath, str]]) -> str:
        """Return what is wrong with values, a line each: the file, the value's line and place, and the text."""
        by_line = sorted({(self.line(place), f"{dotted(place)}: {text}") for place, text in texts})
        return "\n".join(f"{self.name}:{line}: {text}" for line, text in by_line)


def _excess(text: str) -> str | None:
    """Return the line on which a text would take too much time or memory, and why; None: nowhere.

    It reads the parser's events, before values are built.
    """
    sizes: dict[str | None, tuple[int, int]] = {}  # values that an alias of an anchor stands for, and characters
    around: list[tuple[str | None, int, int]] = []  # the collections that are open: anchor; values, characters before
    values = characters = aliased = aliased_characters = 0
    event: Any  # types-PyYAML lets marks and anchors be None, which those of a text are not
    for event in yaml.parse(text, Loader=LOADER):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if any(event.anchor == anchor for anchor, _, _ in around):
                return f"{line}: got *{event.anchor} within what it names; allowed: aliases of other values"
            size, length = sizes.get(event.anchor, (0, 0))  # the loader reports a missing anchor
            values += size
            characters += length
            aliased += size
            aliased_characters += length
            if aliased > MAX_ALIASED_VALUES:
                return f"{line}: got aliases that stand for {aliased} values; allowed: {MAX_ALIASED_VALUES} in a file"
            if aliased_characters > MAX_ALIASED_CHARACTERS:
                return (
                    f"{line}: got aliases that stand for {aliased_characters} characters; "
                    f"allowed: {MAX_ALIASED_CHARACTERS} in a file"
                )
        elif isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, values, characters))
            values += 1
            if len(around) > MAX_DEPTH:
                return f"{line}: got mappings and lists {len(around)} deep; allowed: {MAX_DEPTH}"
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, values_before, characters_before = around.pop()
            if anchor is not None:
                sizes[anchor] = values - values_before, characters - characters_before
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            characters += len(event.value)
            if event.anchor is not None:
                sizes[event.anchor] = 1, len(event.value)
    return None


def _places(node: yaml.Node | None, place: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            below = (*place, key.value)
            yield below, key.start_mark.line + 1
            yield from _places(child, below)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield (*place, index), child.start_mark.line + 1
            yield from _places(child, (*place, index))
