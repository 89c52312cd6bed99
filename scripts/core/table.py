"""Tables of text: for a terminal, for pages and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


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
