"""Machines of tests in namespaces of their own: what starts them, and what runs commands in them."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.end_to_end.slurm.base import ENVIRONMENT, ClusterError

NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid")
"""Those of a machine, as unshare and nsenter name them."""


class Namespaces(ABC):
    """What a script starts in namespaces of its own, within a ``with`` block. All of it ends with the block.

    The script gets the directory as its first argument, and makes the file ``ready`` in it.

    Attributes:
        directory: Where its files are, ``log`` among them.
        init: Number of the first process in the namespaces.
    """

    init: str

    def __init__(self, directory: Path, script: Path, *arguments: str) -> None:
        """Describe what to start.

        Args:
            directory: An existing directory.
            script: A script of bash.
            *arguments: Its arguments after the directory.
        """
        self.directory = directory
        self._command = ("bash", str(script), str(directory), *arguments)

    @abstractmethod
    def is_up(self) -> bool:
        """Return whether what was started can be worked with."""

    def __enter__(self) -> Self:
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["unshare", *NAMESPACES, "--fork", "--kill-child", *self._command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=ENVIRONMENT,
            )  # fmt: skip
        try:
            self.wait_until(lambda: (self.directory / "ready").exists() or self._process.poll() is not None)
            if self._process.poll() is not None:
                raise ClusterError(f"It did not start:\n{(self.directory / 'log').read_text(encoding='utf-8')}")
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            self.init = children.read_text(encoding="utf-8").split()[0]
            self.wait_until(self.is_up)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def inside(self, *command: str) -> list[str]:
        """Return what runs a command in the namespaces, but in the root directory of this machine."""
        return ["nsenter", "--target", self.init, *NAMESPACES, "env", "-C", "/", *command]

    @staticmethod
    def wait_until(condition: Callable[[], bool], timeout: float = 600) -> None:
        """Wait until something holds.

        Raises:
            ClusterError: It does not in time.
        """
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise ClusterError(f"This does not hold after {timeout} s")
            time.sleep(0.1)
