"""`make submit` on the cluster, and what it refuses; tests/operations/test_run_submit.py has the way from elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import submit
from scripts.operations import command


def test_on_the_cluster_it_is_called_directly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["submit", "trn1-16", "--nodes", "16", "--output", "/fsx/my run"])
    for name, body in {"sbatch": "exit 99", "python3": 'echo "$@"; exit 2'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    assert submit.main() == 2
    assert capfd.readouterr().out == ("/fsx/ultracluster/jobs/current/submit.py --nodes 16 --output /fsx/my run\n")


@pytest.mark.parametrize("arguments", [[], ["trn2"]])
def test_an_unknown_environment_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["submit", *arguments])
    with pytest.raises(SystemExit) as end:
        submit.main()
    assert end.value.code == 2


def test_settings_that_cannot_be_used_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text("name: 1\n", encoding="utf-8")
    monkeypatch.setattr(command, "CONFIG", tmp_path)
    monkeypatch.setattr(sys, "argv", ["submit", "mine"])
    assert submit.main() == 2
    assert "mine.yaml" in capsys.readouterr().err
