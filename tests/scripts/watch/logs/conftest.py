"""The command `logs`, with waits cut short."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from scripts.account.remote import head_node, streamed_command
from scripts.core.clock import Clock
from scripts.watch.logs import show
from tests.command_line import ultracluster
from tests.scripts.operated import Operated


@pytest.fixture
def run_logs(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)

    def call(*arguments: str) -> int:
        return ultracluster("logs", "trn1-16", *arguments)

    return call


Follow = Callable[..., None]


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Let each wait for new lines do a step, and the one after the last be Ctrl-C."""

    def set_steps(*steps: Callable[[], object]) -> None:
        left = list(steps)

        def sleep(_: Clock, seconds: float) -> None:
            if seconds != show.SECONDS_BETWEEN_READS:
                time.sleep(seconds)
            elif not left:
                raise KeyboardInterrupt
            else:
                left.pop(0)()

        monkeypatch.setattr(Clock, "sleep", sleep)

    return set_steps
