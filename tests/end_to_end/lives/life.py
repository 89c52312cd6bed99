"""Whole lives on this computer, by the command that shows them."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from rich.console import Console

from config.settings import load
from emulator.inventory import inventory
from emulator.machines import image
from scripts.emulated import accounts
from scripts.rehearse.stage import Stage
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


class Deployed:
    """A deployment in an emulated AWS with nodes."""

    def __init__(self, file: Path, account: accounts.Account) -> None:
        self.file, self.name, self.aws = file, file.stem, account.aws
        region = load(file).region
        variables = {**self.aws.environment, **accounts.variables(region), "ULTRACLUSTER_CONFIG": str(file.parent)}
        self.stage = Stage(Console(markup=False, width=200), io.StringIO(), False, {**variables, "COLUMNS": "200"})

    def run(self, *words: str, code: int = 0) -> str:
        return self.stage.run(*words, codes=(code,)).text

    def on_head_node(self, script: str) -> str:
        return self.run("exec", self.name, "--user", "root", "--", "sh", "-c", script)

    def change(self, edit: Callable[[Raw], None]) -> None:
        """Change the settings file."""
        raw = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        edit(raw)
        self.file.write_text(yaml.safe_dump(raw), encoding="utf-8")

    def statuses(self) -> dict[str, str]:
        cloudformation = self.aws.client("cloudformation", load(self.file).region)
        return {each["StackName"]: each["StackStatus"] for each in cloudformation.describe_stacks()["Stacks"]}

    def left(self, *types: str) -> list[str]:
        return [name for kind, name in inventory(self.aws, load(self.file).region) if kind in types]


@contextmanager
def deployed(
    directory: Path, name: str = "trn1-16", edit: Callable[[Raw], None] = lambda _: None
) -> Iterator[Deployed]:
    """Start an account for a shipped configuration, edited, with what it expects to exist; it is not deployed yet."""
    image.prepare()
    edited(directory, name, edit)
    file = directory / f"{name}.yaml"
    with accounts.account(print, speed="fast", nodes=True) as account:
        accounts.create_prerequisites(account.aws, load(file))
        yield Deployed(file, account)


def assert_in_order(patterns: Iterable[str], said: str) -> None:
    """Assert that a text has all patterns, one after the other."""
    rest = said
    for pattern in patterns:
        found = re.search(pattern, rest, re.DOTALL)
        assert found, f"{pattern}\n{said}"
        rest = rest[found.end() :]
