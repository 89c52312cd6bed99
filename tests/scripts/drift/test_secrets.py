"""What workflows run with credentials prints none of them: canaries stand for the secret key and the session token.

The steps of workflows have theirs in tests/workflows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from scripts.commands import drift
from scripts.plan.command import PlanError
from scripts.plan.model import Plan
from tests.scripts.account import Operated
from tests.stacks.deployments import deploy

pytestmark = pytest.mark.validation

CANARY = "canary-7b02ce"
ASSEMBLY = "ASSEMBLY"
"""Stands for what the settings are synthesized to."""
PROGRAMS = {
    "plan": ("--assembly", ASSEMBLY, "--markdown"),
    "destroy": ("--all", "--unprotect", "--dry-run", "--json"),
    "diagnose": ("--json",),
    "drift": ("--markdown",),
    "preflight": ("--only", "quota-", "--json"),
    "status": ("--json",),
}

Run = Callable[[str], tuple[int, str]]


@pytest.fixture(scope="module")
def assembly(operated_account: Operated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return deploy(operated_account.settings, tmp_path_factory.mktemp("assembly")).directory


def _no_plan(_: str) -> Plan:
    raise PlanError("left out")


@pytest.fixture
def run(operated: Operated, assembly: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a program, and returns its exit code and all that it printed."""
    del operated
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", CANARY)
    monkeypatch.setattr(drift, "_plan", _no_plan)  # `changes` has it

    def called(name: str) -> tuple[int, str]:
        arguments = [str(assembly) if each == ASSEMBLY else each for each in PROGRAMS[name]]
        monkeypatch.setattr(sys, "argv", [name, "trn1-16", *arguments])
        code: int = import_module(f"scripts.{name}").main()
        return code, "".join(capfd.readouterr())

    return called


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_no_secret(name: str, run: Run) -> None:
    _, text = run(name)
    assert "trn1-16" in text
    assert CANARY not in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_nor_does_one_whose_credentials_are_refused(name: str, run: Run, operated: Operated) -> None:
    nobody = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}
    with operated.aws.restricted(nobody):
        code, text = run(name)
    assert code in (1, 2)
    assert text.strip()
    assert CANARY not in text
