"""Numbers in messages: what is counted is in the singular where it is one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from scripts.core.figures import counted
from scripts.core.options import ROOT

THINGS = (
    "accounts|addresses|alarms|attempts|backups|causes|changes|checks|days|events|files|groups|hours|images|instances|"
    "issues|jobs|links|minutes|nodes|people|queues|records|resources|runs|snapshots|stacks|steps|subnets|tasks|users|"
    "volumes|zones"
)
COUNTED = re.compile(rf"^ (?!(?:takes?|has|for|no|node) )(?:[a-z-]+ )?(?:{THINGS})\b")
A_PART = re.compile(r"\b(of|from|than|multiple of) $")
"""Before the number of all, as in 1 of 1 nodes."""
CONSTANT = re.compile(r"_?[A-Z][A-Z_]+( [*/]+ \d+)?|\w+\.[A-Z_]+")
MANY = {
    "scripts/check/plan/report.py": {"len(stack.changes)"},  # those of a whole stack
    "scripts/check/review/drawing.py": {"len(names)"},  # one has words of its own
    "scripts/check/preflight/update.py": {"count"},  # the same
    "scripts/rehearse/prove/walk.py": {"len(nodes)"},  # none or several
    "scripts/watch/diagnose/diagnose.py": {"minutes"},  # a constant
}
"""Numbers that are never one."""


def numbers(path: Path) -> Iterator[str]:
    """Yield the expressions in messages of a module before the plural of what they count."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for index, (value, after) in enumerate(pairwise(parts)):
            if not (isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)):
                continue
            if value.format_spec is not None and "." in ast.unparse(value.format_spec):
                continue  # no whole number
            before = parts[index - 1] if index else None
            is_part = isinstance(before, ast.Constant) and A_PART.search(str(before.value))
            shown = ast.unparse(value.value)
            if COUNTED.search(str(after.value)) and not is_part and not CONSTANT.fullmatch(shown):
                yield shown


@pytest.mark.parametrize("path", sorted((ROOT / "scripts").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_message_counts_has_its_singular(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = set() if "upkeep" in name else {*numbers(path)} - MANY.get(name, set())
    assert found == set(), "scripts.core.figures.counted has both forms"


@pytest.mark.parametrize(
    ("number", "things", "text"),
    [
        (1, "jobs", "1 job"),
        (0, "jobs", "0 jobs"),
        (1, "public addresses", "1 public address"),
        (1234, "nodes", "1,234 nodes"),
        (1, "queues", "1 queue"),
        (1, "GiB", "1 GiB"),
    ],
)
def test_one_thing_is_in_the_singular(number: int, things: str, text: str) -> None:
    assert counted(number, things) == text
