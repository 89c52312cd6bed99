"""Files and directories that users name for results: only an earlier result is ever overwritten."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from scripts.core.errors import UnusableError

PAGE_MARK = b'<meta name="generator" content="ultracluster">'
"""What scripts/check/review/page.html has at its start."""
_SHOWN = 3


@contextmanager
def assembly(path: Path, option: str) -> Iterator[Path]:
    """Give a directory to write a cloud assembly to, which takes the place of a user's directory in the end.

    Until then the earlier assembly stays there.

    Raises:
        UnusableError: Something else is there, or it cannot be written.
    """
    _check(path, option, _is_assembly, "a new or empty directory, or an earlier assembly, which has a file cdk.out")
    is_new = not path.exists()
    path.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=path, prefix=".") as inside:  # the directory itself may be a mount point
            written = Path(inside) / "cdk.out"
            yield written
            for each in sorted(path.iterdir(), key=lambda each: each.name == "cdk.out"):  # the mark last
                if each != written.parent:
                    shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
            for each in written.iterdir():
                each.rename(path / each.name)
    finally:
        if is_new and not any(path.iterdir()):
            path.rmdir()


def check_page(path: Path, option: str) -> None:
    """Check that a page may be written to a file that a user names, and make the directories around it.

    Raises:
        UnusableError: Something else is there, or it cannot be written.
    """
    _check(path, option, _is_page, "a new or empty file, or an earlier page of this program")


def _is_assembly(path: Path) -> bool:
    return path.is_dir() and ((path / "cdk.out").is_file() or not any(path.iterdir()))


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(1000)
    return not start or PAGE_MARK in start


def _check(path: Path, option: str, is_own: Callable[[Path], bool], allowed: str) -> None:
    try:
        if path.is_symlink() or (path.exists() and not is_own(path)):
            raise UnusableError(f"{option}: got {path}, {_contents(path)}; allowed: {allowed}")
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise UnusableError(f"{option}: got {path}; {reason}; allowed: a place that can be written") from None
    locked = [each for each in (path.parent, path) if each.exists() and not os.access(each, os.W_OK)]
    if locked:
        raise UnusableError(f"{option}: got {path}; {locked[0]} cannot be written; allowed: a place that can be")


def _contents(path: Path) -> str:
    """Return what is at a path, in words."""
    if path.is_symlink():
        return f"a symbolic link to {path.readlink()}"
    if not path.is_dir():
        return "which is a file" if path.is_file() else "which is no file"
    names = [each.name for each in islice(path.iterdir(), _SHOWN + 1)]
    return f"a directory with {', '.join(names[:_SHOWN])}{' and more' if len(names) > _SHOWN else ''}"
