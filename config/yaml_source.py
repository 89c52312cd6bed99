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


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file, by the name that messages give it."""

    name: str
    value: Any
    _lines: dict[KeyPath, int]

    @classmethod
    def read(cls, path: Path) -> "YamlSource":
        """Parse a file.

        Raises:
            SettingsError: The file cannot be read, is not YAML, or gives a key twice.
        """
        name = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
        try:
            loader = LOADER(path.read_text(encoding="utf-8"))
            node = loader.get_single_node()
            places = list(_places(node, ()))
            value = None if node is None else loader.construct_document(node)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{name}: cannot be read: {error}") from None
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

    def _of_default(self, place: KeyPath, text: str) -> str:
        return text if place in self._lines else text.replace("; allowed: ", " by default; allowed: ", 1)

    def report(self, texts: Iterable[tuple[KeyPath, str]]) -> str:
        """Return what is wrong with values, a line each: the file, the value's line and place, and the text.

        A value that is not in the file is the default.
        """
        by_line = sorted(
            {(self.line(place), f"{dotted(place)}: {self._of_default(place, text)}") for place, text in texts}
        )
        return "\n".join(f"{self.name}:{line}: {text}" for line, text in by_line)


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
