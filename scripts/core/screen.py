"""Tables, times and amounts on a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import rich.table
from rich import box
from rich.console import Console, Group, RenderableType
from rich.text import Text

from scripts.core import markdown
from scripts.core.table import Table
from scripts.core.text import echo, fit_renderable


class MarkdownConsole(Console):
    """A console that prints GitHub's Markdown: tables stay tables, lines are paragraphs, indented ones lists.

    So a result in Markdown is the result for people. Above what is printed first stands a title.

    Args:
        title: What it is the result of.
    """

    def __init__(self, title: str) -> None:
        super().__init__(quiet=True, force_terminal=False, highlight=False, emoji=False)
        self._last = ""
        self._title = f"### {title}"

    def print(self, *objects: Any, style: Any = None, **_: Any) -> None:
        """Print blocks of Markdown; what is for terminals only, such as cursors, is left out."""
        for each in objects:
            for block in _blocks(each, style or ""):
                is_list = block.startswith("- ") and self._last.startswith("- ")
                start = "" if is_list else "\n" if self._last else f"{self._title}\n\n"
                echo(f"{start}{block}")
                self._last = block


def _blocks(content: RenderableType, style: object) -> Iterator[str]:
    """Yield something for people as blocks of Markdown, without empty ones."""
    if isinstance(content, Group):
        for part in content.renderables:
            yield from _blocks(part, style)
    elif isinstance(content, rich.table.Table):
        if content.title:
            yield f"**{_cell(content.title)}**"
        if content.row_count:
            rows = zip(*(column.cells for column in content.columns), strict=True)
            yield markdown.table(
                [_cell(column.header) for column in content.columns], [[*map(_cell, row)] for row in rows]
            )
    elif isinstance(content, str | Text):
        is_bold = "bold" in f"{style} {content.style if isinstance(content, Text) else ''}"
        for line in filter(str.strip, str(content).splitlines()):
            text = markdown.escaped(line.strip().removeprefix("- "))
            shown = f"**{text}**" if is_bold else text
            yield f"- {shown}" if line.startswith(("  ", "- ")) else shown


def _cell(content: RenderableType) -> str:
    return markdown.escaped(str(content))


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


class _Table(rich.table.Table):
    """A table whose cells fit a terminal before their widths are measured."""

    def add_row(self, *renderables: RenderableType | None, **more: Any) -> None:
        super().add_row(*(None if each is None else fit_renderable(each) for each in renderables), **more)


def table(*columns: str) -> rich.table.Table:
    """Return an empty table; a column whose title starts with ``>`` is flush right. Cells are text, not markup."""
    empty = _Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
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
