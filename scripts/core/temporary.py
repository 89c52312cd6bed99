"""Directories for a command's own files, removed at its end, or by a later command after a kill.

The kernel releases the locks of a process however it ends: who gets that of a directory knows that its owner is gone.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = ".ultracluster-"
_NAME: Final = re.compile(rf"{re.escape(_PREFIX)}\d+-[a-z0-9_]{{8}}")
"""With the number of the process that made it, and what `tempfile` adds."""


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Yield a new directory that only this user can enter, and remove it with all that is in it.

    Those that killed commands of this user have left are removed first.
    """
    _remove_abandoned(Path(tempfile.gettempdir()))
    with ExitStack() as stack:
        while True:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")))
            try:
                stack.enter_context(_locked(path))
            except (BlockingIOError, FileNotFoundError):
                continue  # another command has just taken it for an abandoned one
            except OSError:
                pass  # this file system has no locks: nobody removes what is there
            break
        yield path


def _remove_abandoned(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}*"):
        if _NAME.fullmatch(path.name):
            with suppress(OSError), _locked(path):
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a directory that belongs to this user alone, and is no symbolic link.

    Raises:
        OSError: It does not, it is one, it is gone, or another process holds the lock.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(directory)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != stat.S_IRWXU:
            raise PermissionError(path)
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(status, path.lstat()):
            raise FileNotFoundError(path)
        yield
    finally:
        os.close(directory)
