"""The proposal of newer versions, with recorded answers of pip and npm."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from scripts.upkeep import pins
from scripts.upkeep.pins import NOTHING, Pin, proposal

PIP = "rich (15.1.0)\nAvailable versions: 15.1.0, 15.0.0, 14.2.0\n  INSTALLED: 15.0.0\n"
RICH = Pin("rich", "15.0.0", "requirements.txt")
CDK = Pin("aws-cdk", "2.1148.1", "package.json")


def answers(command: Sequence[str]) -> str:
    if command[0] == "npm":
        assert command == ["npm", "view", "aws-cdk", "version"]
        return "2.1150.0\n"
    assert command[1:] == ["-m", "pip", "index", "versions", "rich"]
    return PIP


def refuses(command: Sequence[str]) -> str:
    raise subprocess.CalledProcessError(1, command)


def test_every_kind_of_file_is_read() -> None:
    pinned = pins.pins(pins.ROOT)
    assert {pin.file for pin in pinned} == {*pins.REQUIREMENTS, "package.json"}
    assert {"aws-cdk", "aws-cdk-lib", "aws-parallelcluster", "moto"} <= {pin.name for pin in pinned}


def test_only_what_is_newer_is_proposed_and_who_did_not_answer_is_named() -> None:
    pinned = [Pin("a", "9.0", "x"), Pin("b", "2.0", "x"), Pin("c", "2.0", "x"), RICH]
    text = proposal(pinned, ["10.0", "1.9", "2.0", None])
    assert [line for line in text.splitlines() if line.startswith("| ")][2:] == ["| a | 9.0 | 10.0 | x |"]
    assert text.endswith("\nNobody answered for rich.\n")
    assert NOTHING in proposal([RICH], ["15.0.0"])


@pytest.mark.parametrize(("ask", "code"), [(answers, 0), (refuses, 2)])
def test_command(ask: Any, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "pins", lambda _: [RICH, CDK])
    monkeypatch.setattr(pins, "_ask", ask)
    monkeypatch.setattr("sys.argv", ["pins"])
    assert pins.main() == code
    out, err = capsys.readouterr()
    assert out == ("" if code else proposal([RICH, CDK], ["15.1.0", "2.1150.0"]))
    assert err.startswith("Neither pip nor npm answered") == bool(code)
