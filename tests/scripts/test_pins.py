"""The proposal of newer versions, with recorded answers of pip and npm."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.commands import pins
from scripts.commands.pins import MARKER, NOTHING, Pin, newest, proposal

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


def test_what_is_pinned_is_found(tmp_path: Path) -> None:
    for name in pins.REQUIREMENTS:
        (tmp_path / name).write_text(f"# {name}\n-c constraints.txt\n-e .\n", encoding="utf-8")
    (tmp_path / "requirements-dev.txt").write_text("-r requirements.txt\nmoto[server]==5.2.5\n", encoding="utf-8")
    (tmp_path / "package.json").write_text(
        '{"dependencies": {"aws-cdk": "2.1148.1"}, "devDependencies": {"b": "1.0.0"}}', encoding="utf-8"
    )
    assert pins.pins(tmp_path) == [
        Pin("moto", "5.2.5", "requirements-dev.txt"),
        CDK,
        Pin("b", "1.0.0", "package.json"),
    ]


def test_every_pin_of_this_repository_is_found() -> None:
    lines = [
        line.split("==")
        for name in pins.REQUIREMENTS
        for line in (pins.ROOT / name).read_text(encoding="utf-8").splitlines()
        if "==" in line
    ]
    found = [pin for pin in pins.pins(pins.ROOT) if pin.file != "package.json"]
    assert [(pin.name, pin.version) for pin in found] == [(name.partition("[")[0], version) for name, version in lines]


def test_newest() -> None:
    assert newest(RICH, answers) == "15.1.0"
    assert newest(CDK, answers) == "2.1150.0"
    assert newest(RICH, refuses) is None
    assert newest(CDK, lambda _: "") is None
    assert newest(RICH, lambda _: "") is None


def test_proposal() -> None:
    text = proposal([RICH, CDK], ["15.1.0", "2.1148.1"])
    assert text.startswith(f"{MARKER}\n\n| Package | Pinned | Newest | In |\n")
    assert "| rich | 15.0.0 | 15.1.0 | requirements.txt |" in text
    assert "aws-cdk" not in text
    assert "`make update-deps PYTHON=python3.11`" in text


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


def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ask: pins.Ask) -> tuple[int, str, str]:
    monkeypatch.setattr(pins, "pins", lambda _: [RICH, CDK])
    monkeypatch.setattr(pins, "_ask", ask)
    monkeypatch.setattr("sys.argv", ["pins"])
    code = pins.main()
    return code, *capsys.readouterr()


def test_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = command(capsys, monkeypatch, answers)
    assert (code, err) == (0, "")
    assert out == proposal([RICH, CDK], ["15.1.0", "2.1150.0"])


def test_nobody_answers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = command(capsys, monkeypatch, refuses)
    assert (code, out) == (2, "")
    assert err == "Neither pip nor npm answered for any package; standard error above says why.\n"
