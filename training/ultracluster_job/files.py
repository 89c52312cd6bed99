"""Files on storage that all nodes share: whole and on the disk when a function returns; and one run in a directory."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
from pathlib import Path

LOCK = ".lock"
CHECKPOINTS = "checkpoints"
STATE = "state.pt"
"""A checkpoint's file."""
IDENTITY = "identity"
"""Under which a checkpoint tells what it is of."""
STOP = "stop"
"""A file of this name in the run's directory asks for a checkpoint and an end with STOPPED."""
_LOCK_TIMEOUT = 60  # seconds: a file system takes a moment to see that a node is gone, and to release its locks


class HeldError(Exception):
    """Another process has the directory; the message tells which."""


def replace(path: Path, data: bytes) -> None:
    """Put a file in the place of another, such that a reader finds the one or the other, whatever happens."""
    hidden = path.with_name(f".{path.name}.new")
    with hidden.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
    synchronize(path.parent)


def numbered(directory: Path, pattern: str) -> list[tuple[int, Path]]:
    """Return the checkpoints that match a pattern with their steps, the last numbers in their names; the newest first.

    Hidden names and those with ".tmp" are of checkpoints that are being written. train.sbatch counts in the same way.
    """
    named = ((re.findall(r"\d+", path.name), path) for path in directory.glob(pattern))
    whole = [(int(numbers[-1]), path) for numbers, path in named if numbers and path.name[0] != "."]
    return sorted((each for each in whole if ".tmp" not in each[1].name), reverse=True)


def synchronize(directory: Path) -> None:
    """Bring a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(directory: Path) -> int:
    """Lock a directory until the descriptor that is returned is closed, or this process ends, however it does.

    The lock holds on all nodes, for FSx for Lustre is mounted with ``flock``:
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/mounting-ec2-instance.html.

    Raises:
        HeldError: Another process had it all the time, a minute.
        OSError: The directory cannot be written to, or the file system has no locks.
    """
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _wait_for_lock(descriptor)
        os.ftruncate(descriptor, os.write(descriptor, _who().encode()))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _wait_for_lock(descriptor: int) -> None:
    end = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise HeldError(os.read(descriptor, 1000).decode().strip()) from None
            time.sleep(1)
        else:
            return


def _who() -> str:
    job = os.environ.get("SLURM_JOB_ID")
    return f"{f'job {job}, ' if job else ''}process {os.getpid()} on {socket.gethostname()}\n"
