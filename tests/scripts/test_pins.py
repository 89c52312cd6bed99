"""The proposal of newer versions, with recorded answers of pip and npm."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from scripts import pins
from scripts.pins import NOTHING, Pin, proposal

PIP = """\
rich (15.1.0)
Available versions: 15.1.0, 15.0.0, 14.2.0
  INSTALLED: 15.0.0
  LATEST:    15.1.0
"""
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


def test_every_pin_of_this_repository_is_found() -> None:
    lines = [
        line.split("==")
        for name in pins.REQUIREMENTS
        for line in (pins.ROOT / name).read_text(encoding="utf-8").splitlines()
        if "==" in line
    ]
    found = [pin for pin in pins.pins(pins.ROOT) if pin.file != "package.json"]
    assert [(pin.name, pin.version) for pin in found] == [(name.partition("[")[0], version) for name, version in lines]


@pytest.mark.parametrize(
    ("pinned", "version", "newer"),
    [("9.0", "10.0", True), ("6.0.12.20261113", "6.0.12.20261201", True), ("2.0", "1.9", False), ("2.0", "2.0", False)],
)
def test_only_what_is_newer_is_proposed(pinned: str, version: str, newer: bool) -> None:
    text = proposal([Pin("a", pinned, "requirements.txt")], [version])
    assert ("| a |" in text) == newer
    assert (NOTHING in text) != newer


def test_who_did_not_answer_is_named() -> None:
    assert proposal([RICH, CDK], [None, "2.1148.1"]).endswith("\nNobody answered for rich.\n")


@pytest.mark.parametrize(("ask", "code"), [(answers, 0), (refuses, 2)])
def test_command(ask: Any, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "pins", lambda _: [RICH, CDK])
    monkeypatch.setattr(pins, "_ask", ask)
    monkeypatch.setattr("sys.argv", ["pins"])
    assert pins.main() == code
    out, err = capsys.readouterr()
    assert out == ("" if code else proposal([RICH, CDK], ["15.1.0", "2.1150.0"]))
    assert err.startswith("Neither pip nor npm answered") == bool(code)
