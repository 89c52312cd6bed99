"""A YAML file whose values know the lines that they stand on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from config.messages import dotted

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fast one, where PyYAML was built with libyaml."""


class YamlSourceError(ValueError):
    """A file that cannot be read, or is not YAML with one value per key."""


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file.

    Attributes:
        name: The file, as it is named in messages.
        value: What it holds.
    """

    name: str
    value: Any
    _lines: dict[tuple[str | int, ...], int]

    @classmethod
    def read(cls, path: Path) -> "YamlSource":
        """Parse a file.

        Raises:
            YamlSourceError: The file cannot be read, is not YAML, or gives a key twice.
        """
        name = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise YamlSourceError(f"{name}: cannot be read: {error}") from None
        try:
            loader = LOADER(text)
            node = loader.get_single_node()
            places = list(_places(node, ()))
            value = None if node is None else loader.construct_document(node)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise YamlSourceError(f"{name}: not YAML: {error}") from None
        lines: dict[tuple[str | int, ...], int] = {}
        for place, line in places:
            if place in lines:
                raise YamlSourceError(f"{name}:{line}: {place[-1]}: given twice, first on line {lines[place]}")
            lines[place] = line
        return cls(name, value, lines)

    def line(self, place: tuple[str | int, ...]) -> int:
        """Return the line of a value, or of the nearest thing around it that stands in the file."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def report(self, found: Iterable[tuple[tuple[str | int, ...], str]]) -> str:
        """Return what is wrong with values, a line each: the file, the value's line and place, and the text."""
        lines = sorted({(self.line(place), f"{dotted(place)}: {text}") for place, text in found})
        return "\n".join(f"{self.name}:{line}: {text}" for line, text in lines)


def _places(node: yaml.Node | None, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            below = (*place, key.value)
            yield below, key.start_mark.line + 1
            yield from _places(child, below)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield (*place, index), child.start_mark.line + 1
            yield from _places(child, (*place, index))
