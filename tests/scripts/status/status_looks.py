"""Looks at a deployment, for the tests of `make status`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from rich.console import Console

from scripts.clock import Clock
from scripts.commands import status as command
from scripts.deployment import Deployment
from scripts.remote.head_node import Answer, HeadNode
from tests.scripts.preflight.answers import answering

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schemas/status.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass, and ask the head node until it has answered."""
    answer = HeadNode.answer

    def at_last(head_node: HeadNode, command_id: str) -> Answer:
        while (found := answer(head_node, command_id)) is None:
            pass
        return found

    monkeypatch.setattr(HeadNode, "answer", at_last)
    monkeypatch.setattr(Clock, "sleep", lambda *_: None)


def look(deployment: Deployment) -> tuple[int, dict[str, Any]]:
    """Return exit code and JSON document, which is as the schema says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", printed := io.StringIO())
        given = command.arguments().parse_args(["trn1-16", "--json"])
        code = command.program(deployment, given, Console(quiet=True))
    document = json.loads(printed.getvalue())
    Draft202012Validator(SCHEMA).validate(document)
    return code, document


def screen(deployment: Deployment) -> str:
    console = Console(width=80, file=io.StringIO())
    command.program(deployment, command.arguments().parse_args(["trn1-16"]), console)
    return cast(io.StringIO, console.file).getvalue()


def stack_status(status: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Let the cluster's two stacks have a status."""

    def alter(answer: Any) -> None:
        for each in answer["Stacks"]:
            if each["StackName"] in ("trn1-16", "trn1-16-cluster"):
                each["StackStatus"] = status

    return answering("describe_stacks", alter)
