"""`status` on a deployment in an emulated account, for its tests."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import pytest
from rich.console import Console

from scripts.clock import Clock
from scripts.deployment import Deployment
from scripts.remote.head_node import Answer, HeadNode
from tests.command_line import ultracluster


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
        patch.setattr("scripts.deployment.Deployment", lambda *_: deployment)
        code = ultracluster("status", "trn1-16", "--output", "json")
    return code, json.loads(printed.getvalue())


def as_text(deployment: Deployment) -> str:
    """Return the text output."""
    console = Console(width=80, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scripts.deployment.Deployment", lambda *_: deployment)
        patch.setattr("scripts.terminal.console", lambda *_: console)
        ultracluster("status", "trn1-16")
    return cast(io.StringIO, console.file).getvalue()
