"""Every property that AWS's published schemas know is done, or refused by name."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator import resources
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.resources import MODELS, Context, Physical, ResourceError
from tests.emulator import properties as samples
from tests.emulator import specimens
from tests.emulator.stacks import Stacks
from toolchain import schemas
from toolchain.values import UnsupportedError

pytestmark = pytest.mark.slow

REGION = specimens.REGION


@pytest.fixture(scope="module")
def made(rehearsal_server: EmulatedAws) -> dict[str, tuple[dict[str, Any], Physical]]:
    """Evaluated properties and physical id of a resource of each type, in a stack."""
    rehearsal_server.reset()
    stacks = Stacks(rehearsal_server, REGION)
    of_all = specimens.resources(specimens.prepare(rehearsal_server))
    stacks.create("every", of_all, Capabilities=["CAPABILITY_NAMED_IAM"])
    pages = stacks.client.get_paginator("describe_stack_events").paginate(StackName="every")
    events = [event for page in pages for event in page["StackEvents"] if event["ResourceStatus"] == "CREATE_COMPLETE"]
    return {
        event["ResourceType"]: (
            json.loads(event.get("ResourceProperties", "{}")),
            Physical(event["PhysicalResourceId"]),
        )
        for event in events
        if event["LogicalResourceId"] in of_all
    }


@pytest.fixture
def account(rehearsal_server: EmulatedAws) -> Iterator[EmulatedAws]:
    with rehearsal_server.clone() as clone:
        yield clone


class Attempts:
    """Creations of one type, each with one property more.

    Attributes:
        wrong: What went wrong without being refused, or was refused without a name.
    """

    def __init__(self, aws: EmulatedAws, resource_type: str) -> None:
        self._aws = aws
        self._type = resource_type
        self.wrong: list[str] = []
        self._names = {name for path in samples.paths(resource_type) for name in path if name != "*"}
        self._names |= {f"{name[0].lower()}{name[1:]}" for name in self._names}

    def context(self) -> Context:
        return Context(
            client=lambda service: self._aws.client(service, REGION),
            account=ACCOUNT,
            region=REGION,
            partition="aws",
            stack_id=f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/Stack/0",
            logical_id="R",
            name=f"Stack-R-{uuid.uuid4().hex[:12].upper()}",
            resource_type=self._type,
        )

    def make(self, path: samples.Path, properties: dict[str, Any]) -> None:
        """Make a resource, take the property away, and delete it."""
        context = self.context()
        if not self._fits(properties):
            return
        complete = schemas.coerced(self._type, properties)
        physical: list[Physical] = []

        def create() -> None:
            physical.append(resources.create(self._type, context, complete))

        if self._is_done("create", path, create):
            without = {name: value for name, value in complete.items() if name != path[0]}
            if self._fits(without) and not schemas.needs_replacement(self._type, complete, without):
                again = replace(context, previous=complete)
                self._is_done("update", path, lambda: resources.update(self._type, again, physical[0], without))
            self._is_done("delete", path, lambda: resources.delete(self._type, context, physical[0], complete))

    def _fits(self, properties: dict[str, Any]) -> bool:
        try:
            schemas.check(self._type, REGION, properties, "R")
        except schemas.SchemaError:
            return False
        return True

    def _is_done(self, verb: str, path: samples.Path, act: Any) -> bool:
        where = f"{self._type} {'/'.join(path)}: {verb}"
        try:
            act()
        except (UnsupportedError, ResourceError) as refusal:
            if not any(name in str(refusal) for name in self._names):
                self.wrong.append(f"{where}: refused without a name: {refusal}")
        except ClientError as refusal:
            status = refusal.response["ResponseMetadata"]["HTTPStatusCode"]
            if status >= 500 or "cannot answer this request" in str(refusal):
                self.wrong.append(f"{where}: {refusal}")
        except Exception as error:
            self.wrong.append(f"{where}: {type(error).__name__}: {error}")
        else:
            return True
        return False


@pytest.mark.parametrize("resource_type", sorted(each for each in MODELS if not each.startswith("Custom::")))
def test_every_property_is_done_or_refused_by_name(account: EmulatedAws, made: Any, resource_type: str) -> None:
    given, name = made[resource_type]
    attempts = Attempts(account, resource_type)
    with suppress(ClientError, ResourceError):  # where there can be only one
        resources.delete(resource_type, attempts.context(), name, given)
    for path in samples.paths(resource_type):
        attempts.make(path, samples.with_sample(resource_type, given, path))
    assert not attempts.wrong
