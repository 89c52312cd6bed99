"""What people see of a deployment's progress: a picture of 80 columns, or lines in a log."""

from __future__ import annotations

import io
from datetime import timedelta
from itertools import pairwise

import pytest
from rich.console import Console

from scripts.progress.model import progress
from scripts.progress.screen import LINES_AT_ONCE, SECONDS_WITHOUT_LINE, LineReporter, picture
from scripts.progress.tracker import Tracker
from scripts.progress.watch import watch
from tests.scripts.progress import fake_cloudformation as fake
from tests.scripts.progress.fake_cloudformation import NETWORK, PART, START, FakeClock, FakeCloudFormation

LONG = "NetworkVpcPublicSubnetRouteTableAssociationOfAVeryLongName"


def drawn(api: FakeCloudFormation, clock: FakeClock, seconds: float, *, trouble: str = "") -> str:
    """Return the picture at a time."""
    clock.time = START + timedelta(seconds=seconds)
    tracker = Tracker(fake.deployment(api))
    tracker.refresh()
    console = Console(file=io.StringIO(), width=80, record=True)
    current = progress(tracker, clock.now(), trouble=trouble)
    console.print(picture(fake.deployment(api), current))
    return console.export_text()


def test_the_picture_of_a_creation(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    lines = [line.split() for line in drawn(api, clock, 631).splitlines()]
    bar = "━━━━━━━━"
    assert lines[0] == ["trn1-16:", "10", "min", "21", "s", "so", "far,", "~6", "min", "more"]
    assert lines[2:] == [
        [NETWORK, bar, "1/1", *["created", "in", "2", "min", "30", "s"]],
        ["trn1-16-storage", bar, "1/1", *["created", "in", "4", "min"]],
        [PART, "━━━━", "1/2", *["creating", "3", "min", "11", "s,", "~3", "min", "more"]],
        ["Provider", bar, "1/1", *["created", "in", "37", "s"]],
        ["trn1-16", "━━━━", "1/2", *["creating", "2", "min", "21", "s,", "~3", "min", "more"]],
        ["Wait", *["creating", "1", "min", "40", "s", "of", "~5", "min"]],
        ["trn1-16-monitoring", "not", "started"],
    ]


def test_the_picture_names_the_failure_and_the_roll_back(api: FakeCloudFormation, clock: FakeClock) -> None:
    api.add_events(
        NETWORK, (0, "", "CREATE_IN_PROGRESS"), (1, "A=AWS::EC2::EIP", "CREATE_FAILED"), reason="limit reached"
    )
    api.add_events(NETWORK, (2, "", "ROLLBACK_IN_PROGRESS"))
    text = drawn(api, clock, 10)
    assert "rolling back 10 s" in text
    assert f"failed: {NETWORK} A: limit reached" in text


@pytest.mark.parametrize("seconds", [60, 600])
def test_80_columns_are_enough(api: FakeCloudFormation, clock: FakeClock, seconds: float) -> None:
    fake.creation(api)
    api.add_events(NETWORK, (11, f"{LONG}=AWS::EC2::EIP", "CREATE_IN_PROGRESS"))
    text = drawn(api, clock, seconds, trouble="Rate exceeded " * 20)
    assert max(map(len, text.splitlines())) <= 80
    assert (f"  {LONG[:28]}…" in text) == (seconds == 60)


def test_of_many_resources_some_are_shown(api: FakeCloudFormation, clock: FakeClock) -> None:
    api.add_events(PART, (0, "", "CREATE_IN_PROGRESS"))
    api.add_events(PART, *((1, f"R{number}=AWS::EC2::EIP", "CREATE_IN_PROGRESS") for number in range(30)))
    assert "and 25 more" in drawn(api, clock, 10)


def test_a_terminal_gets_the_picture_and_at_last_the_summary(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    written = io.StringIO()
    console = Console(file=written, width=80, height=30, force_terminal=True, color_system=None)
    assert watch(fake.deployment(api), console, clock=clock, as_json=False) == 0
    assert "~3 min more" in written.getvalue()
    assert written.getvalue().endswith("trn1-16: complete after 14 min 50 s.\n")


def logged(api: FakeCloudFormation, clock: FakeClock, minutes: float = 60) -> list[tuple[float, str]]:
    """Watch without a terminal, and return the lines with the time at which they came."""
    written = io.StringIO()
    lines: list[tuple[float, str]] = []

    def note() -> None:
        text = written.getvalue().splitlines()
        lines.extend((clock.elapsed, line) for line in text[len(lines) :])

    clock.meanwhile = note
    watch(fake.deployment(api), Console(file=written, width=80), clock=clock, as_json=False, timeout=minutes)
    note()
    return lines


def test_a_log_is_never_silent_for_long_and_never_flooded(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    lines = logged(api, clock)
    times = [time for time, _ in lines]
    assert max(later - earlier for earlier, later in pairwise(times)) <= SECONDS_WITHOUT_LINE + 5
    assert sum(time < 880 for time in times) < 880 / 5 / 2
    assert any("trn1-16 1/2, Wait" in line for _, line in lines), "what takes so long is named"


def test_many_failures_at_once_are_not_all_shown(api: FakeCloudFormation, clock: FakeClock) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    api.add_events(NETWORK, *((1, f"R{number}=AWS::EC2::EIP", "CREATE_FAILED") for number in range(90)), reason="limit")
    clock.sleep(10)
    tracker = Tracker(fake.deployment(api))
    tracker.refresh()
    console = Console(file=io.StringIO(), width=80, record=True)
    lines = LineReporter(fake.deployment(api), console)
    lines.show(progress(tracker, clock.now()))
    assert len(console.export_text().splitlines()) == LINES_AT_ONCE + 1


def test_words_in_brackets_are_printed_as_they_are(api: FakeCloudFormation, clock: FakeClock) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    api.add_events(
        NETWORK, (1, "A=AWS::EC2::EIP", "CREATE_FAILED"), reason="status [FAILED] from [bold]custom[/] resource"
    )
    api.add_events(NETWORK, (2, "", "ROLLBACK_COMPLETE"))
    text = "\n".join(line for _, line in logged(api, clock))
    assert text.count("status [FAILED] from [bold]custom[/] resource") == 2


def test_the_summary_says_what_took_longest(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    lines = [" ".join(line.split()) for _, line in logged(api, clock)]
    assert "trn1-16-network created 2 min 30 s 2 min 28 s Only" in lines
    assert "trn1-16 created 5 min 11 s 4 min 29 s Wait" in lines
    assert "35 s HeadNode" in lines
