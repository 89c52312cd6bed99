"""Drift of stacks: what the APIs say exists, beside what the template asked for.

Only types of `state.STATES` are looked at, and of them what is described there; AWS compares more properties, and a few
types more. As on AWS, what the template does not say is not compared, and a type that is not looked at is not in the
answer. https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from emulator.cloudformation.stacks import Stack, StackResource
from emulator.resources.model import Context
from emulator.resources.state import STATES


def detect(stack: Stack, client: Callable[[str], Any]) -> list[dict[str, Any]]:
    """Return the drift of each resource that can be looked at, as DescribeStackResourceDrifts gives it."""
    resources = [each for each in stack.resources.values() if each.type in STATES and each.physical_id]
    return [_drift(stack, each, client) for each in resources]


def _drift(stack: Stack, resource: StackResource, client: Callable[[str], Any]) -> dict[str, Any]:
    assert resource.physical is not None  # noqa: S101 - only what exists is looked at
    siblings = {each.physical_id for each in stack.resources.values()}
    place = (stack.account, stack.region, stack.partition, stack.id)
    context = Context(client, *place, resource.logical_id, resource.name, siblings=siblings)
    actual = STATES[resource.type].read(context, resource.physical, dict(resource.properties))
    differences = [
        difference
        for name, value in (actual or {}).items()
        if name in resource.properties
        for difference in _differences(f"/{name}", resource.properties[name], value)
    ]
    return {
        "StackId": stack.id,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.type,
        "StackResourceDriftStatus": "DELETED" if actual is None else "MODIFIED" if differences else "IN_SYNC",
        "PropertyDifferences": differences,
        "Timestamp": datetime.now(UTC),
    }


def _differences(path: str, expected: Any, actual: Any) -> Iterator[dict[str, str]]:
    """Yield what differs; the order of a list says nothing, nor does a member that is not expected."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name in expected.keys() & actual.keys():
            yield from _differences(f"{path}/{name}", expected[name], actual[name])
    elif isinstance(expected, list) and isinstance(actual, list):
        wanted, existing = [{_key(each): each for each in items} for items in (expected, actual)]
        for key in wanted.keys() - existing.keys():
            yield _difference("REMOVE", f"{path}/{expected.index(wanted[key])}", wanted[key], None)
        for key in existing.keys() - wanted.keys():
            yield _difference("ADD", f"{path}/{actual.index(existing[key])}", None, existing[key])
    elif _text(expected) != _text(actual):
        yield _difference("NOT_EQUAL", path, expected, actual)


def _text(value: Any) -> str:
    """Return a scalar as it is compared: CloudFormation takes text for numbers and Booleans, and JSON for objects."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, default=str).lower()


def _difference(kind: str, path: str, expected: Any, actual: Any) -> dict[str, str]:
    texts = [value if isinstance(value, str) else json.dumps(value, default=str) for value in (expected, actual)]
    return {"PropertyPath": path, "DifferenceType": kind, "ExpectedValue": texts[0], "ActualValue": texts[1]}


def _key(item: Any) -> str:
    """Return what tells items of lists apart: of a tag or a rule all but its description."""
    if not isinstance(item, Mapping):
        return str(item)
    return json.dumps({name: str(value) for name, value in item.items() if name != "Description"}, sort_keys=True)
