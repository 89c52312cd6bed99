"""`emulate` makes an account, and tells another shell how to look at it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from emulator.scenarios import SCENARIOS
from scripts import options
from scripts.commands import emulate
from scripts.emulated import prerequisites_of
from tests.command_line import ultracluster
from tests.end_to_end.test_rehearse_command import exports

ROOT = Path(__file__).parents[3]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs the command and returns its exit code and its complaints."""

    def called(*arguments: str) -> tuple[int, str]:
        return ultracluster("emulate", *arguments), capsys.readouterr().err

    return called


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if scenario.needs])
def test_what_is_missing_can_be_put_in(name: str, tmp_path: Path) -> None:
    raw = yaml.safe_load((options.CONFIG / "trn1-16.yaml").read_text(encoding="utf-8"))
    for path, value in emulate.EXAMPLES[SCENARIOS[name].needs].items():
        *parents, key = re.findall(r"\w+", path)
        reduce(lambda part, each: part[int(each) if each.isdigit() else each], parents, raw)[key] = value
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    assert SCENARIOS[name].target(prerequisites_of(load(tmp_path / "mine.yaml"))) is not None


def test_it_names_keys_values_and_file_of_what_is_missing(run: Any) -> None:
    code, said = run("dev", "--scenario", "rsa-key")
    assert code == 2
    assert "rsa-key: the scenario needs settings with cluster.head_node.ssh_key_name" in said
    assert "in config/dev.yaml, or in a copy, set for example:" in said
    assert '\n  cluster.head_node.ssh_key_name: "somebody"\n' in said


def test_the_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster("emulate", "--list-scenarios") == 0
    said = capsys.readouterr().out
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
