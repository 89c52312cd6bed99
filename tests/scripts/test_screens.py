"""The screens in documents are what commands print: `make snapshots` takes them again."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from config.settings import load
from emulator import scenarios
from emulator.aws import EmulatedAws
from scripts.check.preflight.catalog import CATALOG
from scripts.core.clock import Clock
from scripts.emulated import accounts
from scripts.watch.status import collect
from tests.command_line import ultracluster
from tests.configurations import CONFIG
from tests.scripts.check.plan.conftest import SNAPSHOTS
from tests.scripts.check.plan.conftest import offline as offline  # noqa: PLC0414 - re-exported
from tests.scripts.check.plan.conftest import parallelcluster as parallelcluster  # noqa: PLC0414 - re-exported
from tests.scripts.check.plan.test_commands import edited as edited  # noqa: PLC0414 - re-exported
from tests.scripts.operated import Operated
from tests.scripts.slurm_samples import answer, shell
from tests.scripts.watch.diagnose.causes.recorded import QUOTA, Now, failed

ROOT = Path(__file__).parents[2]
SCREENS = ROOT / "docs" / "screens"
WIDTH = 108
VARYING = {
    re.escape(str(ROOT)): "~/ultracluster",
    r"\bi-[0-9a-f]{17}\b": "i-0a1b2c3d4e5f60718",
    r"\bfs-[0-9a-f]{17}\b": "fs-0123456789abcdef0",
    r"\b10\.0\.\d+\.\d+, [\d.]+,": "10.0.0.14, 198.51.100.7,",
    r"ago,\s+Session\s+Manager\s+reaches\s+it": f"ago,\n{'':10}Session Manager reaches it",
    r" \(endpoint http://[\d.:]+\)": "",
    r" in [\d.]+ s\b": " in 2.1 s",
    r"Not ready to\s+deploy": "Not ready to deploy",
    r"\bPython \d+\.\d+\.\d+": "Python 3.12.3",
}
"""What differs from machine to machine or from run to run, and what is shown instead."""

REASON = "ultracluster: SRAM_ECC: neuron7 has sram_ecc_uncorrected 3 (replace)"
Screen = Callable[..., None]


class Terminal(io.StringIO):
    """Takes what a command prints to a terminal with colours."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Screen:
    """A function that runs a command, and compares its screen with that of documents."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TTY_INTERACTIVE", "0")  # no progress
    monkeypatch.delenv("NO_COLOR", raising=False)

    def take(*words: str, lines: int | None = None, shown: str = "") -> None:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", printed := Terminal())
            ultracluster(*words)
        text = printed.getvalue().strip("\n")
        for pattern, instead in VARYING.items():
            text = re.sub(pattern, instead, text)
        cut = text.splitlines()[lines:] if lines else []
        text = text.removesuffix("\n".join(cut)) + ("..." if cut else "")
        console = Console(
            markup=False, record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="256"
        )
        console.print(Text.from_ansi(text))
        svg = console.export_svg(title=f"./ultracluster {shown or ' '.join(words)}", unique_id=words[0])
        svg = re.sub(r"\s*@font-face {.*?}", "", svg, flags=re.DOTALL)  # they would be loaded from elsewhere
        path = SCREENS / f"{words[0]}.svg"
        if pytestconfig.getoption("update_snapshots"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(svg, encoding="utf-8")
        assert svg == path.read_text(encoding="utf-8"), f"{path} shows something else; if that is meant: make snapshots"

    return take


def test_estimate(screen: Screen) -> None:
    screen("estimate", "trn1-16", "--prices", "table", lines=55, shown="estimate trn1-16")


@pytest.mark.usefixtures("offline")
def test_plan(screen: Screen, edited: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SNAPSHOTS)
    screen("plan", "trn1-16", "--against", "trn1-16", "--assembly", edited, shown="plan trn1-16 --against trn1-16")


def test_status(screen: Screen, operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "WAIT_SECONDS", 600)
    monkeypatch.setattr(Clock, "sleep", lambda *_: None)
    monkeypatch.setattr(Clock, "now", lambda _: datetime.now(UTC) + timedelta(days=2, hours=4, minutes=5))
    operated.launch(9)
    drained = datetime.now(UTC) + timedelta(days=1)
    problem = (1, "drained", drained.strftime("%Y-%m-%dT%H:%M:%S"), "trn1-dy-trn1-32xl-5", REASON)
    nodes = {"trn1": {"dy-trn1-32xl": {"allocated": 8, "idle+drain": 1, "idle+powered_down": 7}}}
    busy = answer({"trn1": "up"}, nodes, [problem], counts=[(1, "trn1", "RUNNING"), (2, "trn1", "PENDING")])
    operated.shell(shell(busy))
    screen("status", "trn1-16")


def test_diagnose(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment, account, stack = failed()
    account.event(stack, 1, QUOTA)
    monkeypatch.setattr("scripts.account.deployment.Deployment", lambda *_: deployment)
    monkeypatch.setattr(Clock, "now", Now().now)
    screen("diagnose", "trn1-16")


@pytest.mark.slow
def test_preflight(screen: Screen, rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "scripts.check.preflight.catalog.CATALOG", tuple(replace(each, seconds=600) for each in CATALOG)
    )
    settings = load(CONFIG / "trn1-16.yaml")
    prerequisites = accounts.prerequisites_of(settings)
    quota = scenarios.SCENARIOS["no-quota"]
    with scenarios.account(
        rehearsed_aws, prerequisites, quota, lambda: accounts.bootstrap(rehearsed_aws, settings)
    ) as of:
        for name, value in of.items():
            monkeypatch.setenv(name, value)
        screen("preflight", "trn1-16", "--only", "quota-,instance-types,routes,vpc,fsx-service-role")
