"""`status` on a deployment in an emulated account, for its tests."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import pytest
from rich.console import Console

from scripts.clock import Clock
from scripts.commands import status as command
from scripts.deployment import Deployment
from scripts.remote.head_node import Answer, HeadNode


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass, and ask the head node until it has answered."""
    answer = HeadNode.answer

    def at_last(head_node: HeadNode, command_id: str) -> Answer:
        while (result := answer(head_node, command_id)) is None:
            pass
        return result

    monkeypatch.setattr(HeadNode, "answer", at_last)
    monkeypatch.setattr(Clock, "sleep", lambda *_: None)


def as_json(deployment: Deployment) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", printed := io.StringIO())
        given = command.arguments().parse_args(["trn1-16", "--json"])
        code = command.program(deployment, given, Console(quiet=True))
    return code, json.loads(printed.getvalue())


def as_text(deployment: Deployment) -> str:
    """Return the text output."""
    console = Console(width=80, file=io.StringIO())
    command.program(deployment, command.arguments().parse_args(["trn1-16"]), console)
    return cast(io.StringIO, console.file).getvalue()
