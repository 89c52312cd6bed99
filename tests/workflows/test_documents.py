"""Commands, links and anchors of the documents exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.__main__ import COMMANDS
from tests.workflows.workflows import ROOT

DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "constructs/README.md",
    ROOT / "emulator/README.md",
]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
MAKE = re.compile(r"(?:^|`|&& )make (?:--silent )?([a-z][a-z-]*)", re.MULTILINE)
PROGRAM = re.compile(r"python -m scripts ([a-z_]+)")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_a_document_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(MAKE.findall(text)) <= TARGETS
    assert set(PROGRAM.findall(text)) <= set(COMMANDS)


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_document_lead_somewhere(path: Path) -> None:
    for name, anchor in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
        target = path.parent / name if name else path
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


def test_paths_that_contributors_are_sent_to_exist() -> None:
    named = re.findall(r"`([a-z]\w*/[\w./*-]*)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    paths = [path for path in named if path != "constructs/__init__.py" and "NAME" not in path]
    assert "scripts/preflight/" in paths
    assert [path for path in paths if not any(ROOT.glob(path))] == []
