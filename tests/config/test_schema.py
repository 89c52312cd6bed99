"""config/schema.json, by which editors complete and check a settings file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel

from config.settings import SCHEMA_PATH, Settings, json_schema, load
from tests.configurations import CONFIG, SHIPPED
from ultracluster.domain.spec import Change, Setting

FILES = [CONFIG / f"{name}.yaml" for name in SHIPPED]
SCHEMA = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_the_schema_is_current() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == json_schema(), "run `make snapshots`"


@each_file
def test_a_file_follows_the_schema_that_its_first_line_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={SCHEMA_PATH.name}"
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(text))] == []


def test_the_schema_refuses_what_the_models_refuse() -> None:
    content = yaml.safe_load(FILES[0].read_text(encoding="utf-8"))
    content |= {"account": 123456789012, "regoin": "us-west-2"}
    assert len(list(Draft202012Validator(SCHEMA).iter_errors(content))) == 2


LASTING = {Change.NEW_CLUSTER, Change.NEW_FILE_SYSTEM, Change.NEW_DEPLOYMENT}
SHOWN = {"capacity_gib", "compute_resources[0].instance_type", "emails"}
"""What a reader has to see beside choices that last: what most of the money goes to, and who gets alarms."""


def defaults(model: Any, place: str = "") -> Iterator[str]:
    """Yield the fields that a file gives the value that they have without it."""
    if isinstance(model, list):
        for index, item in enumerate(model):
            yield from defaults(item, f"{place}[{index}]")
    for name, value in model if isinstance(model, BaseModel) else ():
        field = type(model).model_fields[name]
        lasts = any(isinstance(each, Setting) and each.change in LASTING for each in field.metadata)
        is_said = name in model.model_fields_set and not isinstance(value, BaseModel)
        if is_said and value == field.get_default() and not lasts:
            yield f"{place}.{name}"
        yield from defaults(value, f"{place}.{name}")


@each_file
def test_a_file_repeats_no_default_but_of_what_lasts_or_a_reader_has_to_see(path: Path) -> None:
    assert [place for place in defaults(load(path)) if not place.endswith(tuple(SHOWN))] == []


@each_file
def test_a_file_fits_on_one_screen_and_names_the_reference(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 40
    assert "defaults: docs/reference/settings.md" in text


def test_each_setting_is_described() -> None:
    models = [Settings.model_json_schema(), *SCHEMA["$defs"].values()]
    bare = [
        f"{model['title']}.{name}"
        for model in models
        for name, field in model["properties"].items()
        if "description" not in field and "$ref" not in field
    ]
    assert bare == []
