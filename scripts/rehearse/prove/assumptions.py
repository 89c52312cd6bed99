"""What only AWS can confirm: the table in assumptions.yaml, and the pages that are made of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import Field, TypeAdapter

from scripts.core import markdown
from scripts.core.document import Document
from scripts.rehearse.prove.ladder import RUNGS

TABLE: Final = Path(__file__).with_name("assumptions.yaml")
NO_RUNG: Final = "none"
_INTRODUCTION: Final = """\
# What only AWS can confirm

Generated from `scripts/rehearse/prove/assumptions.yaml`. No real AWS account and no Trainium chip has run this project
yet. Each line is a statement of these pages that an emulated AWS cannot settle, under a name that does not change.
`./ultracluster prove DEPLOYMENT --max-usd AMOUNT` looks at them in your account and writes a report with a line for
each: [prove it in your account](../guides/prove.md).

*emulated*: `--emulate` looks, too; it tests the command, and settles nothing about AWS. *by you*: the report says what
to look at.
"""


class Assumption(Document):
    """A statement that only AWS can confirm.

    Attributes:
        id: Its name, which does not change.
        rung: The rung of the ladder that shows it; `NO_RUNG`: none.
        check: What is looked at.
        expected: What is expected there.
        otherwise: What to do if it is otherwise.
        without: What a rung would need that shows it; empty: one does.
        page: Where it is promised, below docs/.
        needs: A section of the settings without which there is nothing to look at; empty: none.
        by: Who looks.
        emulated: Whether the emulated AWS has it.
    """

    id: str = Field(pattern=r"^[a-z]+(-[a-z]+)*$")
    rung: str
    check: str
    expected: str
    otherwise: str = ""
    without: str = ""
    page: str
    needs: str = ""
    by: Literal["program", "person"] = "program"
    emulated: bool = False


@cache
def assumptions() -> tuple[Assumption, ...]:
    """Return all of them, in the order of the rungs."""
    return TypeAdapter(tuple[Assumption, ...]).validate_python(yaml.safe_load(TABLE.read_text(encoding="utf-8")))


def of_rung(name: str) -> tuple[Assumption, ...]:
    """Return those of a rung."""
    return tuple(each for each in assumptions() if each.rung == name)


def by_id(name: str) -> Assumption:
    """Return one."""
    return next(each for each in assumptions() if each.id == name)


def checks(rung: str) -> str:
    """Return the table of a step of docs/tutorials/first-deployment.md."""
    rows = [
        (f"{each.check} ([{each.id}](../reference/assumptions.md#{each.id}))", each.expected, each.otherwise)
        for each in of_rung(rung)
    ]
    return markdown.table(("check", "expected", "if it differs"), rows)


def page() -> str:
    """Return docs/reference/assumptions.md."""
    return "\n".join([_INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for rung in RUNGS:
        yield f"## {rung.title}\n"
        yield from map(_entry, of_rung(rung.name))
    yield "## No rung yet\n\nWhat these need does not fit a ladder of some hours.\n"
    yield from map(_entry, of_rung(NO_RUNG))


def _entry(assumption: Assumption) -> str:
    facts = [f"promised in [{assumption.page.removesuffix('.md')}](../{assumption.page})"]
    facts += [f"needs `{assumption.needs}` in the settings"] if assumption.needs else []
    facts += ["by you"] if assumption.by == "person" else []
    facts += ["emulated"] if assumption.emulated else []
    facts += [f"needs {assumption.without}"] if assumption.without else []
    return (
        f"### {assumption.id}\n\nLook at {assumption.check}. Expected: {assumption.expected}.\n\n*{'; '.join(facts)}*\n"
    )
