"""Commands, links and anchors of the documents exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import leaves
from tests.workflows.workflows import ROOT

DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "docs/llms.txt",
    ROOT / "constructs/README.md",
    ROOT / "emulator/README.md",
]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
MAKE = re.compile(r"(?:^|`|&& )make (?:--silent )?([a-z][a-z-]*(?: [a-z][a-z-]*)*)", re.MULTILINE)
CALL = re.compile(r"\./ultracluster ((?:[a-z][a-z-]*)(?: [a-z]+)?)(?= |`|$)([^`\n#&|]*)", re.MULTILINE)
FORMER = re.compile(r"python -m scripts\b(?!` in)|\bENV=|\bARGS=(?!'--)|(?<!\x22)--json\b(?!-)|--markdown\b")
"""How commands were called; make keeps ARGS, with options of developers' tools, and Slurm has a "--json"."""
LEAVES = dict(leaves())
PAGE = re.compile(r"(?<![\w/])docs/[\w/-]+\.md")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_a_document_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert {target for targets in MAKE.findall(text) for target in targets.split()} <= TARGETS


SPEAKING = [
    *DOCUMENTS,
    *(ROOT / ".github").rglob("*.yaml"),
    *(path for folder in ("config", "constructs", "nodes", "scripts", "stacks", "training") for path in
      (ROOT / folder).rglob("*") if path.suffix in (".py", ".sh", ".yaml")),
]  # fmt: skip
"""Files that tell people what to type."""


def problems_of(call: tuple[str, str]) -> list[str]:
    """Return what of a call is neither a command nor one of its options."""
    words, rest = call
    name = words if words in LEAVES else words.partition(" ")[0]
    if name not in LEAVES:
        groups = {each.partition(" ")[0] for each in LEAVES if " " in each}
        return [] if name in groups else [f"no command {words}"]
    own = {option for parameter in LEAVES[name].params for option in parameter.opts} | {"--help"}
    used = re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest.partition(" -- ")[0])
    return [f"{name} has no {option}" for option in used if option not in own]


@pytest.mark.parametrize("path", SPEAKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_people_are_told_to_type_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [problem for call in CALL.findall(text) for problem in problems_of(call)] == []
    assert [page for page in PAGE.findall(text) if not (ROOT / page).exists()] == []
    assert FORMER.findall(text) == [] or path.name == "CHANGELOG.md" or "adr" in path.parts


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


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    entries = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(entries) == sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))


def test_paths_that_contributors_are_sent_to_exist() -> None:
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("AGENTS.md", "CONTRIBUTING.md")]
    named = re.findall(r"`([a-z]\w*/[\w./*-]*)`", "".join(pages))
    paths = [path for path in named if path != "constructs/__init__.py" and "NAME" not in path]
    assert "scripts/check/preflight/" in paths
    assert [path for path in paths if not any(ROOT.glob(path))] == []


def test_each_promise_of_security_names_its_test() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!promise|---)(.+?) \| (.+) \|$", text, re.MULTILINE)
    assert rows
    for promise, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests)
        assert named, promise
        for path, test in named:
            assert f"def {test or 'test_'}" in (ROOT / path).read_text(encoding="utf-8"), promise
