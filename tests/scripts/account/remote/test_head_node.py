"""Commands on the head node end there before Systems Manager kills them, so that what they said is known."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.account.remote.head_node import SECONDS, HeadNode
from scripts.core.options import ROOT
from tests.scripts.operated import Operated

CONFIGURATION = ROOT / "tests" / "end_to_end" / "slurm" / "parallelcluster.conf"
"""ParallelCluster's own."""
ASK_NO_SLURM = {"'sync'", "'true'"}
"""Scripts that may have less time than Slurm needs to say that it does not answer."""


def test_what_was_said_before_the_time_was_over_is_returned(operated: Operated) -> None:
    operated.shell("sh")
    over = "kill -s ALRM $PPID"  # as time does, to `timeout`

    answer = HeadNode(operated.deployment()).run(f"echo half; echo Unable to contact >&2; {over}; exec sleep 1000")

    assert (answer.code, answer.output) == (124, "half\n")
    assert answer.errors.splitlines()[0] == "Unable to contact"
    assert answer.errors.splitlines()[-1] == f"no answer within {SECONDS} s"


def test_slurm_has_time_to_say_that_its_controller_does_not_answer(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, int]] = []

    def start(_: HeadNode, script: str, *, seconds: int) -> str:
        sent.append((script, seconds))
        raise InterruptedError

    monkeypatch.setattr(HeadNode, "start", start)
    with pytest.raises(InterruptedError):
        HeadNode(operated.deployment()).run("sinfo")
    [(script, killed_after)] = sent
    [slurms_own] = re.findall(r"^MessageTimeout=(\d+)$", CONFIGURATION.read_text(encoding="utf-8"), re.MULTILINE)
    [ended_after] = re.findall(r"^timeout --kill-after=\d+ (\d+) sh -c sinfo$", script)
    assert int(slurms_own) < int(ended_after) < killed_after


def calls() -> Iterator[tuple[Path, ast.Call, int]]:
    """Yield the calls that give a command on the head node a time of their own."""
    for path in (ROOT / "scripts").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("program.ask", ".run"))):
                continue
            for each in node.keywords:
                if each.arg == "seconds" and "HeadNode" in path.read_text(encoding="utf-8"):
                    yield path, node, seconds_of(path, each.value)


def seconds_of(path: Path, expression: ast.expr) -> int:
    """Return the value of a constant of a module; of what a caller hands on, that of others."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    name = ast.unparse(expression)
    return SECONDS if name == "seconds" else int(eval(name, vars(module)))  # noqa: S307 - a constant of this project


def test_no_command_that_asks_slurm_has_less_time() -> None:
    found = list(calls())
    assert found
    for path, call, seconds in found:
        assert seconds >= SECONDS or ast.unparse(call.args[0]) in ASK_NO_SLURM, f"{path}: {ast.unparse(call)}"
