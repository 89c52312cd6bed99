"""Helpers of the tests of what ends a deployment."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts.operations.clock import Clock

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
