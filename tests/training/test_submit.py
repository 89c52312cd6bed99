"""`./ultracluster submit` on the cluster, and what it refuses; test_run_submit.py has the way from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.commands import submit
from tests.command_line import ultracluster
from tests.fake_commands import write_commands
from training import submit as cluster_submit
from training.pretraining import options

PAGE = Path(__file__).parents[2] / "docs/reference/training.md"


def test_on_the_cluster_it_is_called_directly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_commands(tmp_path / "bin", {"sbatch": "exit 99", "python3": 'echo "$@"; exit 2'})
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert ultracluster("submit", "trn1-16", "--nodes", "16", "--output", "/fsx/my run") == 2
    assert capfd.readouterr().out == ("/fsx/ultracluster/jobs/current/submit.py --nodes 16 --output /fsx/my run\n")


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def test_help_and_page_name_the_options_of_the_program_and_no_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no option is broken at its hyphen
    with pytest.raises(SystemExit):
        options.parse(["check", "--help"])
    there = options_in(capsys.readouterr().out) | options_in(cluster_submit.parser().format_usage())
    [section] = re.findall(r"^## Options$.*?^## ", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    rows = "".join(re.findall(r"^\| `--.*?\|", section, re.MULTILINE))
    for text in (rows, submit.__doc__ or "", cluster_submit.parser().format_help()):
        assert options_in(text) - {"--help"} <= there
        assert {"--data", "--output", "--phase", "--scaling", "--reference", "--keep"} <= options_in(text)
