"""`init --from` as a command: what it asks, prints and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.settings import load
from scripts.core import options
from scripts.core.errors import ExitCode
from tests.command_line import ultracluster
from tests.scripts.change.init.test_import import KNOWN, PLAIN

GIVEN = [
    word
    for key, value in KNOWN.items()
    for word in (["--zone", value] if key == "zone_id" else [] if key == "region" else ["--value", f"{key}={value}"])
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(options, "CONFIG", tmp_path / "config")
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.yaml").write_text(PLAIN, encoding="utf-8")
    return tmp_path


def test_it_writes_the_settings_and_tells_each_difference(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster("init", "mine", "--from", "ours.yaml", *GIVEN) == ExitCode.DONE
    said = capsys.readouterr().err
    assert "Changed, against ours.yaml:" in said
    assert "SSM parameter" in said
    assert "  Scheduling.SlurmSettings.QueueUpdateStrategy: 'DRAIN': a change waits for jobs" in said
    path = folder / "config/mine.yaml"
    assert load(path).cluster.queues[0].name == "batch"
    before = path.read_text(encoding="utf-8")
    assert ultracluster("init", "mine", "--from", "ours.yaml", *GIVEN) == ExitCode.FAILED
    assert path.read_text(encoding="utf-8") == before


def test_without_a_terminal_all_that_is_missing_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PLAIN.replace("ours\n    Allowed", "<key>\n    Allowed")
    (folder / "ours.yaml").write_text(text, encoding="utf-8")
    assert ultracluster("init", "mine", "--from", "ours.yaml") == ExitCode.UNUSABLE
    said = capsys.readouterr().err
    for key in ["--zone ZONE-ID", "ours.yaml:9 HeadNode.Ssh.KeyName", *(KNOWN.keys() - {"region", "zone_id"})]:
        assert key in said
    assert not (folder / "config/mine.yaml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "ours.yaml", "--nodes", "3"], "--from and --nodes exclude each other"),
        (["--from", "ours.yaml", "--template", "dev"], "--from and --template exclude each other"),
        (["--value", "a=b"], "--value is of use with --from alone"),
        (["--new-network"], "--new-network is of use with --from alone"),
        (["--from", "ours.yaml", "--value", "a"], "got a; allowed: KEY=VALUE"),
        (["--from", "ours.yaml", *GIVEN, "--value", "typo=1"], "got typo; allowed: what ours.yaml leaves open"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    (folder / "config/dev.yaml").write_text("", encoding="utf-8")
    assert ultracluster("init", "mine", *words) == ExitCode.UNUSABLE
    assert said in capsys.readouterr().err


def test_what_was_answered_is_repeated_when_the_configuration_cannot_be_taken(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLAIN.replace("m5.4xlarge", "${TYPE}")
    (folder / "ours.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.prompt", lambda *_, **__: "no-such.type")
    assert ultracluster("init", "mine", "--from", "ours.yaml", *GIVEN) == ExitCode.UNUSABLE
    said = capsys.readouterr().err
    assert "ours.yaml:5: HeadNode.InstanceType" in said
    assert "--value 'TYPE=no-such.type'" in said
