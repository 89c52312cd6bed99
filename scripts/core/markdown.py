"""GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scripts.core.table import Table


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows))


def of_table(shown: Table) -> str:
    """Return a table for people as one of Markdown, with the notes below it."""
    rows = [[escaped(cell) for cell in row] for row in shown.rows]
    titles = [" ".join(column.title.split()) for column in shown.columns]
    return "\n\n".join([table(titles, rows), *map(escaped, shown.notes)])


def folded(summary: str, text: str) -> str:
    """Return text that shows when its summary is clicked on."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def escaped(text: str) -> str:
    """Return text that appears in a cell as it is."""
    for character in ("\\", "|", "<", "*", "_", "`", "[", "]", "~", "&"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
