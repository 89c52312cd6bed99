"""Tables of measurements, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class BenchError(RuntimeError):
    """Something could not be measured; the message says why."""


@dataclass(frozen=True)
class Row:
    """A line of a table; `met` is None where there is no goal."""

    cells: tuple[str, ...]
    met: bool | None = None


def verdict(met: bool | None) -> str:
    """Return the last cell of a row."""
    return {None: "", True: "met", False: "MISSED"}[met]


def table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a Markdown table whose source reads as a table, too."""
    lines = [tuple(header), *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])
