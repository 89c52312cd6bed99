"""docs/preflight.md says of every check and of every scenario what the code says."""

from __future__ import annotations

from pathlib import Path

from emulator.scenarios import SCENARIOS
from scripts.preflight.catalog import CATALOG
from ultracluster.domain.validator_warnings import VALIDATORS

TEXT = (Path(__file__).parents[3] / "docs/preflight.md").read_text(encoding="utf-8")


def table(heading: str) -> list[str]:
    """Return the rows of the table with a heading."""
    lines = TEXT.splitlines()
    start = lines.index(heading) + 2
    end = next(number for number in range(start, len(lines) + 1) if not "\n".join(lines[number : number + 1]))
    return lines[start:end]


def test_every_check_is_described() -> None:
    assert table("| id | looks at | without it | rights |") == [
        f"| `{each.id}` | {each.title} | {each.prevents} | {', '.join(right.action for right in each.permissions)} |"
        for each in CATALOG
    ]


def test_every_warning_is_described() -> None:
    assert table("| validator | deployment | it says | what to do | errors | source |") == [
        f"| `{name}` | {row.effect} | {row.means} | {row.advice} | {'yes' if row.errors else 'no'} | {row.source} |"
        for name, row in VALIDATORS.items()
    ]


def test_every_scenario_is_described() -> None:
    assert table("| name | what is wrong | found by | settings |") == [
        f"| `{name}` | {each.what} | `{each.caught_by}` | {each.needs} |" for name, each in SCENARIOS.items()
    ]
