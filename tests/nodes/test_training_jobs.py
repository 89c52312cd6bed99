"""The programs of training jobs on the shared file system, unpacked by the head node's script from an S3 of files."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

from tests.fake_commands import write_commands

SCRIPTS = Path(__file__).parents[2] / "nodes"
FIRST, SECOND = "0123456789abcdef", "fedcba9876543210"
FILES = {"bert/job.sh": "echo trained\n", "README.md": "how\n"}
AWS = """
    echo "$*" >>"$here/calls"
    if [[ -e $here/hold ]]; then touch "$here/held"; exec sleep 60; fi
    if [[ -e $here/error ]]; then cat "$here/error" >&2; rm "$here/error"; exit 1; fi
    object=$here/${6#s3://}
    missing="fatal error: An error occurred (404) when calling the HeadObject operation: Key does not exist"
    [[ -e $object ]] || { echo "$missing" >&2; exit 1; }
    cp "$object" "$7"
    """


class HeadNode:
    """A head node whose file system is a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "fsx" / "ultracluster" / "jobs"
        for directory in ("assets", "fsx"):
            (root / directory).mkdir()
        write_commands(root / "bin", {"aws": AWS, "sleep": "[[ $1 == 60 ]] && exec /bin/sleep 60; true"})
        for key in (FIRST, SECOND):
            with zipfile.ZipFile(root / "assets" / f"{key}.zip", "w") as archive:
                for name, text in FILES.items():
                    archive.writestr(name, f"{text}{key}\n")

    def start(self, jobs: str) -> subprocess.Popen[str]:
        script = dedent(f"""\
            set -euo pipefail
            exec 2>&1
            source {SCRIPTS}/lib/common.sh
            source {SCRIPTS}/install/training_jobs.sh
            mount_dir={self.root}/fsx region=us-west-2 jobs={jobs}
            install_training_jobs
            """)
        environment = {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "here": str(self.root)}
        return subprocess.Popen(
            ["bash", "-c", script, "head_node.sh"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True,
        )  # fmt: skip

    def run(self, jobs: str) -> tuple[int, str]:
        """Return the exit code and the output."""
        with self.start(jobs) as process:
            output, _ = process.communicate()
        return process.returncode, output

    def error(self, text: str) -> None:
        """Let the next download fail."""
        (self.root / "error").write_text(f"{text}\n", encoding="utf-8")

    @property
    def calls(self) -> list[str]:
        calls = self.root / "calls"
        return calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []

    @property
    def versions(self) -> set[str]:
        """What is in the directory of all versions."""
        return {path.name for path in self.directory.iterdir()}


@pytest.fixture
def head_node(tmp_path: Path) -> HeadNode:
    return HeadNode(tmp_path)


def address(key: str) -> str:
    return f"s3://assets/{key}.zip"


def test_users_find_the_programs_of_new_jobs_at_current(head_node: HeadNode) -> None:
    code, output = head_node.run(address(FIRST))
    assert code == 0, output
    assert output.endswith(f"new jobs start from {head_node.directory}/{FIRST}\n")
    current = head_node.directory / "current"
    assert current.readlink() == Path(FIRST)
    for name, text in FILES.items():
        assert (current / name).read_text(encoding="utf-8") == f"{text}{FIRST}\n"
    assert all(path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644) for path in current.rglob("*"))
    assert head_node.versions == {FIRST, "current"}
    for name in ("compile-cache", "envs"):
        assert (head_node.root / "fsx/ultracluster" / name).stat().st_mode & 0o7777 == 0o1777
    [call] = head_node.calls
    assert call.startswith(f"s3 cp --region us-west-2 --only-show-errors {address(FIRST)} {head_node.directory}/.new-")


def test_other_programs_get_a_directory_of_their_own_and_the_old_ones_stay(head_node: HeadNode) -> None:
    for key in (FIRST, SECOND):
        assert head_node.run(address(key))[0] == 0
        assert (head_node.directory / "current").readlink() == Path(key)
    assert head_node.run("''") == (0, ""), "without programs nothing happens"
    assert head_node.versions == {FIRST, SECOND, "current"}
    assert head_node.run(address(FIRST))[0] == 0
    assert (head_node.directory / "current").readlink() == Path(FIRST)
    assert len(head_node.calls) == 2


@pytest.mark.parametrize(
    ("size", "failure"),
    [
        (None, "does not exist. To do: deploy again, which uploads it."),
        (-40, "is no complete zip file. To do: delete it, then deploy again, which uploads it."),
    ],
    ids=["missing", "truncated"],
)
def test_an_archive_that_cannot_be_used_is_reported_and_the_old_programs_stay(
    head_node: HeadNode, size: int | None, failure: str
) -> None:
    head_node.error("fatal error: Unable to locate credentials")
    code, output = head_node.run(address(FIRST))
    assert code == 0, output
    assert f"{address(FIRST)} cannot be fetched; once more in " in output, "which may pass"
    archive = head_node.root / f"assets/{SECOND}.zip"
    if size:
        archive.write_bytes(archive.read_bytes()[:size])
    else:
        archive.unlink()
    code, output = head_node.run(address(SECOND))
    assert code == 24
    assert output.splitlines()[-1] == f"head_node.sh: failed (24): {address(SECOND)} {failure}"
    assert len(head_node.calls) == 3
    assert (head_node.directory / "current").readlink() == Path(FIRST)
    assert SECOND not in head_node.versions


def test_a_run_that_was_killed_half_way_leaves_nothing_that_is_used(head_node: HeadNode) -> None:
    (head_node.root / "hold").touch()
    with head_node.start(address(FIRST)) as process:
        end = time.monotonic() + 600
        while not (head_node.root / "held").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    (head_node.root / "hold").unlink()
    [left] = head_node.versions
    assert left.startswith(".new-")
    assert head_node.run(address(FIRST))[0] == 0
    assert head_node.versions == {left, FIRST, "current"}, "what is left may be of another cluster, at work just now"
    old = time.time() - 2 * 3600
    os.utime(head_node.directory / left, (old, old))
    assert head_node.run(address(SECOND))[0] == 0
    assert head_node.versions == {FIRST, SECOND, "current"}


def test_another_cluster_may_be_first(head_node: HeadNode) -> None:
    """It put the same directory in place while this one downloaded."""
    move = 'mkdir -p "${!#}/theirs" 2>/dev/null; exec /bin/mv "$@"'
    write_commands(head_node.root / "bin", {"mv": move})
    (head_node.directory).mkdir(parents=True)
    (head_node.directory / "current").symlink_to(FIRST)
    code, output = head_node.run(address(FIRST))
    assert code == 0, output
    assert (head_node.directory / FIRST / "theirs").exists()
    assert head_node.versions == {FIRST, "current"}
