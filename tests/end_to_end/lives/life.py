"""Whole lives on this computer, by the command that shows them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from emulator.machines import image
from tests.configurations import CONFIG
from tests.stacks.deployments import Raw

ROOT = Path(__file__).parents[3]
END = (r"\$ ./ultracluster destroy .*?exit code 0", r"  Nothing else\.\n")
"""How each life ends, as patterns."""


def rehearse(
    *arguments: str, faults: Iterable[str] = (), by: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> str:
    """Run `./ultracluster rehearse`, which has to succeed, and return what it prints.

    Args:
        arguments: Of the command.
        faults: Which happen in it.
        by: What runs it, if not this user's shell.
        variables: Further ones of its environment.
    """
    if not by:
        image.prepare()  # it may take longer than a life
    done = subprocess.run(
        [*by, "./ultracluster", "rehearse", *arguments, *(word for fault in faults for word in ("--fault", fault))],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=3600,
        env={**os.environ, "COLUMNS": "200", **(variables or {})},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def edited(directory: Path, name: str, edit: Callable[[Raw], None]) -> dict[str, str]:
    """Write a shipped configuration, edited, and return the variable by which commands find it."""
    raw = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    edit(raw)
    (directory / f"{name}.yaml").write_text(json.dumps(raw), encoding="utf-8")
    return {"ULTRACLUSTER_CONFIG": str(directory)}


def assert_in_order(patterns: Iterable[str], said: str) -> None:
    """Assert that a text has all patterns, one after the other."""
    rest = said
    for pattern in patterns:
        found = re.search(pattern, rest, re.DOTALL)
        assert found, f"{pattern}\n{said}"
        rest = rest[found.end() :]
