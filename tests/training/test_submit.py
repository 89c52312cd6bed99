"""`./ultracluster submit` on the cluster, and what it refuses; test_run_submit.py has the way from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import submit as cluster_submit
from bert import options as bert_options
from scripts.commands import submit
from scripts.core import options
from tests.command_line import ultracluster
from tests.fake_commands import write_commands

GIVEN = {each.name for each in submit.command.params} - set(options.COMMON) - {"debug", "deployment", "name"}
OPTIONS = {option for each in cluster_submit.parser()._actions for option in each.option_strings} - {"-h", "--help"}
PAGE = Path(__file__).parents[2] / "docs/reference/training.md"


def test_on_the_cluster_it_is_called_directly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_commands(tmp_path / "bin", {"sbatch": "exit 99", "python3": 'echo "$@"; exit 2'})
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert ultracluster("submit", "trn1-16", "--nodes", "16", "--output", "/fsx/my run", "--", "--phase", "2") == 2
    assert capfd.readouterr().out == (
        "/fsx/ultracluster/jobs/current/submit.py --program=bert --nodes=16 --output=/fsx/my run "
        "--node-dollars=21.5 --node-tflops=3040 --node-cores=32 -- --phase 2\n"
    )


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def test_help_and_page_name_the_options_of_the_program_and_no_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no option is broken at its hyphen
    with pytest.raises(SystemExit):
        bert_options.parse(["check", "--help"])
    there = options_in(capsys.readouterr().out) | OPTIONS
    [section] = re.findall(r"^## Options$.*?^## ", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    rows = "".join(re.findall(r"^\| `--.*?\|", section, re.MULTILINE))
    assert options_in(rows) <= there
    assert {"--data", "--output", "--phase", "--scaling", "--reference", "--keep"} <= options_in(rows)


def test_the_command_has_the_options_of_the_program_on_the_cluster() -> None:
    """All but what it knows of nodes by itself."""
    here = {option for each in submit.command.params for option in each.opts if each.name in GIVEN}
    assert here == OPTIONS - {"--node-dollars", "--node-tflops", "--node-cores"}
