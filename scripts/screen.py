"""Tables, times and amounts on a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import rich.table
from rich import box
from rich.console import Console
from rich.text import Text


class Column(NamedTuple):
    """A column; numbers stand to the right."""

    title: str
    right: bool = True


@dataclass(frozen=True)
class Table:
    """A table of text, for a terminal and for pages.

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


def show(shown: Table, console: Console) -> None:
    """Print a table with its title and notes."""
    console.print(Text(shown.title, style="bold"))
    lines = table(*(f">{column.title}" if column.right else column.title for column in shown.columns))
    for index, row in enumerate(shown.rows):
        if index == len(shown.rows) - shown.sums:
            lines.add_section()
        lines.add_row(*map(Text, row))
    console.print(lines)
    for note in shown.notes:
        console.print(Text(note, style="dim"))


def table(*columns: str) -> rich.table.Table:
    """Return an empty table; a column whose title starts with ``>`` is flush right."""
    empty = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for title in columns:
        empty.add_column(title.removeprefix(">"), justify="right" if title.startswith(">") else "left", overflow="fold")
    return empty


def duration(length: timedelta | float) -> str:
    """Return a time span (a number: seconds) in its two largest units: ``3 d 4 h``, ``12 min 5 s``, ``8 s``."""
    seconds = max(round(length.total_seconds() if isinstance(length, timedelta) else length), 0)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    for (large, size), (small, part) in pairwise(units):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {large} {rest} {small}" if rest else f"{seconds // size} {large}"
    return f"{seconds} s"


def dollars(amount: Decimal | float) -> str:
    """Return an amount of dollars, to the cent below 100."""
    return f"${amount:,.2f}" if amount < 100 else f"${amount:,.0f}"  # noqa: PLR2004
