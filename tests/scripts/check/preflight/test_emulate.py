"""`emulate` makes an account, and tells another shell how to look at it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.scenarios import SCENARIOS
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


@pytest.mark.slow
def test_another_shell_finds_what_is_wrong() -> None:
    command = [sys.executable, "-m", "scripts", "emulate", "dev", "--scenario", "no-quota"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "scripts", "preflight", "dev", "--output", "json"],
            cwd=ROOT,
            env={**os.environ, **exports(process)},
            capture_output=True,
            text=True,
            check=False,
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=600) == 130
    finally:
        process.kill()
        process.communicate()
    failed = {each["check"] for each in json.loads(done.stdout)["results"] if each["status"] == "FAIL"}
    assert failed == {SCENARIOS["no-quota"].caught_by}
    assert done.returncode == 1
