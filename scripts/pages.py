"""What the pages that this project writes have in common: one file each, which loads nothing, in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --dim: #59636e; --line: #d1d9e0; --back: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --dim: #9198a1; --line: #3d444d; --back: #0d1117; } }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 66rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { color: var(--dim); margin: .3rem 0; max-width: 60rem; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: bottom; }
th { color: var(--dim); font-weight: 600; white-space: pre; } .right { text-align: right; }
tr.sum td { border-top: 2px solid var(--text); font-weight: 600; }
svg { display: block; height: auto; max-width: 100%; } svg text { fill: var(--text); font-size: 13px; }
svg .dim { fill: var(--dim); } svg .grid { stroke: var(--line); stroke-width: 1; }
"""
_TICKS = 5
STEPS = (1, 2, 5, 10)


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


def document(title: str, style: str, body: Iterable[str]) -> str:
    """Return a page; its style comes on top of that of all pages."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def table_lines(table: Table) -> Iterator[str]:
    """Yield a table and its notes, without its title."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        sides = ["right" if column.right else "left" for column in table.columns]
        return "".join(f'<{tag} class="{side}">{escape(text)}</{tag}>' for side, text in zip(sides, texts, strict=True))

    yield '<div class="wide"><table>'
    yield f"<thead><tr>{cells('th', [column.title for column in table.columns])}</tr></thead><tbody>"
    for index, row in enumerate(table.rows):
        kind = ' class="sum"' if index >= len(table.rows) - table.sums else ""
        yield f"<tr{kind}>{cells('td', row)}</tr>"
    yield "</tbody></table></div>"
    for note in table.notes:
        yield f"<p>{escape(note)}</p>"


def even_ticks(low: float, high: float) -> list[float]:
    """Return about five even steps, from below the lowest value to above the highest."""
    span = (high - low) or abs(high) or 1
    power = 10.0 ** floor(log10(span / _TICKS))
    step = next(step * power for step in STEPS if step * power * _TICKS >= span)
    first = floor(low / step)
    return [float(count * step) for count in range(first, max(ceil(high / step), first + 1) + 1)]
