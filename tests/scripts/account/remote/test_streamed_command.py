"""A command on the head node, and its output in CloudWatch Logs, as `run`, `logs` and `submit` use them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from scripts.account.remote import head_node, streamed_command
from scripts.account.remote.streamed_command import StreamedCommand
from scripts.core.errors import UnusableError
from tests.scripts.operated import Operated


def test_no_shell_interprets_the_words() -> None:
    words = ("a b", "it's", '"', "$HOME", "*", "", "--", "a\nb", "ä", "`id`", "\\", "{{ x }}")
    command = streamed_command.login_command("somebody", ["printf", "<%s>", *words])
    script = f'runuser() {{ bash -c "$3"; }}; {shlex.join(command)}'
    printed = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout
    assert printed == "".join(f"<{each}>" for each in words)


@pytest.mark.parametrize("word", ["{{ssm:token}}", "a {{ ssm-secure:token }}"])
def test_words_that_systems_manager_would_replace_are_rejected(operated: Operated, word: str) -> None:
    deployment = operated.deployment()
    node = head_node.HeadNode(deployment)
    with pytest.raises(UnusableError, match="in the command, which Systems Manager replaces"):
        streamed_command.start(deployment, node, ["echo", word], seconds=1)


class Logs:
    """A client of CloudWatch Logs with one stream, which is created by its first event."""

    class exceptions:
        class ResourceNotFoundException(Exception):
            pass

    def __init__(self) -> None:
        self.messages: list[str] = []

    def get_log_events(self, *, nextToken: str = "0", **_: Any) -> dict[str, Any]:
        if not self.messages:
            raise self.exceptions.ResourceNotFoundException
        events = [{"message": each} for each in self.messages[int(nextToken) :][:2]]
        return {"events": events, "nextForwardToken": str(int(nextToken) + len(events))}


def test_an_output_is_read_to_its_mark() -> None:
    logs = Logs()
    stream = streamed_command.OutputStream(logs, "group", "stream", "MARK")
    assert (stream.new(), stream.is_started) == ("", False)
    logs.messages = ["a", "b", "c\n"]
    assert stream.new() == "a\nb\nc\n"
    assert (stream.new(), stream.is_complete) == ("", False)
    logs.messages += ["dMARK\nx", "y"]
    assert (stream.new(), stream.is_complete) == ("d", True)


@pytest.fixture
def impatient(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll often, on a head node whose users are all this one."""
    operated.shell('runuser() { bash -c "$3"; }; source /dev/stdin')
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setattr(streamed_command, "SECONDS_OF_GRACE", 0.5)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_POLLS", 0.05)


def test_the_outputs_are_kept_for_some_days(operated: Operated) -> None:
    logs, group = operated.client("logs"), "/ultracluster/trn1-16/retention"

    def days() -> int:
        streamed_command.create_log_group(logs, group)
        [described] = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        return int(described["retentionInDays"])

    assert days() == 7
    logs.put_retention_policy(logGroupName=group, retentionInDays=30)
    assert days() == 30, "somebody's own"


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user may write to; pytest's own are for one."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.usefixtures("impatient")
@pytest.mark.system
def test_a_command_of_another_user_is_ended_with_all_its_processes(operated: Operated, public: Path) -> None:
    """By the real runuser, whose user has no shell here, and the emulated agent, which ends a process group."""
    operated.shell(
        'PATH=$PATH:/usr/sbin:/sbin; runuser() { command runuser --shell /bin/bash "$@"; }; source /dev/stdin'
    )
    node = head_node.HeadNode(operated.deployment())
    words = ["bash", "-c", f"id --user --name >{public}/user; echo $$ >{public}/pid; sleep 600"]
    command = streamed_command.login_command("nobody", words)
    sent = streamed_command.start(operated.deployment(), node, command, seconds=600)
    pid = public / "pid"
    assert node.clock.until(lambda: pid.exists() and pid.read_text().endswith("\n"), every=0.05, limit=20)
    process = Path("/proc", pid.read_text(encoding="utf-8").strip())
    assert (public / "user").read_text(encoding="utf-8") == "nobody\n"
    assert process.exists()
    sent.cancel()
    assert node.clock.until(lambda: not process.exists(), every=0.05, limit=5)


@pytest.mark.usefixtures("impatient")
def test_a_command_that_takes_too_long_is_killed(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its last lines come after its end is known."""
    node = head_node.HeadNode(operated.deployment())
    sent = streamed_command.start(operated.deployment(), node, ["bash", "-c", "echo on; sleep 9"], seconds=1)
    new, answer, is_over = StreamedCommand.new, head_node.HeadNode.answer, False

    def late(self: StreamedCommand, write: streamed_command.Write) -> None:
        if is_over:
            new(self, write)

    def ended(self: head_node.HeadNode, command_id: str) -> head_node.Answer | None:
        nonlocal is_over
        try:
            return answer(self, command_id)
        except head_node.NotRunError:
            is_over = True
            raise

    monkeypatch.setattr(StreamedCommand, "new", late)
    monkeypatch.setattr(head_node.HeadNode, "answer", ended)
    with pytest.raises(head_node.NotRunError, match="did not run the command to its end: "):
        sent.follow(streamed_command.print_output)
    assert capsys.readouterr() == ("on\n", "")
