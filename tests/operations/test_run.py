"""`run`: a command on the head node, by Systems Manager's agent and CloudWatch Logs as the emulated AWS has them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts import run
from scripts.operations import head_node, streamed_command
from scripts.operations.clock import Clock
from scripts.operations.streamed_command import StreamedCommand
from tests.operations.account import Operated

SHELL = 'trap "exit 143" TERM; runuser() { printf "%s\\n" "$2" >"$TRACE/user"; bash -c "$4"; }; source /dev/stdin'
"""A node whose users are all this one."""
SCHEMA = Path(__file__).parents[2] / "docs/schemas/run.json"
Run = Callable[..., int]


@pytest.fixture
def started(operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Call the program with arguments, on a head node with a shell."""
    operated.shell(f"TRACE={tmp_path}; {SHELL}")
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setattr(streamed_command, "SECONDS_OF_GRACE", 0.5)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_LOOKS", 0.05)

    def call(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["run", "trn1-16", *arguments])
        return run.main()

    return call


def test_output_errors_and_exit_code_are_those_of_the_command(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--", "bash", "-c", "echo one; echo two >&2; echo three; exit 7") == 7
    assert capsys.readouterr() == ("one\nthree\n", "two\n")


def test_arguments_arrive_as_they_are(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("a b", "it's", '"', "$HOME", "*", "", "--", "a\nb", "ä", "`id`", "\\")
    assert started("--", "printf", "<%s>", *arguments) == 0
    assert capsys.readouterr().out == "".join(f"<{each}>" for each in arguments)


def test_output_of_any_size_is_whole(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--", "seq", "100000") == 0
    assert capsys.readouterr().out == "".join(f"{number}\n" for number in range(1, 100_001))


def test_a_line_that_is_cut_into_events_is_one_line(operated: Operated) -> None:
    group, name = "/ultracluster/trn1-16/commands", "01234567/stdout"
    logs = operated.client("logs")
    streamed_command._prepare(logs, group)
    operated.log(name, "a" * 200_000, "b", "c\n", "dMARK\nx", "y", group=group)
    stream = streamed_command._Stream(logs, group, name, "MARK")
    assert stream.new() == "a" * 200_000 + "b\nc\nd"
    assert stream.complete


def test_it_runs_as_the_cluster_s_user_unless_told_otherwise(started: Run, tmp_path: Path) -> None:
    assert started("--", "true") == 0
    assert (tmp_path / "user").read_text(encoding="utf-8") == "ubuntu\n"
    assert started("--user", "root", "--", "true") == 0
    assert (tmp_path / "user").read_text(encoding="utf-8") == "root\n"


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
    assert started("--", "bash", "-c", f"echo begun; until [ -e {seen} ]; do sleep 0.02; done; echo done") == 0
    assert capsys.readouterr().out == "begun\ndone\n"


def test_ctrl_c_ends_it_there(
    operated: Operated, started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Clock, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Clock, "sleep", interrupted)
    assert started("--", "sleep", "600") == 130
    assert "is cancelled" in capsys.readouterr().err
    [found] = operated.client("ssm").list_command_invocations()["CommandInvocations"][-1:]
    assert found["Status"] in ("Cancelling", "Cancelled")


def test_an_earlier_command_can_be_looked_at_again(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--json", "--", "bash", "-c", "echo one; exit 3") == 3
    command_id = json.loads(capsys.readouterr().out)["command_id"]
    assert started("--attach", command_id) == 3
    assert capsys.readouterr().out == "one\n"


def test_an_unknown_command_cannot(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--attach", "01234567-89ab-cdef-0123-456789abcdef") == 1
    assert "knows no command 01234567" in capsys.readouterr().err


def test_a_command_that_something_else_sent_has_no_output_in_logs(
    operated: Operated, started: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    node = head_node.HeadNode(operated.deployment())
    node.run("true")
    command_id = node.start("true")
    node._clock.until(lambda: node.answer(command_id) is not None, every=0.05, limit=10)
    assert started("--attach", command_id) == 1
    assert "was not sent by `run`" in capsys.readouterr().err


def test_the_document_is_as_its_schema_says(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--json", "--", "bash", "-c", "echo one; echo two >&2; exit 2") == 2
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(document)
    assert (document["stdout"], document["stderr"], document["exit_code"]) == ("one\n", "two\n", 2)


def test_the_outputs_are_kept_for_some_days(operated: Operated, started: Run) -> None:
    logs = operated.client("logs")
    for group in logs.describe_log_groups(logGroupNamePrefix="/ultracluster/trn1-16/")["logGroups"]:
        logs.delete_log_group(logGroupName=group["logGroupName"])
    assert started("--", "true") == 0
    [group] = logs.describe_log_groups(logGroupNamePrefix="/ultracluster/trn1-16/")["logGroups"]
    assert (group["logGroupName"], group["retentionInDays"]) == ("/ultracluster/trn1-16/commands", 7)


def test_without_the_right_to_read_logs_the_output_comes_at_the_end(
    started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: object) -> str:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetLogEvents")

    monkeypatch.setattr(streamed_command._Stream, "new", refused)
    assert started("--", "bash", "-c", "sleep 0.5; seq 10000; echo wrong >&2; exit 1") == 1
    output, errors = capsys.readouterr()
    assert output == "".join(f"{number}\n" for number in range(1, 10_001))[:24_000]
    assert errors.count("logs:GetLogEvents is not allowed") == 1
    assert "stdout is cut off after 24,000 characters" in errors
    assert "wrong\n" in errors
    assert "failed to run" not in errors


def test_credentials_that_expire_meanwhile_leave_a_way_back(
    started: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def expired(_: object) -> str:
        raise ClientError({"Error": {"Code": "ExpiredTokenException", "Message": "expired"}}, "GetLogEvents")

    monkeypatch.setattr(streamed_command._Stream, "new", expired)
    assert started("--", "true") == 2
    errors = capsys.readouterr().err
    assert "The command goes on, unseen. To look again: run --attach " in errors
    assert "get new session credentials" in errors


def test_an_end_that_does_not_come_is_told(started: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert started("--", "bash", "-c", "echo begun; kill $PPID; sleep 1") == 143
    output, errors = capsys.readouterr()
    assert output == "begun\n"
    assert "The end of the output has not come. Look again: run --attach" in errors


@pytest.mark.parametrize("arguments", [[], ["sinfo"], ["--attach", "0", "--", "sinfo"], ["--timeout", "0", "--", "a"]])
def test_a_command_line_that_makes_no_sense_is_refused(started: Run, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        started(*arguments)
    assert end.value.code == 2


def test_a_command_that_takes_too_long_is_ended(
    operated: Operated, started: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    node = head_node.HeadNode(operated.deployment())
    sent = streamed_command.start(operated.deployment(), node, ["bash", "-c", "echo on; sleep 9"], user="a", seconds=1)
    with pytest.raises(head_node.HeadNodeError, match="did not run the command to its end: "):
        sent.follow(streamed_command.print_output, streamed_command.print_remark, Clock())
    assert capsys.readouterr().out == "on\n"
