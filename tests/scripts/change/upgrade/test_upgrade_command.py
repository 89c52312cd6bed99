"""The command line of an upgrade."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from botocore.exceptions import NoCredentialsError

from scripts.change.upgrade import backend as upgrade_backend
from scripts.change.upgrade.upgrade import UpgradeResult
from scripts.core import options
from scripts.core.errors import OperationError
from scripts.core.options import CONFIG
from tests.command_line import ultracluster
from tests.scripts.change.destroy.accounts import Terminal
from tests.scripts.change.upgrade.test_upgrade import OTHER_OS, STEPS, FakeBackend


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the programs find a copy of config/dev.yaml, and no account."""
    (tmp_path / "dev.yaml").write_bytes((CONFIG / "dev.yaml").read_bytes())
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    return tmp_path


@pytest.fixture
def backend(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    made = FakeBackend(folder)
    monkeypatch.setattr("scripts.account.operations.check", lambda _: [])
    monkeypatch.setattr(upgrade_backend, "UpgradeBackend", lambda *_, **__: made)
    return made


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, terminal: io.StringIO | None = None) -> int:
    monkeypatch.setattr(sys, "stdin", terminal or io.StringIO())
    return ultracluster("upgrade", "dev", *arguments)


@pytest.mark.parametrize("arguments", [["--output", "json"], ["--abandon"]])
def test_without_a_terminal_somebody_must_have_agreed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert "pass --confirm dev, or --dry-run" in capsys.readouterr().err


def test_json_is_all_that_is_printed(
    backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--set", OTHER_OS, "--confirm", "dev", "--output", "json") == 0

    printed = UpgradeResult.model_validate_json(capsys.readouterr().out)
    assert (printed.outcome, printed.cluster) == ("complete", "dev-2")
    assert [each.name for each in printed.steps] == STEPS


def test_somebody_at_a_terminal_is_asked(
    backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--set", OTHER_OS, terminal=Terminal("y\nyes\n")) == 1

    printed, asked = capsys.readouterr()
    assert asked.count("Continue? [y/N]") == 3
    assert "Stopped. The same command continues here." in printed  # the end of the input is no
    assert sorted(backend.statuses) == [1, 2]

    assert run(monkeypatch, "--abandon", terminal=Terminal("y\n" * 3)) == 0
    assert sorted(backend.statuses) == [1]
    assert "Abandoned. The cluster is dev." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"), [(OperationError("the head node does not answer"), 1), (KeyboardInterrupt(), 130)]
)
def test_an_end_in_mid_way_tells_what_was_done(
    backend: FakeBackend,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
) -> None:
    def refuse(_: object) -> None:
        raise error

    monkeypatch.setattr(backend, "verify", refuse)

    assert run(monkeypatch, "--set", OTHER_OS, "--confirm", "dev") == code

    errors = capsys.readouterr().err
    assert str(error) in errors
    assert "Done so far: settings, deploy. What AWS has started continues. The same command continues where" in errors


def test_without_credentials_nothing_is_said_to_continue(
    backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> None:
        raise NoCredentialsError

    monkeypatch.setattr(backend, "clusters", refuse)
    assert run(monkeypatch, "--dry-run") == 2
    assert "continues" not in capsys.readouterr().err
