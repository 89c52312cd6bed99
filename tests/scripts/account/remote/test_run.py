"""`run`: a command on the head node, by Systems Manager's agent and CloudWatch Logs as the emulated AWS has them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.account.remote import head_node, streamed_command
from scripts.account.remote.streamed_command import StreamedCommand
from scripts.core.clock import Clock
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from tests.scripts.refusals import refusal

SHELL = 'trap "exit 143" TERM; runuser() { printf "%s\\n" "$5" >"$TRACE/user"; bash -c "$3"; }; source /dev/stdin'
"""A node whose users are all this one."""
Run = Callable[..., int]


@pytest.fixture
def started(operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    operated.shell(f"TRACE={tmp_path}; {SHELL}")
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setattr(streamed_command, "SECONDS_OF_GRACE", 0.5)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)

    def call(*arguments: str) -> int:
        return ultracluster("exec", "trn1-16", *arguments)

    return call


def test_output_errors_and_exit_code_are_those_of_the_command(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--", "bash", "-c", "seq 100000; echo two >&2; exit 7") == 7
    assert capsys.readouterr() == ("".join(f"{number}\n" for number in range(1, 100_001)), "two\n")


def test_lines_come_while_it_runs(
    started: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends only once its first line was seen here."""
    seen = tmp_path / "seen"
    new = StreamedCommand.new

    def watched(self: StreamedCommand, write: streamed_command.Write) -> None:
        def noted(stream: str, text: str) -> None:
            write(stream, text)
            seen.touch()

        new(self, noted)

    monkeypatch.setattr(StreamedCommand, "new", watched)
    assert started("--", "bash", "-c", f"echo started; until [ -e {seen} ]; do sleep 0.02; done; echo done") == 0
    assert capsys.readouterr().out == "started\ndone\n"


def status_of_the_last(operated: Operated) -> str:
    return str(operated.client("ssm").list_command_invocations()["CommandInvocations"][-1]["Status"])


@pytest.fixture
def ordinary_signals() -> Iterator[None]:
    """Signals as a terminal's programs have them: what is ignored from the start, as under nohup, stays so."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("ordinary_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=str)
def test_what_ends_this_ends_it_there(
    operated: Operated,
    started: Run,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Clock, "sleep", lambda *_: signal.raise_signal(number))
    assert started("--", "sleep", "600") == 128 + number
    assert "is cancelled" in capsys.readouterr().err
    assert status_of_the_last(operated) in ("Cancelling", "Cancelled")


def test_a_pipe_that_is_closed_ends_it_there(
    operated: Operated, started: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def closed(stream: str, text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(streamed_command, "print_output", closed)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    assert started("--", "bash", "-c", "echo one; sleep 600") == 0
    assert "is cancelled" in capfd.readouterr().err


@pytest.mark.usefixtures("ordinary_signals")
def test_without_the_permission_to_cancel_it_says_that_it_continues(
    started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise refusal("AccessDeniedException", "CancelCommand")

    monkeypatch.setattr(Clock, "sleep", lambda *_: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(head_node.HeadNode, "cancel", refused)
    assert started("--", "sleep", "20") == 130
    errors = capsys.readouterr().err
    assert "could not be cancelled: An error occurred (AccessDeniedException)" in errors
    assert "The command continues. To show it again: ./ultracluster exec trn1-16 --attach " in errors


def test_an_earlier_command_can_be_shown_again(
    started: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started("--user", "root", "--output", "json", "--", "bash", "-c", "echo one; echo two >&2; exit 3") == 3
    assert (tmp_path / "user").read_text(encoding="utf-8") == "root\n"
    document = json.loads(capsys.readouterr().out)
    assert (document["stdout"], document["stderr"], document["exit_code"]) == ("one\n", "two\n", 3)
    assert started("--attach", document["command_id"]) == 3
    assert capsys.readouterr() == ("one\n", "two\n")
    assert started("--attach", "01234567-89ab-cdef-0123-456789abcdef") == 1
    assert "has no command 01234567" in capsys.readouterr().err


def test_without_the_permission_to_read_logs_the_output_comes_at_the_end(
    started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: object) -> str:
        raise refusal("AccessDeniedException", "GetLogEvents")

    monkeypatch.setattr(streamed_command.OutputStream, "new", refused)
    assert started("--", "bash", "-c", "sleep 0.5; seq 10000; echo wrong >&2; exit 1") == 1
    output, errors = capsys.readouterr()
    assert output == "".join(f"{number}\n" for number in range(1, 10_001))[:24_000]
    assert errors.count("logs:GetLogEvents is not allowed") == 1
    assert "wrong\n" in errors
    assert "failed to run" not in errors


def test_credentials_that_expire_meanwhile_leave_a_way_back(
    started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def expired(_: object) -> str:
        raise refusal("ExpiredTokenException", "GetLogEvents", "expired")

    monkeypatch.setattr(streamed_command.OutputStream, "new", expired)
    assert started("--", "true") == 2
    errors = capsys.readouterr().err
    assert "The command continues. To show it again: ./ultracluster exec trn1-16 --attach " in errors
    assert "get new session credentials" in errors


def test_an_end_that_does_not_come_is_reported(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--", "bash", "-c", "echo started; kill $PPID; sleep 1") == 143
    output, errors = capsys.readouterr()
    assert output == "started\n"
    assert "The end of the output has not arrived. To show it again: ./ultracluster exec trn1-16 --attach " in errors


@pytest.mark.parametrize("arguments", [[], ["sinfo"], ["--attach", "0", "--", "sinfo"], ["--timeout", "0", "--", "a"]])
def test_a_command_line_that_makes_no_sense_is_rejected(arguments: list[str]) -> None:
    assert ultracluster("exec", "trn1-16", *arguments) == 2


# --- standard input ---


def given(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    "content", [b"", b"one\n", bytes(range(256)) * 128], ids=["nothing", "a line", "as much as may"]
)
def test_standard_input_arrives_as_it_is(
    started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    given(monkeypatch, content)
    assert started("--stdin", "--", "bash", "-c", "sha256sum; exit 3") == 3
    assert capsys.readouterr().out.split()[0] == hashlib.sha256(content).hexdigest()


def test_more_than_a_command_can_bring_is_refused_before_it_starts(
    operated: Operated, started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, bytes(streamed_command.MOST_INPUT + 1))
    assert started("--stdin", "--", "cat") == 2
    assert "got more than 32,768 bytes on standard input; allowed: up to 32,768" in capsys.readouterr().err
    assert operated.client("ssm").list_commands()["Commands"] == []


def test_without_the_option_nothing_is_read_and_that_is_said(
    operated: Operated, started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(streamed_command, "is_something_left", lambda: True)
    monkeypatch.setattr("sys.stdin", None)
    operated.shell('runuser() { bash -c "$3"; }; export -f runuser; exec bash')  # which reads its script line by line
    assert started("--", "bash", "-c", "cat; echo done") == 0
    assert capsys.readouterr() == ("done\n", "Standard input is not sent to the command: --stdin sends it.\n")


@pytest.mark.parametrize("kind", ["pipe", "file", "device"])
def test_what_is_left_on_standard_input_is_seen_without_reading_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"ab")
    reader, writer = os.pipe() if kind == "pipe" else (os.open(path if kind == "file" else os.devnull, os.O_RDONLY), -1)
    try:
        if kind == "pipe":
            assert not streamed_command.is_something_left(reader), "nobody has closed it"
            os.write(writer, b"ab")
        assert streamed_command.is_something_left(reader) is (kind != "device")
        assert os.read(reader, 2) == (b"" if kind == "device" else b"ab")
        assert not streamed_command.is_something_left(reader)
    finally:
        os.close(reader)
    assert not streamed_command.is_something_left(reader), "it is closed"
