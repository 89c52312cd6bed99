"""What the documents tell people to run is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.__main__ import COMMANDS
from tests.workflows.workflows import ROOT

DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "emulator/README.md"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
MAKE = re.compile(r"(?:^|`|&& )make (?:--silent )?([a-z][a-z-]*)", re.MULTILINE)
PROGRAM = re.compile(r"python -m scripts ([a-z_]+)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_a_document_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(MAKE.findall(text)) <= TARGETS
    assert set(PROGRAM.findall(text)) <= set(COMMANDS)


def test_commands_are_found() -> None:
    text = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("pipeline.md", "preflight.md"))
    assert {"lint", "snapshots", "pipeline-deploy", "drift"} <= set(MAKE.findall(text))
    assert "preflight" in PROGRAM.findall(text)
