"""GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scripts.screen import Table


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows))


def of_table(shown: Table) -> str:
    """Return a table for people as one of Markdown, with the notes below it."""
    rows = [[escaped(cell) for cell in row] for row in shown.rows]
    titles = [" ".join(column.title.split()) for column in shown.columns]
    return "\n\n".join([table(titles, rows), *map(escaped, shown.notes)])


def page(title: str, tables: Iterable[Table], remarks: Iterable[str] = ()) -> str:
    """Return tables for people as Markdown, with a title, which is Markdown, and what else is to be known."""
    shown = (f"**{escaped(each.title)}**\n\n{of_table(each)}" for each in tables)
    return "\n\n".join([f"### {title}", *shown, *map(escaped, remarks)]) + "\n"


def folded(summary: str, text: str) -> str:
    """Return text that shows when its summary is clicked on."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def escaped(text: str) -> str:
    """Return text that appears in a cell as it is."""
    for character in ("\\", "|", "<", "*", "_", "`"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def blocks(name: str, value: Any) -> Iterator[str]:
    """Yield a value of JSON: its plain values, then a table or list for each of the others, unless it is empty.

    Args:
        name: What it is.
        value: An object, or a list that is not empty.
    """
    if isinstance(value, dict):
        plain = {key: each for key, each in value.items() if not _holds_more(each)}
        rows = [(_words(key), _cell(each)) for key, each in plain.items() if _cell(each)]
        if rows:
            yield table((name, ""), rows)
        for key, each in value.items():
            if key not in plain:
                yield from blocks(f"{name}, {_words(key)}" if name else _words(key).capitalize(), _as_list(each))
    elif isinstance(value[0], dict):
        keys = [key for key in dict.fromkeys(chain(*value)) if any(_cell(each.get(key)) for each in value)]
        cells = [[_cell(each.get(key)) for key in keys] for each in value]
        yield f"**{name}**\n\n{table([_words(key) for key in keys], cells)}"
    else:
        yield f"**{name}**\n\n" + "\n".join(f"- {_cell(each)}" for each in value)


def _holds_more(value: Any) -> bool:
    below = value.values() if isinstance(value, dict) else ()
    return (isinstance(value, list) and bool(value)) or any(isinstance(each, dict | list) for each in below)


def _as_list(value: Any) -> Any:
    """Return an object of objects of one kind as a list of them with their names."""
    if isinstance(value, dict) and all(isinstance(each, dict) for each in value.values()):
        return [{"name": key} | each for key, each in value.items()]
    return value


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_words(key)}: {_cell(each)}" for key, each in value.items() if _cell(each))
    if isinstance(value, list):
        return "; ".join(map(_cell, value))
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return escaped(str(round(value, 4) if isinstance(value, float) else value))


def _words(key: str) -> str:
    return escaped(key.replace("_", " "))
