"""docs/preflight.md has a row for every check."""

from __future__ import annotations

from pathlib import Path

from scripts.preflight.catalog import CATALOG

PAGE = Path(__file__).parents[3] / "docs/preflight.md"


def test_every_check_is_described() -> None:
    _, table = PAGE.read_text(encoding="utf-8").split("| id | looks at | without it |\n|---|---|---|\n")
    rows = "".join(f"| `{check.id}` | {check.title} | {check.prevents} |\n" for check in CATALOG)
    assert table.startswith(f"{rows}\n")
