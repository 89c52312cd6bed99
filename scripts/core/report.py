"""What a command reports, as values: lines, facts, findings and tables, which `scripts.core.view` shows to people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from scripts.core.findings import CheckStatus, Finding

Tone = Literal["", "good", "warn", "bad", "unknown", "strong", "dim", "source"]
"""What a text means to its reader; how it looks is the view's."""


class Toned(str):
    """A text with a tone. It compares as its text, and what is made of it has no tone."""

    __slots__ = ("tone",)
    tone: Tone

    def __new__(cls, text: str, tone: Tone) -> Toned:
        """Return the text with the tone."""
        toned = super().__new__(cls, text)
        toned.tone = tone
        return toned

    def __getnewargs__(self) -> tuple[str, Tone]:  # type: ignore[override]
        """Return what a copy is made of."""
        return str(self), self.tone


def tone_of(text: str) -> Tone:
    """Return the tone of a text."""
    return text.tone if isinstance(text, Toned) else ""


TONES: Final[Mapping[CheckStatus, Tone]] = {
    CheckStatus.PASS: "good",
    CheckStatus.WARN: "warn",
    CheckStatus.FAIL: "bad",
    CheckStatus.SKIP: "dim",
    CheckStatus.UNKNOWN: "unknown",
}
"""Tones by the status of a finding."""


@dataclass(frozen=True)
class Line:
    """A sentence.

    Attributes:
        content: A text, or the parts of it, which may have tones of their own.
        level: How far it is indented; on a page an indented line is an item of a list.
        item: Whether it is an item of a list on a terminal, too.
    """

    content: str | Sequence[str]
    level: int = 0
    item: bool = False

    @property
    def parts(self) -> Sequence[str]:
        """Its parts, one or more."""
        return [self.content] if isinstance(self.content, str) else self.content


@dataclass(frozen=True)
class Command:
    """A command line."""

    words: str
    level: int = 1


@dataclass(frozen=True)
class Link:
    """A page on the web."""

    title: str
    address: str


@dataclass(frozen=True)
class Title:
    """The title of what follows, apart from what is above."""

    text: str


@dataclass(frozen=True)
class Gap:
    """An empty line on a terminal, between what does not belong together; two are one."""


@dataclass(frozen=True)
class Facts:
    """What is known of one thing: names and values. A value without a name belongs to the one above."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Changes:
    """What something loses and gains, a text for each."""

    subject: str
    lost: Sequence[str]
    gained: Sequence[str]


class Column(NamedTuple):
    """A column; numbers stand to the right."""

    title: str
    right: bool = True


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: What it shows; empty: that is clear.
        columns: Its columns.
        rows: Cells by row; a table without rows is not shown.
        sums: How many rows at the end are sums of those above.
        notes: Sentences below it.
        narrow: Whether its columns must be close to each other to fit 80 characters.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    sums: int = 0
    notes: Sequence[str] = ()
    narrow: bool = False


@dataclass(frozen=True)
class Folded:
    """What not everybody reads: a page shows it when its summary is clicked on, a terminal below the summary."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Conclusion:
    """What must be read: the end of a report on a terminal, and its beginning on a page."""

    blocks: Sequence[Block]


Block = Line | Command | Link | Title | Gap | Facts | Finding | Changes | Table | Folded | Conclusion


def columns(*titles: str) -> list[Column]:
    """Return the columns of some titles; one that starts with ``>`` stands to the right."""
    return [Column(title.removeprefix(">"), title.startswith(">")) for title in titles]


def concluded(blocks: Iterable[Block], *, page: bool) -> list[Block]:
    """Return blocks in the order of a terminal, or of a page: there the last conclusion comes first."""
    parts = list(blocks)
    ends = [each for each in parts if isinstance(each, Conclusion)]
    rest = [each for each in parts if not isinstance(each, Conclusion)]
    of_ends = [block for each in (reversed(ends) if page else ends) for block in each.blocks]
    return [*of_ends, *rest] if page else [*rest, *of_ends]
