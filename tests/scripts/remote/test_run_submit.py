"""`submit` through Systems Manager, as from elsewhere than the cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from scripts.clock import Clock
from scripts.commands import submit
from scripts.deployment import Deployment
from scripts.remote import streamed_command
from tests.scripts.account import Operated

ANSWER = 'runuser() { printf "%s\\n" "$@" >"CALLED"; PROGRAM; }; source /dev/stdin'
"""A head node on which PROGRAM runs instead of what is asked for."""


@pytest.fixture(autouse=True)
def called_from_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There is no Slurm here."""
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["submit", "trn1-16", "--nodes", "16", "--output", "/fsx/my run"])


def answer(operated: Operated, directory: Path, program: str) -> Path:
    """Let the head node answer with a program, and return the file that tells what it was asked."""
    operated.shell(ANSWER.replace("CALLED", str(directory / "called")).replace("PROGRAM", program))
    return directory / "called"


def test_the_command_goes_to_the_head_node_and_its_answer_comes_back(
    operated: Operated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    called = answer(operated, tmp_path, "echo 'train        job 2'")
    assert submit.main() == 0
    assert capsys.readouterr() == ("train        job 2\n", "")
    asked = "python3 /fsx/ultracluster/jobs/current/submit.py --nodes 16 --output '/fsx/my run'"
    assert called.read_text(encoding="utf-8").splitlines() == ["--login", "ubuntu", "--session-command", asked]


def test_bad_input_is_the_exit_code_there_and_here(
    operated: Operated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(operated, tmp_path, "echo '--steps: got 0; allowed: a whole number from 1 on' >&2; return 2")
    assert submit.main() == 2
    assert capsys.readouterr().err == "--steps: got 0; allowed: a whole number from 1 on\n"


def test_a_command_that_never_ran_is_no_success(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    operated.shell("")
    assert submit.main() == 1
    assert "did not run the command to its end: Undeliverable" in capsys.readouterr().err


def test_ctrl_c_ends_it_there(
    operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Clock, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Clock, "sleep", interrupted)
    answer(operated, tmp_path, "sleep 600")
    assert submit.main() == 130
    assert "is cancelled" in capsys.readouterr().err


def test_without_a_head_node_it_says_so(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Deployment, "nodes", lambda _: [])
    assert submit.main() == 1
    told = "The cluster trn1-16 has no head node in us-west-2. How it is: make status ENV=trn1-16\n"
    assert capsys.readouterr().err == told


def test_credentials_that_cannot_be_used_are_told_with_what_helps(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def expired(_: Deployment) -> list[dict[str, Any]]:
        raise ClientError({"Error": {"Code": "ExpiredTokenException", "Message": "expired"}}, "DescribeInstances")

    monkeypatch.setattr(Deployment, "nodes", expired)
    assert submit.main() == 2
    assert "get new session credentials" in capsys.readouterr().err
