"""Helpers of the tests of what ends a deployment."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from config.settings import load
from rehearsal.aws import EmulatedAws
from scripts.deployment import Deployment
from scripts.operations.clock import Clock
from scripts.operations.command import CONFIG
from scripts.operations.destruction import stacks as destruction_stacks

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
_READING = ("Describe", "Get", "Head", "List", "SendCommand")  # the last asks Slurm for its jobs


class FastClock(Clock):
    """A clock that a moment's sleep moves on as far as wanted; things in the emulated AWS take about as long."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def sleep(self, seconds: float) -> None:
        time.sleep(0.1)
        self._ahead += timedelta(seconds=seconds)


class KilledError(BaseException):
    """The program was killed."""


@contextmanager
def killed_after_each_change(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Kill this process's work after each call that changes something in AWS; yield the names of these calls."""
    made: list[str] = []
    call = BaseClient._make_api_call

    def deadly(client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
        answer = call(client, operation, parameters)
        if not operation.startswith(_READING):
            made.append(operation)
            raise KilledError(operation)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", deadly)
        yield made


def validate(program: str, text: str) -> dict[str, Any]:
    """Return a document after it was compared with its schema."""
    schema = json.loads((SCHEMAS / f"{program}.json").read_text(encoding="utf-8"))
    document: dict[str, Any] = json.loads(text)
    Draft202012Validator(schema).validate(document)
    return document


class Account:
    """An account in which a test makes the stacks of a deployment that it needs.

    Attributes:
        deployment: config/trn1-16.yaml.
        said: What a destruction told.
    """

    def __init__(self, aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in aws.settings.items():
            monkeypatch.setenv(name, value)
        self._aws = aws
        self.deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
        self.said: list[str] = []

    def client(self, service: str) -> Any:
        """Return a client of the deployment's Region."""
        return self._aws.client(service, self.deployment.settings.region)

    def begin(self, name: str, *, protected: bool = False, description: str = "-", **resources: Any) -> None:
        """Let a stack be made."""
        self.client("cloudformation").create_stack(
            StackName=name,
            TemplateBody=json.dumps({"Description": description, "Resources": resources}),
            EnableTerminationProtection=protected,
        )

    def create(self, name: str, *, protected: bool = False, description: str = "-", **resources: Any) -> dict[str, str]:
        """Make a stack, and return the physical ids of its resources."""
        self.begin(name, protected=protected, description=description, **resources)
        waiter = self.client("cloudformation").get_waiter("stack_create_complete")
        waiter.wait(StackName=name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 600})
        self.deployment.account.forget()
        return self.deployment.physical_ids(name)

    def delete(self, name: str, clock: FastClock, *, unprotect: bool = False) -> None:
        """Delete a stack as a destruction does it."""
        destruction_stacks.delete(self.deployment, name, clock=clock, say=self.said.append, unprotect=unprotect)
