"""Files of commands, which are gone at their end, or after a kill with the next command; never anybody else's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from scripts.core.options import ROOT
from scripts.core.temporary import temporary_directory

NAME = ".ultracluster-123-abcdefgh"
PROGRAM = """
import time
from scripts.core.temporary import temporary_directory
with temporary_directory() as directory:
    (directory / "file").touch()
    print(directory, flush=True)
    time.sleep(3600)
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What TMPDIR names."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def make(path: Path, mode: int = 0o700) -> Path:
    """Make a directory as a killed command has left it."""
    path.mkdir()
    path.chmod(mode)
    (path / "file").touch()
    return path


def test_a_directory_is_of_one_user_and_goes_at_the_end(parent: Path) -> None:
    with temporary_directory() as directory, temporary_directory() as second:
        assert {each.stat().st_mode & 0o777 for each in (directory, second)} == {0o700}
        assert set(parent.iterdir()) == {directory, second}
        (directory / "file").touch()
    assert not list(parent.iterdir())


def test_what_a_killed_command_has_left_goes_and_that_of_a_running_one_stays(parent: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        with temporary_directory():
            assert (theirs / "file").exists()
        process.kill()
    assert (theirs / "file").exists()
    with temporary_directory() as directory:
        assert list(parent.iterdir()) == [directory]


@pytest.mark.parametrize("name", [".ultracluster-notes", ".ultracluster-123-abcdefgh.zip", "ultracluster-123-abcdefgh"])
def test_directories_of_other_names_stay(name: str, parent: Path) -> None:
    path = make(parent / name)
    with temporary_directory():
        assert (path / "file").exists()


def test_one_that_others_may_enter_stays(parent: Path) -> None:
    path = make(parent / NAME, mode=0o755)
    with temporary_directory():
        assert (path / "file").exists()


def test_one_of_another_user_stays(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, own = make(parent / NAME), os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with temporary_directory():
        assert (path / "file").exists()


def test_no_symbolic_link_is_followed(parent: Path) -> None:
    target = make(parent / "target")
    (parent / NAME).symlink_to(target)
    (make(parent / NAME.replace("123", "124")) / "link").symlink_to(target)
    with temporary_directory():
        assert (target / "file").exists()
        assert {each.name for each in parent.glob(".ultracluster-12[34]-*")} == {NAME}


def test_all_commands_use_it() -> None:
    others = {
        "check/targets.py": "beside what it replaces",
        "core/environments.py": "a file without a name",
        "core/temporary.py": "itself",
        "upkeep/bench/costs.py": "measures",
        "upkeep/bench/synth.py": "measures",
        "use/costs/summary.py": "runs on the head node",
    }
    sources = {path.relative_to(ROOT / "scripts").as_posix(): path for path in (ROOT / "scripts").rglob("*.py")}
    importing = re.compile(r"^ *(?:import tempfile|from tempfile import)", re.MULTILINE)
    assert {name for name, path in sources.items() if importing.search(path.read_text(encoding="utf-8"))} == set(others)
