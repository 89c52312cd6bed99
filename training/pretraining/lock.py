"""One run at a time in a directory."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

LOCK = ".lock"
_PATIENCE_SECONDS = 60  # a file system takes a moment to see that a node is gone, and gives up its locks


class HeldError(Exception):
    """Another process has the directory; the message tells which."""


def hold(directory: Path) -> None:
    """Take a directory for as long as this process lives, however it ends.

    The lock holds on all nodes, for FSx for Lustre is mounted with ``flock``:
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/mounting-ec2-instance.html.

    Raises:
        HeldError: Another process had it all the time, a minute.
        OSError: The directory cannot be written to, or the file system has no locks.
    """
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor)
        os.ftruncate(descriptor, os.write(descriptor, _who().encode()))
    except BaseException:
        os.close(descriptor)
        raise


def _lock(descriptor: int) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
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
