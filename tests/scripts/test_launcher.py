"""`./ultracluster`, the launcher: environments, arguments, exit code and the current directory."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.core import environments, options

LAUNCHER = options.ROOT / "ultracluster"
PROGRAM = """\
import os, sys
print(*sys.argv[1:], sep="|")
print(os.getcwd())
sys.exit(7)
"""
"""Stands in a checkout of a test for the command line."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout whose environments are complete, with a program that prints its arguments."""
    root = tmp_path / "a checkout"
    for name in environments.PINS:
        for pins in environments.PINS[name]:
            (root / pins).parent.mkdir(parents=True, exist_ok=True)
            (root / pins).write_text("", encoding="utf-8")
    shutil.copy(LAUNCHER, root)
    (root / "scripts/core").mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(environments.__file__), root / "scripts/core")
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (root / "program.py").write_text(PROGRAM, encoding="utf-8")
    python.write_text(f'#!/bin/sh\nshift 3\nexec python3 "{root}/program.py" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    for name in (".uv", ".venv", ".venv-pcluster", "node_modules"):
        (root / name).mkdir(exist_ok=True)
        (root / name / ".complete").write_text(f"{root}\n", encoding="utf-8")
    return root


def launch(
    launcher: Path, *words: str, directory: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(variables or {})}
    return subprocess.run(
        [str(launcher), *words], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def test_arguments_exit_code_and_directory_are_untouched(checkout: Path, tmp_path: Path) -> None:
    words = ["exec", "a b", "--", "*", "$HOME", "", "'"]
    done = launch(checkout / "ultracluster", *words, directory=tmp_path)
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout.splitlines() == ["|".join(words), str(tmp_path)]


def test_a_link_leads_to_its_checkout(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ultracluster").symlink_to("../a checkout/ultracluster")
    assert launch(tmp_path / "bin" / "ultracluster", directory=tmp_path).returncode == 7


@pytest.mark.parametrize("pins", ["constraints.txt", "package-lock.json", "nodes/requirements-uv.txt"])
def test_a_changed_pin_builds_the_environments_first(checkout: Path, tmp_path: Path, pins: str) -> None:
    later = (checkout / ".venv" / ".complete").stat().st_mtime + 10
    os.utime(checkout / pins, (later, later))
    done = launch(checkout / "ultracluster", directory=tmp_path, variables={"PYTHON": "no-such-python"})
    assert done.returncode == 2
    assert "no-such-python does not run; install Python 3.11 or newer" in done.stderr


def test_a_checkout_that_was_moved_builds_the_environments_again(checkout: Path, tmp_path: Path) -> None:
    moved = checkout.rename(tmp_path / "elsewhere")
    done = launch(moved / "ultracluster", directory=tmp_path, variables={"PYTHON": "no-such-python"})
    assert done.returncode == 2


def fake_python(directory: Path, script: str) -> dict[str, str]:
    python = directory / "fake-python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o755)
    return {"PYTHON": str(python)}


def test_a_python_that_is_too_old(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".venv" / ".complete").unlink()
    old = fake_python(tmp_path, '[ "$1" = -V ] && echo Python 3.9.2; case $2 in "") exit 0;; *) exit 1;; esac')
    done = launch(checkout / "ultracluster", directory=tmp_path, variables=old)
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "is Python 3.9.2" in done.stderr


def test_a_python_without_venv(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".uv" / ".complete").unlink()
    (tmp_path / "ensurepip.py").write_text("raise ImportError", encoding="utf-8")  # Debian's Python has none
    python = fake_python(tmp_path, f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"')
    done = launch(checkout / "ultracluster", directory=tmp_path, variables=python)
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no venv module\n\nhint: install it; Debian and Ubuntu: apt install python3-venv\n" in done.stderr
    assert not (checkout / ".uv" / ".complete").exists()


def test_completion_never_builds(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".venv" / ".complete").unlink()
    done = launch(checkout / "ultracluster", directory=tmp_path, variables={"_ULTRACLUSTER_COMPLETE": "bash_complete"})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_a_checkout_that_cannot_be_written_to(checkout: Path) -> None:
    (checkout / ".venv" / ".complete").unlink()
    checkout.chmod(0o555)
    drop_bounding, dac_override = 24, 1  # linux/prctl.h, linux/capability.h: without it root cannot write either
    done = subprocess.run(
        [checkout / "ultracluster"],
        preexec_fn=lambda: ctypes.CDLL(None).prctl(drop_bounding, dac_override),
        capture_output=True,
        text=True,
        check=False,
    )
    checkout.chmod(0o755)
    message = f"error: the environments cannot be written to {checkout}: Permission denied\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_without_a_network_it_says_what_failed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environments, "ROOT", checkout)
    uv = checkout / ".uv" / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text("#!/bin/sh\necho 'error: dns error: failed to lookup address' >&2\nexit 2\n", encoding="utf-8")
    uv.chmod(0o755)
    monkeypatch.setattr(environments, "UV", uv)
    (checkout / ".venv-pcluster" / ".complete").unlink()
    monkeypatch.setattr("sys.argv", ["environments.py"])
    assert environments.main() == 2
    message = capsys.readouterr().err
    assert "failed to lookup address" in message
    assert "hint: packages come from PyPI and npm" in message
    assert not environments.is_complete(".venv-pcluster")


def test_an_environment_is_built_again_until_it_is_complete(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ROOT", checkout)
    assert environments.is_complete("node_modules")
    with pytest.raises(RuntimeError), environments.building("node_modules"):
        raise RuntimeError
    assert not environments.is_complete("node_modules")


def test_one_set_up_at_a_time(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import fcntl

    monkeypatch.setattr(environments, "ROOT", checkout)
    tried: list[int] = []

    def flock(_: int, how: int) -> None:
        tried.append(how)
        if how & fcntl.LOCK_NB:
            raise BlockingIOError

    monkeypatch.setattr(fcntl, "flock", flock)
    with environments.locked():
        pass
    assert "waiting for it" in capsys.readouterr().err
    assert tried == [fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX]
