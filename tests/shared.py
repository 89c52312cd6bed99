"""What takes long to make, made once for all workers of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.aws import EmulatedAws, JoinedAws

_MEMORY = Path("/dev/shm")  # noqa: S108


@contextmanager
def shared_directory(name: str, make: Callable[[Path], object]) -> Iterator[Path]:
    """Yield a directory that the first worker to ask for it makes, and the last to leave it deletes.

    It is in memory where there is room, which halves the time of what works in it.
    """
    in_memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2 * 1024**3
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    directory = Path(_MEMORY if in_memory else tempfile.gettempdir()) / f"ultracluster-{name}-{run}"
    with _one_at_a_time(name):
        users = directory / "users"
        if not users.exists():
            directory.mkdir(mode=0o755)
            try:
                make(directory)
            except BaseException:
                shutil.rmtree(directory)
                raise
            users.touch()
        with users.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    try:
        yield directory
    finally:
        with _one_at_a_time(name):
            others = [each for each in users.read_text(encoding="utf-8").splitlines() if each != f"{os.getpid()}"]
            users.write_text("".join(f"{each}\n" for each in others), encoding="utf-8")
            if not others:
                shutil.rmtree(directory)


@contextmanager
def shared_server(
    name: str, prepare: Callable[[EmulatedAws, Path], object] = lambda *_: None
) -> Iterator[tuple[JoinedAws, Path]]:
    """Yield an emulated AWS to be cloned, and a directory with it; the first worker to ask for it prepares both.

    The server reads a pipe that all workers hold: it ends with the last of them, however they end.
    """
    from emulator.aws import EmulatedAws, JoinedAws  # boto3 takes its time, and most tests need none

    with ExitStack() as stack:

        def make(directory: Path) -> None:
            life = directory / "life"
            os.mkfifo(life)
            # Who opens a pipe for reading waits for a writer, unless it is open for both already.
            both = os.open(life, os.O_RDWR)
            end = os.open(life, os.O_RDONLY)
            stack.callback(os.close, os.open(life, os.O_WRONLY))
            os.close(both)
            aws = EmulatedAws(life=end)
            os.close(end)
            server = directory / "server"
            server.touch(mode=0o600)
            server.write_text(f"{aws.port} {aws.key}", encoding="utf-8")
            prepare(aws, directory)

        directory = stack.enter_context(shared_directory(name, make))
        stack.callback(os.close, os.open(directory / "life", os.O_WRONLY | os.O_NONBLOCK))
        yield JoinedAws(*(directory / "server").read_text(encoding="utf-8").split()), directory


@contextmanager
def _one_at_a_time(name: str) -> Iterator[None]:
    with Path(tempfile.gettempdir(), f"ultracluster-{name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
