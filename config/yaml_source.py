"""A YAML file whose values know the lines that they are on."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.messages import SettingsError, dotted
from config.yaml_text import MAX_BYTES, NotYamlError, decode, parse
from ultracluster.domain.violations import Path as KeyPath
from ultracluster.domain.violations import printable


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file, by the name that messages give it."""

    name: str
    value: Any
    _lines: dict[KeyPath, int]

    @classmethod
    def read(cls, path: Path) -> YamlSource:
        """Parse a file.

        Raises:
            SettingsError: The file cannot be read, is not YAML, or has what `parse` refuses.
        """
        name = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise SettingsError(f"{name}: cannot be read: not a file")  # opening a pipe would wait
            with path.open("rb") as file:
                document = parse(decode(file.read(MAX_BYTES + 1)))
        except OSError as error:
            raise SettingsError(f"{name}: cannot be read: {error}") from None
        except NotYamlError as error:
            raise SettingsError("\n".join(f"{name}:{line}: {text}" for line, text in error.problems)) from None
        return cls(name, document.value, document.lines)

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
        return "\n".join(f"{self.name}:{line}: {printable(text)}" for line, text in by_line)
