"""The files by which a step tells something to the steps after it.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#environment-files
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

NAMES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE")


class StepFiles:
    """The files of one step, in a directory of their own, which does not exist yet."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._paths = {name: directory / name for name in NAMES}
        for path in self._paths.values():
            path.touch()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that name them."""
        return {name: str(path) for name, path in self._paths.items()}

    def values(self, name: str) -> dict[str, str]:
        """Return what stands in ``GITHUB_OUTPUT`` or ``GITHUB_ENV``.

        Raises:
            ValueError: A line is neither ``NAME=VALUE`` nor the beginning of a value of several lines.
        """
        return dict(_pairs(self.text(name).splitlines()))

    def text(self, name: str) -> str:
        """Return the text of a file."""
        return self._paths[name].read_text(encoding="utf-8")


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    remaining = iter(lines)
    for line in remaining:
        name, equals, value = line.partition("=")
        name_of_several, several, delimiter = line.partition("<<")
        if several and (not equals or len(name_of_several) < len(name)):
            found = []
            while (each := next(remaining, None)) != delimiter:
                if each is None:
                    raise ValueError(f"got {line!r}, whose value has no end; allowed: a line {delimiter!r}")
                found.append(each)
            yield name_of_several, "\n".join(found)
        elif equals:
            yield name, value
        elif line.strip():
            raise ValueError(f"got {line!r}; allowed: NAME=VALUE, or NAME<<END, lines and END")
