"""`status --watch` on stacks in an emulated AWS."""

from __future__ import annotations

import io

from rich.console import Console

from scripts.clock import Clock
from scripts.errors import ExitCode
from scripts.progress.tracker import Tracker
from scripts.progress.watch import watch
from tests.scripts.account import Operated


def test_a_complete_deployment(operated: Operated) -> None:
    operated.calls()
    Tracker(operated.deployment()).read(Clock().now())
    assert len(operated.calls()) <= 20
    console = Console(file=io.StringIO(), width=80, record=True)
    assert watch(operated.deployment(), console, clock=Clock(), as_json=False) == ExitCode.DONE
    text = console.export_text()
    assert "  trn1-16 " in text, "the cluster's own stack, in that of the cluster"
    assert "trn1-16: complete after" in text
