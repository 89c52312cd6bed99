"""What only AWS can confirm has one home: pages are made of it, and what they say of AWS names its line.

`make snapshots` rewrites docs/reference/assumptions.md and the tables of docs/tutorials/first-deployment.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.settings import Settings
from scripts.commands import prove
from scripts.rehearse.prove.assumptions import NO_RUNG, assumptions, checks, page
from scripts.rehearse.prove.ladder import NAMES, RUNGS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = DOCS / "reference" / "assumptions.md"
TUTORIAL = DOCS / "tutorials" / "first-deployment.md"
MARKED = re.compile(r"(<!-- checks of ([a-z-]+) -->\n)((?:\|.*\n)*)")
UNCERTAIN = re.compile(
    r"not tried on AWS|on AWS it is untested|is untested|AWS is not known yet|no real AWS account|has run it yet"
    r"|only (?:AWS|Trn1) can show|they cannot show|Public sources do not say|Neither has been tried|not been tried yet"
    r"|No public run|not measured yet|was not measured here|; not measured|not yet seen on a real node"
    r"|nobody has fetched|of a real account|are \*\*assumptions|never run here|nobody here has run",
    re.IGNORECASE,
)
"""How pages say that nobody has seen it on AWS."""
LINK = re.compile(r"assumptions\.md(?:#([a-z-]+))?")


def pages() -> list[Path]:
    return [
        *sorted(DOCS.rglob("*.md")),
        DOCS / "llms.txt",
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        ROOT / "CHANGELOG.md",
    ]


def statements(text: str) -> Iterator[str]:
    """Yield the paragraphs, tables and lists that say it, with what a heading or a sentence before them announces."""
    blocks = re.split(r"\n\n+", text)
    for number, block in enumerate(blocks):
        if UNCERTAIN.search(" ".join(block.split())):
            is_heading = block.startswith("#")
            ends = block.rstrip().endswith(("show", ":"))
            yield "\n".join(blocks[number : number + 1 + is_heading + ends])


def test_page_is_made_of_the_table(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("update_snapshots"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "if that is meant: make snapshots"


def test_checks_of_the_tutorial_are_those_of_the_table(pytestconfig: pytest.Config) -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    made = MARKED.sub(lambda match: f"{match[1]}{checks(match[2])}\n", text)
    if pytestconfig.getoption("update_snapshots"):
        TUTORIAL.write_text(made, encoding="utf-8")
    assert TUTORIAL.read_text(encoding="utf-8") == made, "if that is meant: make snapshots"
    assert [match[2] for match in MARKED.finditer(text)] == list(NAMES)


def test_steps_of_the_tutorial_are_the_rungs() -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    assert re.findall(r"^## \d\. (.*)$", text, re.MULTILINE) == [each.title for each in RUNGS]
    assert prove.RUNGS == NAMES


@pytest.mark.parametrize("path", pages(), ids=lambda each: str(each.relative_to(ROOT)))
def test_what_nobody_has_seen_on_aws_names_its_assumption(path: Path) -> None:
    if path == PAGE:
        return
    for statement in statements(path.read_text(encoding="utf-8")):
        assert LINK.search(statement), statement


def test_every_assumption_is_named_where_it_matters() -> None:
    named: set[str] = set()
    for path in pages():
        if path != PAGE:
            named |= {match[1] for match in LINK.finditer(path.read_text(encoding="utf-8")) if match[1]}
    assert named == {each.id for each in assumptions()}


def test_the_table_is_whole() -> None:
    names = [each.id for each in assumptions()]
    assert len(names) == len(set(names))
    for each in assumptions():
        assert each.rung in (*NAMES, NO_RUNG), each.id
        assert (DOCS / each.page).is_file(), each.id
        assert bool(each.without) == (each.rung == NO_RUNG), each.id
        assert bool(each.otherwise) == (each.rung != NO_RUNG), each.id
        assert each.needs in ("", *Settings.model_fields, "users"), each.id
        assert "|" not in f"{each.check}{each.expected}{each.otherwise}", each.id
