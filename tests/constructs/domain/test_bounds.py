"""Every number, list and mapping of the models has bounds, so that no value makes a rule fail or take long."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

import ultracluster.domain
from config import pipeline, settings
from ultracluster.domain.spec import Spec
from ultracluster.domain.violations import MAX_LINE, MAX_REPORTED, Violation, capped, dotted, listed, shape_violations

for module in pkgutil.iter_modules(ultracluster.domain.__path__):
    importlib.import_module(f"ultracluster.domain.{module.name}")

BOUNDS = {
    "integer": ({"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}),
    "number": ({"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}),
    "array": ({"maxItems"},),
    "object": ({"maxProperties"},),
}
CHOICES = {"enum", "const"}


def subclasses(cls: type[Spec]) -> Iterator[type[Spec]]:
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


MODELS = sorted(
    (each for each in set(subclasses(Spec)) if each.__module__.startswith(("config.", "ultracluster.domain."))),
    key=lambda model: (model.__module__, model.__name__),
)


def kind(node: dict[str, Any]) -> str:
    """Return the type of a value; a property may have the name `type`, and a list of people may be a name."""
    named = node.get("type")
    first = named[0] if isinstance(named, list) else named
    return first if isinstance(first, str) else ""


def values(node: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Yield the places of a JSON schema that say the type of a value, but for those of models."""
    if isinstance(node, dict):
        if kind(node) in BOUNDS and not CHOICES & node.keys() and node.get("additionalProperties") is not False:
            yield place, node
        for key, child in node.items():
            yield from values(child, (*place, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from values(child, (*place, index))


def unbounded(schema: dict[str, Any]) -> list[tuple[str | int, ...]]:
    return [place for place, node in values(schema) if not all(keys & node.keys() for keys in BOUNDS[kind(node)])]


def test_the_models_are_all() -> None:
    assert {settings.Settings, pipeline.Pipeline} <= {*MODELS}
    assert len(MODELS) > 30


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_values_have_bounds(model: type[Spec]) -> None:
    assert unbounded(model.model_json_schema()) == []


@cache
def numbers() -> list[tuple[type[Spec], str]]:
    """Return the fields that are numbers or null."""
    return [
        (model, name)
        for model in MODELS
        for name, field in model.model_fields.items()
        if (kinds := {kind(node) for _, node in values(TypeAdapter(field.rebuild_annotation()).json_schema())})
        and kinds <= {"integer", "number"}
    ]


HUGE = (10**400, -(10**400), 10**5000, -(10**5000), 2**63, -(2**63) - 1, float("nan"), float("inf"), -float("inf"))


@pytest.mark.parametrize("value", HUGE, ids=range(len(HUGE)))
def test_what_is_out_of_bounds_is_refused_with_what_is_allowed(value: float) -> None:
    """By numbers of all models."""
    assert len(numbers()) > 20
    for model, name in numbers():
        with pytest.raises(ValidationError) as error:
            model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value)
        for each in shape_violations(error.value):
            got, _, allowed = str(each).partition("; allowed: ")
            assert allowed
            assert len(got) < 300


def test_messages_are_cut() -> None:
    place = ("tags", "\x1b[31m\n" + "k" * 300, "")
    assert dotted(place) == rf"tags.\x1b[31m\n{'k' * 94}....''"
    text = str(Violation(place, "x" * 10**6, "y\n" * 10**6, "\u202ez"))
    assert text.isprintable()
    assert len(text) < 2 * MAX_LINE
    names = [f"n{number}" for number in range(40)]
    assert listed(names, "none").endswith("n28 or n29 or 10 more")
    assert (listed(names[:2], "none"), listed([], "none")) == ("n0 or n1", "none")


def test_a_message_says_how_much_of_it_is_left_out() -> None:
    many = "\n".join(map(str, range(MAX_REPORTED + 5)))
    assert capped(many).splitlines()[-2:] == [str(MAX_REPORTED - 1), "... and 5 more"]
    assert capped("a\nb", 7) == "a\nb\n... and 7 more"
    assert capped("a\nb") == "a\nb"
    long = capped("\n".join(["\U0001f600" * MAX_LINE] * 10))
    assert long.endswith("... and 9 more") or long.endswith("... and 8 more")
    assert len(long.encode()) < 20_000
