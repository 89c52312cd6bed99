"""The reference pages are those of commands, settings and JSON output: what their diff removes breaks users.

`make snapshots` rewrites them. Who breaks users on purpose tells it in CHANGELOG.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from scripts.upkeep.reference import PRINTS_THE_SAME, commands_page, schemas_by_command
from scripts.upkeep.settings_reference import settings_page
from tests.command_line import leaves

ROOT = Path(__file__).parents[2]


def test_every_command_with_json_has_a_schema() -> None:
    formats = {name: {each.name: each.type for each in command.params}.get("output") for name, command in leaves()}
    with_json = {name for name, kind in formats.items() if isinstance(kind, click.Choice) and "json" in kind.choices}
    described = schemas_by_command().keys() | PRINTS_THE_SAME.keys()
    assert {name for name in with_json if not {name, name.partition(" ")[0]} & described} == set()


def test_reference_pages_are_those_of_commands_and_settings(pytestconfig: pytest.Config) -> None:
    pages = {ROOT / "docs/reference/commands.md": commands_page()}
    pages[ROOT / "docs/reference/settings.md"] = settings_page()
    for name, schemas in schemas_by_command().items():
        text = json.dumps(schemas[0] if len(schemas) == 1 else {"anyOf": schemas}, indent=2) + "\n"
        pages[ROOT / f"docs/reference/schemas/{name.replace(' ', '-')}.json"] = text
    if pytestconfig.getoption("update_snapshots"):
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    stale = [path.name for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    assert stale == [], "run `make snapshots`"
    assert {path.name for path in (ROOT / "docs/reference/schemas").glob("*")} == {
        path.name for path in pages if path.suffix == ".json"
    }
