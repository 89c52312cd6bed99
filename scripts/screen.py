"""Tables, times and amounts on a terminal of 80 columns or more."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

from rich import box
from rich.table import Table


def table(*columns: str) -> Table:
    """Return an empty table; a column whose title starts with ``>`` is flush right."""
    empty = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
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
