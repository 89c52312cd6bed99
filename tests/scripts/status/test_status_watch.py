"""`make status` with --watch: what a terminal gets, and what a pipeline."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
from rich.console import Console

from config.settings import load
from emulator.aws import EmulatedAws
from scripts import command as frame
from scripts.clock import Clock
from scripts.commands import status as command
from scripts.deployment import Deployment
from scripts.status.look import Observer
from scripts.status.model import Status
from scripts.status.watch import refresh
from tests.emulator.stacks import Stacks, parameter
from tests.scripts.account import Operated
from tests.scripts.progress.test_progress import validator
from tests.scripts.slurm_samples import IDLE, shell
from tests.scripts.status.status_looks import (
    answered,  # noqa: F401
    stack_status,
)
from tests.scripts.status.test_status_parts import HEALTHY, STACKS

CHANGING = replace(HEALTHY, stacks=(replace(STACKS[0], status="UPDATE_IN_PROGRESS"),))


class Script(Observer):
    """Sees what it was told to, once each."""

    def __init__(self, seen: Sequence[Status]) -> None:
        self._seen = iter(seen)

    def look(self) -> Status:
        return next(self._seen)


def terminal() -> Console:
    return Console(width=80, height=50, file=io.StringIO(), force_terminal=True, color_system=None)


def written(console: Console) -> str:
    return cast(io.StringIO, console.file).getvalue()


def watch(console: Console, *arguments: str) -> int:
    """Watch config/trn1-16.yaml, and return the exit code."""
    given = command.arguments().parse_args(["trn1-16", "--watch", *arguments])
    return command.program(Deployment("trn1-16", load(frame.CONFIG / "trn1-16.yaml")), given, console)


def test_a_terminal_has_a_picture_that_changes() -> None:
    console = terminal()
    with pytest.raises(StopIteration):
        refresh(Script([HEALTHY, replace(HEALTHY, fleet="STOPPED")]), console, clock=Clock(), seconds=15)
    assert written(console).index("RUNNING") < written(console).index("STOPPED")


def test_the_picture_ends_when_an_operation_begins() -> None:
    console = terminal()
    refresh(Script([HEALTHY, CHANGING]), console, clock=Clock(), seconds=15)
    assert "Healthy." in written(console)
    assert "UPDATE_IN_PROGRESS" not in written(console)


def test_the_picture_names_the_command_that_tells_why() -> None:
    console = terminal()
    with pytest.raises(StopIteration):
        refresh(Script([replace(HEALTHY, fleet="PROTECTED")]), console, clock=Clock(), seconds=15)
    assert "Why: make diagnose ENV=trn1-16" in written(console)


def test_ctrl_c_ends_the_picture(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    operated.shell(shell(IDLE))

    def interrupted(_: Clock, seconds: float) -> None:
        if seconds == 99:
            raise KeyboardInterrupt

    monkeypatch.setattr(Clock, "sleep", interrupted)
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, to rich
    given = command.arguments().parse_args(["trn1-16", "--watch", "--every", "99"])
    assert frame.run(given, command.program) == frame.INTERRUPTED


@pytest.mark.usefixtures("operated")
def test_a_terminal_is_shown_the_progress_of_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is that of the watch."""
    stack_status("UPDATE_IN_PROGRESS")(monkeypatch)
    monkeypatch.setattr("scripts.progress.watch.watch", lambda *_, **__: 124)
    assert watch(terminal()) == 124


@pytest.mark.parametrize(
    ("console", "arguments"),
    [
        (Console(width=80, file=io.StringIO()), []),
        (terminal(), ["--timeout", "90"]),
        (Console(quiet=True, force_terminal=True), ["--json"]),
    ],
    ids=["without a terminal", "with a limit", "for a program"],
)
def test_who_waits_for_an_end_that_was_before_waits_no_more(
    operated: Operated, console: Console, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Observer, "look")
    operated.calls()
    assert watch(console, *arguments) == frame.DONE
    assert {each.split(":")[0] for each in operated.calls()} == {"cloudformation"}, "nothing but progress is asked for"


@pytest.mark.usefixtures("operated")
def test_a_program_gets_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    watch(Console(quiet=True), "--json")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        validator()(line)
    assert (lines[-1]["kind"], lines[-1]["outcome"]) == ("summary", "complete")


@pytest.fixture
def failed(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the creation of the first stack have failed."""
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    rehearsed_aws.inject("resource", "Bad")
    Stacks(rehearsed_aws, "us-west-2").create("trn1-16-network", {"Bad": parameter()})


@pytest.mark.usefixtures("failed")
def test_what_failed_is_diagnosed_at_the_end() -> None:
    console = Console(width=80, file=io.StringIO())
    assert watch(console) == frame.FAILED
    summary, _, diagnosis = written(console).partition("trn1-16: failed after")
    assert "trn1-16-network Bad (AWS::SSM::Parameter) failed:" in summary
    assert "What to do" in diagnosis


@pytest.mark.usefixtures("failed")
def test_a_program_that_watches_gets_no_diagnosis(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr("scripts.diagnose.diagnose.diagnose")
    assert watch(Console(quiet=True), "--json") == frame.FAILED
    assert [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()] == ["progress", "summary"]


@pytest.mark.usefixtures("operated")
def test_no_diagnosis_when_only_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.progress.watch.watch", lambda *_, timeout, **__: 124 if timeout == 7 else 0)
    console = Console(width=80, file=io.StringIO())
    assert watch(console, "--timeout", "7") == 124
    assert written(console) == "trn1-16 in us-west-2\n\n"
