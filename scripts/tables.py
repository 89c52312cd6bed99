"""Tables of text, for a terminal and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text


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
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for column in table.columns:
        shown.add_column(Text(column.title), justify="right" if column.right else "left", overflow="fold")
    for index, row in enumerate(table.rows):
        if index == len(table.rows) - table.sums:
            shown.add_section()
        shown.add_row(*map(Text, row))
    console.print(shown)
    for note in table.notes:
        console.print(Text(note, style="dim"))
