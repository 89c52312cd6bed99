"""A signal that is lost in a step of an upgrade or a recovery: the next step does not start."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.interrupts import listening
from tests.scripts.test_stops import lose
from tests.scripts.upgrade.test_recovery import recover
from tests.scripts.upgrade.test_upgrade import OTHER_OS, FakeBackend


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[FakeBackend]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield FakeBackend(tmp_path)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("command", ["upgrade", "recover"])
@pytest.mark.parametrize("point", range(13))
def test_no_step_follows_a_signal_that_was_lost(
    backend: FakeBackend, command: str, point: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "recover":
        backend.heads[1] = "lost"
    asked_at_the_signal = list[int]()

    def signalled() -> None:
        asked_at_the_signal.append(len(backend.asked))
        lose()

    def run() -> None:
        if command == "recover":
            recover(backend)
        else:
            backend.run(OTHER_OS)

    backend.points_left, backend.loses_signal = point, signalled
    with listening(), pytest.raises(KeyboardInterrupt):
        run()
    [asked] = asked_at_the_signal
    assert len(backend.asked) <= asked + 1  # that of the next step, which did not start
    done = len(backend.done)
    printed = capsys.readouterr().err
    assert ("Done so far: " in printed) is (point > 0)
    backend.points_left, backend.loses_signal = 10**6, None
    run()
    assert len(backend.done) >= done
    assert (backend.statuses, backend.alarms) == ({2: "CREATE_COMPLETE"}, "dev-2")
