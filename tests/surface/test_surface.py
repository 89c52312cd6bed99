"""The reference pages are those of commands, settings and JSON output: what their diff removes breaks users.

`make snapshots` rewrites them. Who breaks users on purpose tells it in CHANGELOG.md.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def keys(name: str, schema: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the keys of a model and of those within it: the model, the key and its description."""
    for key, value in schema.get("properties", {}).items():
        yield name, key, value.get("description", "")
    for below, definition in schema.get("$defs", {}).items():
        yield from keys(below, definition)


def test_one_key_names_the_deployment() -> None:
    rows = [
        (command, *row)
        for command, schemas in schemas_by_command().items()
        for each in schemas
        for row in keys("", each)
    ]
    assert {text for _, _, key, text in rows if key == "deployment"} == {
        "Name of the settings file in config/, without .yaml."
    }
    assert {row[:3] for row in rows if row[2] in ("env", "environment")} == {("status", "Software", "environment")}, (
        "that of Python, in which jobs run"
    )
    assert {command for command, model, key, _ in rows if (model, key) == ("", "name")} == {"status"}, "of the settings"


def test_the_key_has_the_name_of_the_file() -> None:
    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "scripts").rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    values = {ast.unparse(each.value) for call in calls for each in call.keywords if each.arg == "deployment"}
    assert {each for each in values if each.endswith("settings.name")} == set(), (
        "`name` in a file need not be the file's"
    )
    assert "deployment.name" in values


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
