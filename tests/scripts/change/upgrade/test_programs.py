"""The programs that an upgrade sends to a head node, run as they are."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pytest

from scripts.account.remote import program
from scripts.change.upgrade import backend, homes
from tests.scripts.head_node_shell import HeadNodeShell, run

MOUNTED = '[ "$3|$4|$5" = "lustre|--mountpoint|/f s" ] && echo fs-1'


@pytest.mark.parametrize(
    ("fakes", "more", "code", "says"),
    [
        ({"sinfo": "echo no contact >&2; false"}, (), 1, "no contact"),
        ({"findmnt": "false"}, (), 1, "no Lustre file system is mounted at /f s"),
        ({"mountpoint": "false"}, (), 0, "fs-1"),
        ({"mountpoint": "false"}, ("homes",), 1, "fs-1\nthe homes are not mounted at /home"),
        ({"mountpoint": '[ "$*" = "--quiet /home" ]'}, ("homes",), 0, "fs-1"),
    ],
)
def test_a_head_node_is_verified(
    tmp_path: Path, fakes: dict[str, str], more: tuple[str, ...], code: int, says: str
) -> None:
    shell = HeadNodeShell(tmp_path, **{"sinfo": "", "findmnt": MOUNTED, **fakes})
    done = run(shell.plain, program.of_file(backend.VERIFICATION, "/f s", *more))
    assert (done.returncode, (done.stdout + done.stderr).strip()) == (code, says)


MOUNT = """
printf '%s|' "$@" >>"$WORLD/mounts"
for target; do :; done
PATH=$REAL exec mount --bind "$WORLD/disk" "$target"
"""
RSYNC = r"""
PATH=$REAL
case "$*" in *--update*) ;; *) exit 90 ;; esac
for target; do before=${from-}; from=$target; done
case "$*" in
*--dry-run*)
    cd "$before"
    find . -type f | while read -r file; do cmp --quiet "$file" "$target/$file" || echo ">f.st...... $file"; done
    ;;
*)
    xargs --null -I NAME cp --archive --update "$before/NAME" "$target"
    for _ in $(cat "$WORLD/busy" 2>/dev/null); do
        sed -i 1d "$WORLD/busy"
        echo more >>/home/ada/notes
        break
    done
    if [ -e "$WORLD/code" ]; then echo "rsync error" >&2; exit "$(cat "$WORLD/code")"; fi
    ;;
esac
"""
"""Copies as rsync would, while somebody writes a file so often as `busy` has lines."""
FLOCK = """
PATH=$REAL
flock --nonblock "$@" || echo "waits with $*" >>"$WORLD/waits"
"""


@pytest.fixture
def shell(tmp_path: Path) -> HeadNodeShell:
    for path, text in {"home/ada/notes": "one", "home/bob/new": "two\n", "disk/ada/.kept": ""}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return HeadNodeShell(tmp_path, mount=MOUNT, rsync=RSYNC, flock=FLOCK)


def copy(shell: HeadNodeShell, wanted: str) -> subprocess.CompletedProcess[str]:
    words = program.of_file(homes.PROGRAM, "nfs", "nfsvers=4.2", "fs-1.fsx:/a b", wanted)
    return run(shell.rooted, words)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("wanted", ["once", "all"])
def test_homes_are_copied(shell: HeadNodeShell, wanted: str) -> None:
    """Also if a file was deleted meanwhile; nothing stays mounted, and what is newer there stays."""
    (shell.world / "disk/bob").mkdir()
    (shell.world / "disk/bob/new").write_text("two\n", encoding="utf-8")
    (shell.world / "code").write_text("24")
    done = copy(shell, wanted)
    report = "/home of this head node: 2 files, 7 bytes; on the homes: 3 files, 7 bytes.\n"
    assert (done.returncode, done.stdout) == (0, report), done.stderr
    assert (shell.world / "disk/ada/notes").read_text(encoding="utf-8") == "one"
    *given, directory, end = (shell.world / "mounts").read_text(encoding="utf-8").split("|")
    assert (given, end) == (["--types", "nfs", "-o", "nfsvers=4.2", "fs-1.fsx:/a b"], "")
    assert not Path(directory).exists()
    assert not (shell.world / "waits").exists()


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize(
    ("wanted", "changes", "code", "errors"),
    [("once", 9, 0, ""), ("all", 2, 0, ""), ("all", 3, 1, "1 files change while they are copied\n")],
)
def test_the_last_copy_has_every_file_or_fails(
    shell: HeadNodeShell, wanted: str, changes: int, code: int, errors: str
) -> None:
    (shell.world / "busy").write_text("1\n" * changes)
    done = copy(shell, wanted)
    assert (done.returncode, done.stderr) == (code, errors)
    same = (shell.world / "home/ada/notes").read_bytes() == (shell.world / "disk/ada/notes").read_bytes()
    assert same is (wanted == "all" and not code)


@pytest.mark.slow
@pytest.mark.system
def test_a_copy_that_fails_ends_with_its_code_and_leaves_nothing_mounted(shell: HeadNodeShell) -> None:
    (shell.world / "code").write_text("11")
    done = copy(shell, "once")
    assert (done.returncode, done.stdout, done.stderr) == (11, "", "rsync error\n")
    assert not Path((shell.world / "mounts").read_text(encoding="utf-8").split("|")[-2]).exists()


@pytest.mark.slow
@pytest.mark.system
def test_two_copies_wait_for_each_other(shell: HeadNodeShell) -> None:
    (shell.world / "run").mkdir()
    with (shell.world / "run/ultracluster-homes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert copy(shell, "once").returncode == 0
    assert (shell.world / "waits").read_text(encoding="utf-8") == "waits with 9\n"
