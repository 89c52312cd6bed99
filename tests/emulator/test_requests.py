"""Requests that are wrong, of all actions that are served here in place of moto: each is its caller's fault."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape
from moto.core.responses import BaseResponse

import emulator
from emulator.aws import EmulatedAws
from tests.emulator.account import REGION

WRONG: Final = {"structure": "x", "list": "x", "map": "x", "string": {"x": 1}}
"""A value of another kind, by the kind that is expected, in JSON; in a form all is text, and only numbers are wrong."""


def served_here() -> dict[str, set[str]]:
    """Return the names of methods that serve actions, in place of moto's, by service."""
    for module in pkgutil.walk_packages(emulator.__path__, "emulator."):
        if module.name.split(".")[1] in ("cloudformation", "moto_patches", "functions"):
            importlib.import_module(module.name)
    classes = list(BaseResponse.__subclasses__())
    found: dict[str, set[str]] = {}
    for each in classes:
        classes.extend(each.__subclasses__())
        if each.__module__.startswith("emulator."):
            found.setdefault(each().boto3_service_name, set()).update(vars(each))
    return found


def value_of(shape: Shape) -> Any:
    """Return a value that a shape allows, with what it has to have alone."""
    match shape:
        case StructureShape():
            return {name: value_of(shape.members[name]) for name in shape.required_members}
        case ListShape():
            return [value_of(shape.member)]
        case MapShape():
            return {value_of(shape.key): value_of(shape.value)}
    enum = shape.metadata.get("enum")
    length = max(int(shape.metadata.get("min", 1)), 1)
    values = {"boolean": True, "integer": length, "long": length, "float": 1.0, "double": 1.0, "blob": b"x"}
    return (
        (enum or [values.get(shape.type_name, "x" * length)])[0]
        if shape.type_name != "timestamp"
        else datetime.now(UTC)
    )


class Sender:
    """Sends the least request of an action, with one member changed on its way."""

    def __init__(self, aws: EmulatedAws, service: str) -> None:
        self.client = aws.client(service, REGION)
        self.model = self.client.meta.service_model
        self._change: tuple[Shape, str, Any] | None = None
        self.client.meta.events.register("before-call", self._alter)

    def answer(
        self, operation: OperationModel, change: tuple[Shape, str, Any] | None = None, more: str = ""
    ) -> tuple[int, str, str]:
        """Return status, code and message; ``change`` is a member, its name, and what it is now: None, not there.

        With ``more``, the request has this member, too.
        """
        self._change = change
        shape = operation.input_shape
        request = value_of(shape) if shape else {}
        if shape and more:
            request[more] = value_of(shape.members[more])
        try:
            getattr(self.client, xform_name(operation.name))(**request)
        except ClientError as error:
            said = error.response["Error"]
            return error.response["ResponseMetadata"]["HTTPStatusCode"], said["Code"], said.get("Message", "")
        return 200, "", ""

    def _alter(self, params: dict[str, Any], **_: object) -> None:
        if self._change is None:
            return
        member, name, value = self._change
        body = params["body"]
        name = str(member.serialization.get("queryName") or member.serialization.get("name", name))
        if isinstance(body, dict):
            name = name[0].upper() + name[1:]
            for key in [key for key in body if key.split(".")[0] == name]:
                del body[key]
            if value is not None:
                body[name] = value
        else:
            said = {**json.loads(body or b"{}"), name: value}
            params["body"] = json.dumps({key: each for key, each in said.items() if each is not None}).encode()


def wrong_requests(operation: OperationModel) -> Iterator[tuple[Shape, str, Any]]:
    """Yield changes of members that an action has to have: it is not there, or it is of another kind."""
    shape, protocol = operation.input_shape, operation.service_model.resolved_protocol
    for name in shape.required_members if shape else ():
        member = shape.members[name]
        if not member.serialization.get("location"):
            yield member, name, None
            if member.type_name in ("integer", "long", "float", "double"):
                yield member, name, "x"
            elif protocol.endswith("json") and member.type_name in WRONG:
                yield member, name, WRONG[member.type_name]


SERVED = served_here()


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVED)
def test_what_an_action_needs_is_demanded_and_nothing_ends_in_a_traceback(
    service: str, rehearsal_server: EmulatedAws
) -> None:
    """Also by the least request that the model of an action allows, with names of nothing, and one member more."""
    sender = Sender(rehearsal_server, service)
    failed = []
    for name in sender.model.operation_names:
        operation = sender.model.operation_model(name)
        if xform_name(name) not in SERVED[service]:
            continue
        for change in wrong_requests(operation):
            status, code, message = sender.answer(operation, change)
            if not 400 <= status < 500:
                failed.append(f"{name}, {change[1]} {change[2]!r}: {status} {code} {message}")
        shape = operation.input_shape
        for optional in ("", *(shape.members.keys() - set(shape.required_members) - {"DryRun"} if shape else ())):
            status, code, message = sender.answer(operation, more=optional)
            if status >= 500 and not message.startswith("Not emulated"):
                failed.append(f"{name} {optional}: {status} {code} {message}")
    assert not failed, "\n".join(failed)
