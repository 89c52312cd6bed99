"""`emulate` makes an account, and tells another shell how to look at it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from emulator.scenarios import SCENARIOS
from scripts.core.errors import OperationError
from scripts.rehearse.emulate import wait_for_ctrl_c
from tests.command_line import Call
from tests.end_to_end.test_rehearse_command import exports

ROOT = Path(__file__).parents[4]


def test_it_names_what_is_missing_and_the_file(call: Call) -> None:
    code, _, said = call("emulate", "dev", "--scenario", "rsa-key")
    assert code == 2
    assert "rsa-key: the scenario needs settings with cluster.head_node.ssh_key_name" in said
    assert "set it in config/dev.yaml, or in a copy" in said


def test_the_scenarios_are_listed(call: Call) -> None:
    code, said, _ = call("emulate", "--list-scenarios")
    assert code == 0
    assert [name for name, each in SCENARIOS.items() if f"{name} " not in said or each.what not in said] == []


def test_ctrl_c_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        wait_for_ctrl_c(Mock(wait=Mock(side_effect=KeyboardInterrupt)))


@pytest.mark.parametrize(("code", "how"), [(-9, "was killed (SIGKILL)"), (1, "ended with exit code 1")])
def test_a_server_that_ends_by_itself_is_told(monkeypatch: pytest.MonkeyPatch, code: int, how: str) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(OperationError, match=re.escape(f"The emulated AWS {how}: all that was in it is gone")):
        wait_for_ctrl_c(Mock(wait=Mock(return_value=code)))


def server_of(process: subprocess.Popen[str]) -> int:
    """Return the process of the emulated AWS."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    [pid] = [each for each in children if b"emulator.server" in Path(f"/proc/{each}/cmdline").read_bytes()]
    return int(pid)


@pytest.mark.slow
def test_another_shell_finds_what_is_wrong_and_this_one_when_the_server_is_killed() -> None:
    command = [sys.executable, "-m", "scripts", "emulate", "dev", "--scenario", "no-quota"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "scripts", "preflight", "dev", "--output", "json"],
            cwd=ROOT,
            env={**os.environ, **exports(process)},
            capture_output=True,
            text=True,
            check=False,
        )
        os.kill(server_of(process), signal.SIGKILL)
        errors = process.communicate(timeout=600)[1]
        assert (process.returncode, errors.splitlines()[0]) == (
            1,
            "error: The emulated AWS was killed (SIGKILL): all that was in it is gone",
        )
    finally:
        process.kill()
        process.communicate()
    failed = {each["check"] for each in json.loads(done.stdout)["results"] if each["status"] == "FAIL"}
    assert failed == {SCENARIOS["no-quota"].caught_by}
    assert done.returncode == 1
