"""Reports for people: text on a terminal of 80 columns or more, or in the log of a pipeline; or GitHub's Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, assert_never

import rich.table
from rich import box
from rich.text import Text

from scripts.core import markdown
from scripts.core.findings import Finding
from scripts.core.report import (
    TONES,
    Block,
    Changes,
    Command,
    Conclusion,
    Facts,
    Folded,
    Gap,
    Line,
    Link,
    Table,
    Title,
    Tone,
    Toned,
    concluded,
    tone_of,
)
from scripts.core.text import echo, fit

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_STYLES: Final[Mapping[Tone, str]] = {
    "": "",
    "good": "bold green",
    "warn": "yellow",
    "bad": "bold red",
    "unknown": "bold magenta",
    "strong": "bold",
    "dim": "dim",
    "source": "cyan",
}
_WIDTH: Final = max(map(len, TONES))
_INDENT: Final = "  "


class _Whole(Text):
    """A text that stays on one line, however long."""


class View:
    """Shows reports as text on a console.

    Sentences are broken between words on a terminal, and not in a pipe, so that programs such as grep find them whole;
    COLUMNS has them broken there, too. Commands, hints, which have some, and addresses stay whole everywhere, so that
    they can be copied. Facts and tables fit into the columns.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._breaks = console.is_terminal or os.environ.get("COLUMNS", "").isdigit()

    def show(self, blocks: Iterable[Block]) -> None:
        """Print blocks, the conclusions last."""
        if self._console.quiet:
            return
        for block in _spaced(concluded(blocks, page=False)):
            for each in _drawn(block):
                is_whole = isinstance(each, _Whole) or (isinstance(each, Text) and not self._breaks)
                self._console.print(each, soft_wrap=is_whole)


class Page:
    """Prints reports as GitHub's Markdown: tables stay tables, lines are paragraphs, indented ones lists.

    Args:
        title: What stands above what is printed first.
    """

    def __init__(self, title: str) -> None:
        self._last = ""
        self._title = f"### {title}"

    def show(self, blocks: Iterable[Block]) -> None:
        """Print blocks, the conclusions first, the last of them at the top."""
        for text in markdown.of_blocks(blocks):
            start = markdown.between(self._last, text) if self._last else f"{self._title}\n\n"
            echo(f"{start.removeprefix(chr(10))}{text}")
            self._last = text


def drawn(blocks: Iterable[Block]) -> Iterator[RenderableType]:
    """Yield what rich draws, in the order of a terminal, all of it broken to fit the columns."""
    for block in _spaced(concluded(blocks, page=False)):
        yield from _drawn(block)


def _spaced(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks without a second gap after another, what is folded opened."""
    last: Block | None = None
    for block in blocks:
        if isinstance(block, Folded):
            yield from _spaced((Title(block.summary), *block.blocks))
        elif isinstance(block, Title) and isinstance(last, Gap):
            yield Line(Toned(block.text, "strong"))
        elif not (isinstance(block, Gap) and isinstance(last, Gap)):
            yield block
        last = block


def _drawn(block: Block) -> Iterator[RenderableType]:
    match block:
        case Line():
            yield Text.assemble(_INDENT * block.level, "- " if block.item else "", *map(_text, block.parts))
        case Command():
            yield _Whole(f"{_INDENT * block.level}{fit(block.words)}", "green")
        case Link():
            yield _Whole(f"{_INDENT}{fit(block.title):<9} {fit(block.address)}")
        case Title():
            yield Text(f"\n{fit(block.text)}", "bold")
        case Gap():
            yield Text()
        case Facts():
            if block.rows:
                yield _facts(block)
        case Finding():
            yield from _finding(block)
        case Changes():
            yield Text(f"{_INDENT}{fit(block.subject)}")
            yield from (Text(f"    - {fit(each)}", "red") for each in block.lost)
            yield from (Text(f"    + {fit(each)}", "green") for each in block.gained)
        case Table():
            yield from _table(block)
        case Folded() | Conclusion():
            raise TypeError(block)
        case _:
            assert_never(block)


def _finding(finding: Finding) -> Iterator[RenderableType]:
    status = Text(f"{finding.status:{_WIDTH}}", _STYLES[TONES[finding.status]])
    yield Text.assemble(status, f"  {fit(finding.text)}")
    if finding.hint:
        yield _Whole(f"{'':{_WIDTH}}  {fit(finding.hint)}")
    if finding.command:
        yield _Whole(f"{'':{_WIDTH}}  $ {fit(finding.command)}", "dim")


def _facts(facts: Facts) -> RenderableType:
    grid = rich.table.Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.rows:
        grid.add_row(fit(name), _text(value))
    return grid


def _table(table: Table) -> Iterator[RenderableType]:
    if not table.rows:
        return
    if table.title:
        yield Text(fit(table.title), "bold")
    padding = 0 if table.narrow else 1
    lines = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, padding))
    for column in table.columns:
        lines.add_column(fit(column.title), justify="right" if column.right else "left", overflow="fold")
    for index, row in enumerate(table.rows):
        if index == len(table.rows) - table.sums:
            lines.add_section()
        lines.add_row(*map(_text, row))
    yield lines
    yield from (Text(fit(note), "dim") for note in table.notes)


def _text(text: str) -> Text:
    return Text(fit(text), _STYLES[tone_of(text)])
