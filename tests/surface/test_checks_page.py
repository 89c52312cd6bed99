"""docs/reference/preflight.md has a row for every check of preflight; `make snapshots` writes the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check.preflight.catalog import CATALOG

PAGE = Path(__file__).parents[2] / "docs/reference/preflight.md"
HEADING = "| id | checks | without it |\n|---|---|---|\n"


def test_the_page_has_every_check(pytestconfig: pytest.Config) -> None:
    rows = "".join(f"| `{check.id}` | {check.title} | {check.prevents} |\n" for check in CATALOG)
    if pytestconfig.getoption("update_snapshots"):
        before, table = PAGE.read_text(encoding="utf-8").split(HEADING)
        _, after = table.split("\n\n", 1)
        PAGE.write_text(f"{before}{HEADING}{rows}\n{after}", encoding="utf-8")
    _, table = PAGE.read_text(encoding="utf-8").split(HEADING)
    assert table.startswith(f"{rows}\n")
