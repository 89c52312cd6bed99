"""config/schema.json, by which editors complete and check a settings file."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel

from config.settings import SCHEMA_PATH, Settings, json_schema, load
from tests.configurations import CONFIG, SHIPPED

FILES = [CONFIG / f"{name}.yaml" for name in SHIPPED]
SCHEMA = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_the_schema_is_current() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == json_schema(), "run `make schema`"


@each_file
def test_a_file_follows_the_schema_that_its_first_line_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={SCHEMA_PATH.name}"
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(text))] == []


def test_the_schema_refuses_what_the_models_refuse() -> None:
    content = yaml.safe_load(FILES[0].read_text(encoding="utf-8"))
    content |= {"account": 123456789012, "regoin": "us-west-2"}
    assert len(list(Draft202012Validator(SCHEMA).iter_errors(content))) == 2


def unsaid(model: Any, place: str = "") -> list[str]:
    """Return the fields that a file leaves to their defaults."""
    if isinstance(model, list | tuple):
        return [field for index, item in enumerate(model) for field in unsaid(item, f"{place}[{index}]")]
    if not isinstance(model, BaseModel):
        return []
    missing = [f"{place}.{name}" for name in type(model).model_fields if name not in model.model_fields_set]
    return missing + [field for name, value in model for field in unsaid(value, f"{place}.{name}")]


@each_file
def test_a_file_leaves_no_default_unsaid(path: Path) -> None:
    assert unsaid(load(path)) == []


def test_each_setting_is_described() -> None:
    models = [Settings.model_json_schema(), *SCHEMA["$defs"].values()]
    bare = [
        f"{model['title']}.{name}"
        for model in models
        for name, field in model["properties"].items()
        if "description" not in field and "$ref" not in field
    ]
    assert bare == []
