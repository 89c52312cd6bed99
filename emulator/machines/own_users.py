"""Runs a command as root of a user namespace that has none of this computer's users; as root, in a mount namespace.

Run as ``own_users.py DIRECTORY ... -- COMMAND ...``. The namespace has 65,536 users, whom this computer knows as those
from `FIRST` on, above the ranges that systemd and containers take (https://systemd.io/UIDS-GIDS/). The directories are
at `seen(0)`, `seen(1)` and so on, read-only, with the same owners as here: what belongs to root belongs to its root
(idmapped mounts: https://docs.kernel.org/filesystems/idmappings.html). `SITE` is an empty directory for it.

Imports nothing of this project: it runs as a program.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FIRST: Final = 1_879_048_192
COUNT: Final = 65_536
_LAST: Final = 2**32 - 2
_MAP: Final = f"0 {FIRST} {COUNT}\n{_LAST} {FIRST + COUNT} 1\n"
"""The highest number is a user, too: rules of a firewall for all but root end with it (xt_owner.c)."""
_ROOT: Final = Path("/mnt")
SITE: Final = f"{_ROOT}/site"

# https://man7.org/linux/man-pages/man2/open_tree.2.html, mount_setattr.2.html, move_mount.2.html
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = -100, 0x1000, 1, 4
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_IDMAP = 0x1, 0x100000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def seen(number: int) -> str:
    """Return where the command sees one of the directories."""
    return f"{_ROOT}/computer/{number}"


def command(directories: Sequence[object]) -> list[str]:
    """Return what runs it, the beginning of a command."""
    return ["unshare", "--mount", sys.executable, __file__, *map(str, directories), "--"]


def main(directories: Sequence[str], command: Sequence[str]) -> None:
    """Become the command."""
    users = _make()
    trees = [_tree(directory, users) for directory in directories]
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(_ROOT)], check=True)
    Path(SITE).mkdir()
    for number, tree in enumerate(trees):
        target = seen(number)
        Path(target).mkdir(parents=True)
        _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
    os.set_inheritable(users, True)
    os.execvp("nsenter", ["nsenter", f"--user=/proc/self/fd/{users}", "--", *command])  # noqa: S606


def _make() -> int:
    """Make the namespace, and return its open file."""
    holder = ["unshare", "--user", "sh", "-c", "echo; read -r _"]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        if not process.stdout.readline():
            sys.exit("no user namespace")
        for kind in ("uid", "gid"):
            Path(f"/proc/{process.pid}/{kind}_map").write_text(_MAP, encoding="ascii")
        return os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY)


def _tree(directory: str, users: int) -> int:
    """Return a mount of a directory that has the namespace's owners and cannot be written to."""
    tree = _call(_OPEN_TREE, _AT_FDCWD, directory.encode(), _OPEN_TREE_CLONE)
    attributes = _Attributes(attr_set=_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_IDMAP, userns_fd=users)
    size = ctypes.sizeof(attributes)
    _call(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(attributes), size)
    return tree


def _call(number: int, *arguments: object) -> int:
    result: int = _LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        sys.exit(f"{os.strerror(error)} (system call {number})")
    return result


if __name__ == "__main__":
    separator = sys.argv.index("--")
    main(sys.argv[1:separator], sys.argv[separator + 1 :])
