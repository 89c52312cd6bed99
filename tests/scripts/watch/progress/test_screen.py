"""What people see of a deployment's progress: a table of 80 columns, or lines in a log."""

from __future__ import annotations

import io
from datetime import timedelta
from itertools import pairwise

import pytest
from rich.console import Console

from scripts.watch.progress.screen import SECONDS_WITHOUT_LINE, blocks
from scripts.watch.progress.tracker import Tracker
from scripts.watch.progress.watch import watch
from tests.scripts.reports import shown
from tests.scripts.watch.progress import fake_cloudformation as fake
from tests.scripts.watch.progress.fake_cloudformation import NETWORK, PART, START, FakeClock, FakeCloudFormation


def drawn(api: FakeCloudFormation, clock: FakeClock, seconds: float) -> str:
    clock.time = START + timedelta(seconds=seconds)
    return shown(blocks(fake.deployment(api), Tracker(fake.deployment(api)).read(clock.now())))


def test_the_table_of_a_creation(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    lines = [" ".join(line.split()) for line in drawn(api, clock, 631).splitlines()]
    assert lines[2:] == [
        f"{NETWORK} CREATE_COMPLETE 1/1 2 min 30 s",
        "trn1-16-storage CREATE_COMPLETE 1/1 4 min",
        f"{PART} CREATE_IN_PROGRESS 1/2 3 min 11 s",
        "Provider CREATE_COMPLETE 1/1 37 s",
        "trn1-16 CREATE_IN_PROGRESS 1/2 2 min 21 s Wait 1 min 40 s",
        "trn1-16-monitoring not started",
        "",
        "trn1-16: 10 min 21 s so far, ~6 min more",
    ]


def test_the_table_names_the_failure_and_some_of_many_resources(api: FakeCloudFormation, clock: FakeClock) -> None:
    api.add_events(PART, (0, "", "CREATE_IN_PROGRESS"))
    api.add_events(PART, *((1, f"R{number}=AWS::EC2::EIP", "CREATE_IN_PROGRESS") for number in range(30)))
    api.add_events(PART, (2, "Net[/]=AWS::EC2::EIP", "CREATE_FAILED"), reason="limit [reached]")
    api.add_events(PART, (2, "", "ROLLBACK_IN_PROGRESS"))
    text = drawn(api, clock, 10)
    assert max(map(len, text.splitlines())) <= 80
    for words in ("ROLLBACK_IN_PROGRESS", "and 27 more", f"{PART} Net[/] (AWS::EC2::EIP) failed:\n  limit [reached]"):
        assert words in text


def test_a_terminal_gets_the_table_and_at_last_the_result(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    written = io.StringIO()
    console = Console(markup=False, file=written, width=80, height=30, force_terminal=True, color_system=None)
    assert watch(fake.deployment(api), console, clock=clock, as_json=False) == 0
    assert "~3 min more" in written.getvalue()
    assert written.getvalue().rpartition("\n")[0].endswith("trn1-16: complete after 14 min 50 s.")


def test_a_log_is_never_silent_for_long_and_ends_with_the_table(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    written = io.StringIO()
    lines: list[tuple[float, str]] = []

    def note() -> None:
        text = written.getvalue().splitlines()
        lines.extend((clock.elapsed, line) for line in text[len(lines) :])

    clock.meanwhile = note
    watch(fake.deployment(api), Console(markup=False, file=written, width=80), clock=clock, as_json=False)
    note()
    times = [time for time, _ in lines]
    assert max(later - earlier for earlier, later in pairwise(times)) <= SECONDS_WITHOUT_LINE + 10
    assert sum(time < 880 for time in times) < 880 / 5 / 2
    assert any("trn1-16 1/2, Wait" in line for _, line in lines), "what takes so long is named"
    table = [" ".join(line.split()) for _, line in lines[-20:]]
    assert "trn1-16 CREATE_COMPLETE 2/2 5 min 11 s Wait 4 min 29 s" in table
    assert "HeadNode 35 s" in table


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_other_cluster_of_an_upgrade_is_shown(api: FakeCloudFormation, clock: FakeClock, is_terminal: bool) -> None:
    fake.creation(api)
    other = {"StackName": "trn1-16-cluster-2", "Description": "Trn1 UltraCluster trn1-16: cluster"}
    api.listed = [{**other, "StackStatus": "DELETE_IN_PROGRESS"}]
    written = io.StringIO()
    console = Console(markup=False, width=100, height=50, file=written, force_terminal=is_terminal, color_system=None)
    watch(fake.deployment(api), console, clock=clock, as_json=False)
    sentence = "trn1-16-cluster-2 is DELETE_IN_PROGRESS: another cluster of this deployment, which costs, too"
    before, _, after = written.getvalue().rpartition("Wait")
    assert sentence in before, "while it is in progress"
    assert sentence in after, "at the end"
