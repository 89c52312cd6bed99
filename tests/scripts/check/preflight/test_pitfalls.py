"""docs/reference/pitfalls.md: what it says to be caught is caught by something that exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.settings import Settings
from scripts.check.preflight.catalog import CATALOG

ROOT = Path(__file__).parents[4]
NUMBER = 26


def rows() -> Iterator[tuple[int, str, list[str]]]:
    """Yield number, whether it can be prevented, and what catches it."""
    for line in (ROOT / "docs/reference/pitfalls.md").read_text(encoding="utf-8").splitlines():
        if re.match(r"\| \d", line):
            number, _, evidence, before, caught_by = (cell.strip() for cell in line.strip("|").split(" | "))
            assert "https://github.com/" in evidence
            yield int(number), before, re.findall(r"`([^`]+)`", caught_by)


PITFALLS = list(rows())
NAMED = sorted({each for _, _, caught_by in PITFALLS for each in caught_by})


def test_the_table_is_whole() -> None:
    assert [number for number, _, _ in PITFALLS] == list(range(1, NUMBER + 1))
    assert {before for _, before, _ in PITFALLS} == {"yes", "partly", "no"}
    assert [number for number, before, caught_by in PITFALLS if before != "no" and not caught_by] == []


@pytest.mark.parametrize("name", NAMED)
def test_what_catches_it_exists(name: str) -> None:
    kind, _, rest = name.partition(": ")
    if kind == "preflight":
        assert rest in {each.id for each in CATALOG}
    elif kind == "settings":
        node = Settings.model_json_schema()
        definitions = node["$defs"]
        for key in re.sub(r"\[0\]", "", rest).split("."):
            property_ = node["properties"][key]
            references = re.findall(r"#/\$defs/(\w+)", str(property_))
            node = definitions[references[0]] if references else property_
    else:
        path, _, test = name.partition("::")
        assert (f"def {test}(" if test else "def test_") in (ROOT / path).read_text(encoding="utf-8")
