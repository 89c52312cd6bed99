"""Tables of text, for a terminal and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from scripts import screen


class Column(NamedTuple):
    """A column; numbers stand to the right."""

    title: str
    right: bool = True


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: What it shows.
        columns: Its columns.
        rows: Cells by row.
        sums: How many rows at the end are sums of those above.
        notes: Sentences below it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    sums: int = 0
    notes: Sequence[str] = ()


def show(table: Table, console: Console) -> None:
    """Print a table with its title and notes."""
    console.print(Text(table.title, style="bold"))
    shown = screen.table(*(f">{column.title}" if column.right else column.title for column in table.columns))
    for index, row in enumerate(table.rows):
        if index == len(table.rows) - table.sums:
            shown.add_section()
        shown.add_row(*map(Text, row))
    console.print(shown)
    for note in table.notes:
        console.print(Text(note, style="dim"))
