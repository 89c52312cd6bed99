"""`submit` through Systems Manager, as from elsewhere than the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.account.deployment import Deployment
from scripts.account.remote import streamed_command
from scripts.core.errors import UnusableError
from scripts.use.submission import submit
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from tests.stacks.choices import use_arm
from tests.stacks.deployments import edited

SHELL = 'runuser() { printf "%s\\n" "$@" >"CALLED"; PROGRAM; }; source /dev/stdin'
"""A head node on which PROGRAM runs in place of the command."""


@pytest.fixture(autouse=True)
def elsewhere(operated: Operated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run where there is no Slurm; the emulated AWS, which needs programs, is started before."""
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize(
    ("program", "result"),
    [
        ("echo 'train        job 2'", (0, "train        job 2\n", "")),
        ("echo '--steps: got 0' >&2; return 2", (2, "", "--steps: got 0\n")),
    ],
)
def test_the_command_runs_on_the_head_node_and_its_result_comes_back(
    operated: Operated,
    tmp_path: Path,
    program: str,
    result: tuple[int, str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    called = tmp_path / "called"
    operated.shell(SHELL.replace("CALLED", str(called)).replace("PROGRAM", program))
    assert (
        ultracluster("submit", "trn1-16", "--nodes", "16", "--output", "/fsx/my run"),
        *capsys.readouterr(),
    ) == result
    options = "--program=bert --nodes=16 '--output=/fsx/my run' --node-dollars=21.5 --node-tflops=3040 --node-cores=32"
    command = f"python3 /fsx/ultracluster/jobs/current/submit.py {options}"
    assert called.read_text(encoding="utf-8").splitlines() == ["--login", "--session-command", command, "--", "ubuntu"]


def test_a_command_that_never_ran_is_no_success(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    operated.shell("")
    assert ultracluster("submit", "trn1-16", "--nodes", "16", "--output", "/fsx/my run") == 1
    error = capsys.readouterr().err
    assert "does not answer (Undeliverable): it may be booting or stopped, or this emulated AWS" in error
    assert "hint: ./ultracluster status trn1-16" in error


def test_without_a_neuron_sdk_there_is_nothing_to_call() -> None:
    with pytest.raises(UnusableError, match=r"`cluster\.neuron_sdk` is null in"):
        submit(Deployment("arm", edited("trn1-16", use_arm)), "bert", [], [])
