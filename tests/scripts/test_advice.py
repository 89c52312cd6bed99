"""What people are told to do leads on: to what changes something, and not back to where they come from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from scripts.account.causes import COMMAND, Cause, table
from scripts.core.options import ROOT
from tests.command_line import leaves

CHANGES = re.compile(
    r"(Or )?(add|allow|ask|build|cancel|compare|delete|deploy|detach|find|fix|give|let|make|name|nothing|put|raise|"
    r"release|remove|reserve|save|set|start|switch|try|undo|use|wait)\b|\{help\}|With |To |Interfaces ",
    re.IGNORECASE,
)
"""How a sentence starts that says what to change, or that nothing needs to be."""
SHOWS = {"diagnose", "estimate", "inventory", "jobs list", "logs", "plan", "preflight", "runs list", "status"}
"""Commands that only show."""
OF_AWS = re.compile(r"\$ aws [\w-]+ (decode|describe|get|list)-")
HOW_LONG = re.compile(
    r"(\d+|some) (minutes|hours|days)|for hours|next month|grace_minutes|--watch"
    r"|until (all are|other jobs)|for its start"
)
COMMANDS = {name for name, _ in leaves()}
CALL = re.compile(r"\./ultracluster ([a-z-]+(?: (?:list|logs|stop|start|scale|status|cancel))?)")


def command_of(text: str) -> str:
    """Return the command that advice names; empty: none."""
    match = CALL.search(text)
    return "" if match is None else match[1] if match[1] in COMMANDS else match[1].partition(" ")[0]


def changes(step: str) -> bool:
    """Tell whether a step changes something, or says that nothing needs to be."""
    if not step.startswith(COMMAND):
        return CHANGES.match(step) is not None
    return command_of(step) not in SHOWS and not OF_AWS.match(step)


@pytest.mark.parametrize("cause", table(), ids=lambda cause: cause.id)
def test_a_cause_says_what_to_change(cause: Cause) -> None:
    assert any(map(changes, cause.do)), cause.do
    assert all(command_of(each) != "diagnose" for each in cause.do), "from there people come"
    for step in cause.do:
        if re.match("(Or )?wait ", step, re.IGNORECASE):
            assert HOW_LONG.search(step), step


def texts(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a package that are no docstrings, with their module; of f-strings with names for values."""
    for path in sorted((ROOT / "scripts" / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values}
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield path.name, ast.unparse(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | docs:
                yield path.name, node.value


SENDS_BACK = {
    "check/preflight": {"preflight", "plan", "diagnose"},
    "check/plan": {"plan", "diagnose"},
    "watch/diagnose": {"diagnose"},
}
"""Commands from which people come to what a package says."""
ALLOWED = {
    ("cluster.py", "preflight"),  # the launcher, which a check misses, makes the environment
    ("runner.py", "preflight"),  # --print-policy, which prints the permissions to ask for
}


@pytest.mark.parametrize("folder", SENDS_BACK)
def test_a_check_does_not_send_people_back(folder: str) -> None:
    named = {(module, command_of(text)) for module, text in texts(folder)}
    assert {each for each in named if each[1] in SENDS_BACK[folder]} - ALLOWED == set()


def test_to_wait_is_said_with_how_long_or_what_follows_it() -> None:
    said = [text for folder in ("check", "account", "change/destroy") for _, text in texts(folder)]
    waits = [text for text in said if re.search(r"(^f?['\"]|^|[;:] )[Ww]ait (until|for|some)\b", text)]
    assert len(waits) > 1
    assert [text for text in waits if not HOW_LONG.search(text)] == []
