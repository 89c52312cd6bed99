"""Rows of the table of resource types, without an emulated AWS: botocore checks what they call."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ParamValidationError

from emulator.resources import MODELS, Context, Physical
from emulator.resources.api import Api
from tests.emulator.account import tags

ROWS = {name: model for name, model in MODELS.items() if isinstance(model, Api)}
REF = "reference-that-is-long-enough-for-every-action"


class Client:
    """A client of an API that answers as it is told, and notes the calls."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._answers = answers

    def __getattr__(self, action: str) -> Any:
        def call(**request: Any) -> dict[str, Any]:
            self.calls.append((action, request))
            return self._answers.get(action, {})

        return call


def _context(client: Any, **members: Any) -> Context:
    name = {"stack_id": "arn:aws:cloudformation:us-west-2:123456789012:stack/Stack/0", "name": "Stack-Thing-1A2B"}
    where = {"account": "123456789012", "region": "us-west-2", "partition": "aws", "logical_id": "Thing"}
    return Context(client=lambda service: client, **{**name, **where, **members})


def _checking_client(service: str) -> Any:
    """Return a client of boto3 that sends nothing: the actions and parameters are those of the API."""
    client = boto3.client(service, "us-west-2", aws_access_key_id="x", aws_secret_access_key="x")  # noqa: S106
    client.meta.events.register("before-call", lambda **_: (SimpleNamespace(status_code=200), {}))
    return client


@pytest.mark.parametrize("resource_type", ROWS)
def test_a_row_names_actions_and_parameters_that_the_api_has(resource_type: str) -> None:
    row = replace(ROWS[resource_type], configuration=None)
    client = _checking_client(row.service)
    context = _context(client)
    physical = Physical(REF, dict.fromkeys(row.attributes, REF))
    if not callable(row.deletion):
        row.delete(context, physical, {})
    if isinstance(row.modification, str) and row.modification:
        with pytest.raises(ParamValidationError, match='Unknown parameter in input: "Nothing"'):
            row.update(context, physical, {"Nothing": 1}, {"Nothing"})
    row = replace(row, modification="")
    if row.tags in (row.mutable or ()):
        previous = {row.tags: tags(Old="a")}
        row.update(replace(context, previous=previous), physical, {row.tags: tags(New="b")}, {row.tags})
    if not callable(row.creation):
        row = replace(row, name=row.name if row.parameters is dict else None, parameters=dict)
        properties = {row.tags: tags(New="b")} if row.tags in (row.mutable or ()) else {}
        assert "Unknown parameter" not in _complaint(row, context, properties)


def _complaint(row: Api, context: Context, properties: dict[str, Any]) -> str:
    """Return what is wrong with a creation: properties are missing, or what Ref gives, as the answer is empty."""
    try:
        row.create(context, properties)
    except (ParamValidationError, KeyError) as error:
        return str(error)
    return ""


def test_ref_and_attributes_are_the_outer_members_of_the_answer() -> None:
    row = Api("elbv2", "listener", "Arn", {"Port": "Port", "Absent": "Absent"}, name=("Name", 12))
    client = Client(create_listener={"Rule": {"Arn": "inner"}, "Listeners": [{"Actions": {"Port": 1}, "Arn": "a"}]})
    made = row.create(_context(client), {"Port": 22})
    assert made == Physical("inner", {"Port": 1})  # at the same depth, the first; the answer before the parameters
    assert client.calls == [("create_listener", {"Name": "Stack-T-1A2B", "Port": 22})]


def test_what_cannot_be_configured_is_deleted() -> None:
    def fail(*_: object) -> None:
        raise ValueError("no")

    client = Client(create_thing={"ThingId": "thing-1"})
    with pytest.raises(ValueError, match="no"):
        Api("x", "thing", configuration=fail).create(_context(client), {})
    assert client.calls == [("create_thing", {}), ("delete_thing", {"ThingId": "thing-1"})]


def test_an_update_takes_what_has_changed_and_keeps_the_attributes() -> None:
    client = Client()
    row = Api("x", "thing", id="ThingName", modification="update_thing")
    physical = Physical("ref", {"ThingName": "name", "Arn": "arn"})
    assert row.update(_context(client), physical, {"A": 1, "B": 2}, {"B", "Gone"}) == physical
    assert client.calls == [("update_thing", {"ThingName": "name", "B": 2})]
