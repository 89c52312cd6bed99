"""GitHub's Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, assert_never
from urllib.parse import quote

from scripts.core.findings import Finding
from scripts.core.report import (
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
    concluded,
    tone_of,
)

_BOLD = ("bad", "good", "strong")
"""Tones of what is bold."""
_OF_ADDRESSES: Final = "!#$%&'*+,/:;=?@[]~"
"""What stays as it is in an address, which no bracket ends."""


def of_blocks(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield blocks as blocks of Markdown, the conclusions first, without empty ones; findings are one table."""
    shown = (each for each in concluded(blocks, page=True) if not isinstance(each, Gap))
    for kind, group in groupby(shown, type):
        if kind is Finding:
            yield _findings([each for each in group if isinstance(each, Finding)])
        elif kind is Changes:
            yield _differences([each for each in group if isinstance(each, Changes)])
        else:
            for each in group:
                yield from _of_block(each)


def _of_block(block: Block) -> Iterator[str]:
    match block:
        case Line():
            text = " ".join("".join(map(_of_part, block.parts)).split())
            if text:
                yield f"- {_paragraph(text)}" if block.level or block.item else _paragraph(text)
        case Command():
            yield f"- {code(block.words)}" if block.level else code(block.words)
        case Link():
            yield f"- [{escaped(block.title)}]({quote(block.address, safe=_OF_ADDRESSES)})"
        case Title():
            yield _bold(escaped(block.text))
        case Facts():
            yield table(
                ("", ""), [(_bold(escaped(name)) if name else "", _of_cell(value)) for name, value in block.rows]
            )
        case Table():
            if block.rows:
                yield from filter(None, (_bold(escaped(block.title)), of_table(block)))
        case Folded():
            yield folded(html.escape(block.summary), joined(of_blocks(block.blocks)))
        case Gap() | Finding() | Changes() | Conclusion():
            raise TypeError(block)
        case _:
            assert_never(block)


def _findings(findings: Sequence[Finding]) -> str:
    rows = [
        (
            each.status,
            escaped(each.text),
            " ".join(filter(None, (escaped(each.hint), code(each.command).replace("|", "\\|")))),
        )
        for each in findings
    ]
    return table(("", "What", "What helps"), rows)


def _differences(changes: Iterable[Changes]) -> str:
    lines = [
        line
        for each in changes
        for line in (f"# {each.subject}", *(f"- {text}" for text in each.lost), *(f"+ {text}" for text in each.gained))
    ]
    return "\n".join(["```diff", *(" ".join(line.splitlines()) for line in lines), "```"])


def joined(blocks: Iterable[str]) -> str:
    """Return blocks of Markdown as one text."""
    text = last = ""
    for each in blocks:
        text, last = f"{text}{between(last, each) if last else ''}{each}", each
    return text


def between(before: str, after: str) -> str:
    """Return what stands between two blocks of Markdown: items of a list are next to each other."""
    return "\n" if before.startswith("- ") and after.startswith("- ") else "\n\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows))


def of_table(shown: Table) -> str:
    """Return a table for people as one of Markdown, with the notes below it."""
    rows = [list(map(_of_cell, row)) for row in shown.rows]
    titles = [escaped(column.title) for column in shown.columns]
    return "\n\n".join([table(titles, rows), *(_paragraph(escaped(note)) for note in shown.notes)])


def folded(summary: str, text: str) -> str:
    """Return text that shows when its summary is clicked on."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def code(text: str) -> str:
    """Return text as code, on one line; nothing of nothing."""
    text = " ".join(text.split())
    longest = max(map(len, re.findall("`+", text)), default=0)
    space = " " if longest else ""
    return f"{'`' * (longest + 1)}{space}{text}{space}{'`' * (longest + 1)}" if text else ""


def escaped(text: str) -> str:
    """Return text that appears in a cell as it is."""
    return " ".join(_escaped(text).split())


def _escaped(text: str) -> str:
    for character in ("\\", "|", "<", "*", "_", "`", "[", "]", "~", "&"):
        text = text.replace(character, f"\\{character}")
    return text


def _paragraph(text: str) -> str:
    """Return escaped text that starts neither a heading, a list, a quotation nor a rule."""
    return re.sub(r"^(\d{0,9})(?=[-+>#=.):])", r"\1\\", text)


def _of_cell(text: str) -> str:
    return " ".join(_of_part(text).split())


def _of_part(text: str) -> str:
    """Return a part of a line with the space around it."""
    if tone_of(text) not in _BOLD or not text.strip():
        return _escaped(text)
    start, _, end = text.partition(text.strip())
    return f"{start}{_bold(escaped(text))}{end}"


def _bold(text: str) -> str:
    return f"**{text}**" if text else ""
