"""The command `logs`, with waits cut short."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.remote import head_node, streamed_command
from tests.command_line import ultracluster
from tests.scripts.account import Operated


@pytest.fixture
def run_logs(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Call the command with arguments."""
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)

    def call(*arguments: str) -> int:
        return ultracluster("logs", "trn1-16", *arguments)

    return call
