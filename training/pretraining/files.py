"""Files that are on the disk, whole, when the function that wrote them returns."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Write a file and bring it to the disk; its directory is not brought there."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, data: bytes) -> None:
    """Put a file in the place of another, such that a reader finds the one or the other, whatever happens."""
    hidden = path.with_name(f".{path.name}.new")
    write(hidden, data)
    hidden.replace(path)
    synchronize(path.parent)


def synchronize(directory: Path) -> None:
    """Bring a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
