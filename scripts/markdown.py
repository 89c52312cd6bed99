"""GitHub's Markdown: tables, and blocks of a comment that can be cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Block(NamedTuple):
    """A part of a comment that can be cut after any line.

    Attributes:
        lines: Its text.
        end: What closes it, also if it was cut.
    """

    lines: Sequence[str]
    end: Sequence[str] = ()


def joined(parts: Sequence[Block]) -> str:
    """Return blocks as one text, an empty line between them."""
    return "\n\n".join("\n".join([*part.lines, *part.end]) for part in parts) + "\n"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose cells are Markdown."""
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(row)} |"


def escaped(text: str) -> str:
    """Return text that appears in a cell as it is."""
    for character in ("\\", "|", "<", "*", "_", "`"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
