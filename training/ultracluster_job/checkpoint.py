"""Checkpoints of a training run: each is there whole or not at all, whatever kills the program that writes it.

A checkpoint is a directory ``step-00000010`` with ``state.pt`` (torch.save: a zip file with checksums). It is written
under a hidden name, brought to the disk, and only then renamed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedWriter, FileIO
from pathlib import Path
from threading import Thread
from typing import Any

import torch

from . import files

_EARLY_BYTES = 2**26
_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint after some optimizer steps, in its directory."""

    step: int
    path: Path

    def load(self) -> dict[str, Any]:
        """Return the state. Nothing in the file is executed.

        Its tensors are the file itself, mapped: all ranks of a node read the same pages, and none has a copy of its own
        in host memory. What is written into them stays in this process.
        """
        state: dict[str, Any] = torch.load(self.path / files.STATE, map_location="cpu", weights_only=True, mmap=True)
        return state

    def problem(self) -> str | None:
        """Read the whole checkpoint and return what is wrong with it, or None."""
        try:
            with zipfile.ZipFile(self.path / files.STATE) as state:
                record = state.testzip()
            if record is None:
                self.load()  # torch reads the directory of the file otherwise than zipfile
        except Exception as error:  # whatever damage in the directory of the file leads to
            return str(error).partition("\n")[0] or type(error).__name__
        return record and f"the checksum of {record} is wrong"


class Checkpoints:
    """The checkpoints of a run. One process of a run saves; any may ask for the newest.

    Attributes:
        failure: Why the save that ended last failed, in a sentence; None if it did not.
    """

    def __init__(self, directory: Path, keep: int) -> None:
        """Take the directory, which need not exist, and how many checkpoints stay in it, from 1 on."""
        self.failure: str | None = None
        self._directory = directory
        self._keep = keep
        self._writer: Thread | None = None

    def newest(self) -> Checkpoint | None:
        """Return the newest complete checkpoint, or None; tell on standard error of damaged ones passed over.

        It reads the whole file: let one process ask, and tell the others the step.

        Raises:
            OSError: The directory is there but cannot be listed. To start again then would lose what is in it.
        """
        for checkpoint in self._all():
            problem = checkpoint.problem()
            if problem is None:
                return checkpoint
            print(f"Checkpoint {checkpoint.path} is passed over: {problem}", file=sys.stderr, flush=True)
        return None

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Begin to save, in a thread of its own, after the save before has ended.

        Args:
            step: The optimizer steps that are in the state.
            state: Tensors in host memory and plain values, in mappings and lists. It must not be changed any more.
        """
        self.wait()
        self._writer = Thread(target=self._save, args=(step, state), name=f"checkpoint of step {step}")
        self._writer.start()

    def wait(self) -> str | None:
        """Wait for the save under way, if any, and return the failure of the last."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        return self.failure

    def _save(self, step: int, state: Mapping[str, Any]) -> None:
        self.failure = None
        try:
            self._write(step, state)
        except Exception as error:  # whatever it was: training continues, and tries again at the next interval
            self.failure = f"The checkpoint of step {step} was not saved: {error}"
            return
        try:
            self._remove_old(step)
        except OSError as error:
            print(f"An old checkpoint was not removed: {error}", file=sys.stderr, flush=True)

    def _write(self, step: int, state: Mapping[str, Any]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        for leftover in self._directory.glob(".step-*"):
            _delete(leftover)
        target = Checkpoint(step, self._directory / f"step-{step:08}")
        hidden = self._directory / f".{target.path.name}"
        try:
            _write_files(hidden, state)
            self._remove(target.path)
            hidden.rename(target.path)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        files.synchronize(self._directory)

    def _remove_old(self, step: int) -> None:
        """Remove the older ones beyond those to keep; the one that was just saved is complete. A newer one stays."""
        older = [checkpoint for checkpoint in self._all() if checkpoint.step < step]
        for checkpoint in older[self._keep - 1 :]:
            self._remove(checkpoint.path)

    def _remove(self, path: Path) -> None:
        """Remove a checkpoint, so that a half removed one is never seen under its name."""
        if path.exists():
            hidden = self._directory / f".{path.name}.removed"
            path.rename(hidden)
            _delete(hidden)

    def _all(self) -> list[Checkpoint]:
        """Return what has the name of a checkpoint, the newest first."""
        try:
            paths = list(self._directory.iterdir())
        except FileNotFoundError:
            return []
        named = ((_NAME.fullmatch(path.name), path) for path in paths)
        checkpoints = [Checkpoint(int(match[1]), path) for match, path in named if match]
        return sorted(checkpoints, key=lambda checkpoint: checkpoint.step, reverse=True)


class _EarlyFile(FileIO):
    """A file whose pages go to the disk while more are written: the last need not wait for all.

    Linux begins to write pages that are said to be needed no more (mm/fadvise.c), and waits for none.
    """

    _written = 0

    def write(self, data: Any) -> int:
        """Write, and let the kernel begin with what is there, some megabytes at a time."""
        count = super().write(data)
        self._written += count
        if self._written >= _EARLY_BYTES:
            os.posix_fadvise(self.fileno(), self.tell() - self._written, self._written, os.POSIX_FADV_DONTNEED)
            self._written = 0
        return count


def _write_files(directory: Path, state: Mapping[str, Any]) -> None:
    """Write a checkpoint and bring it to the disk."""
    directory.mkdir()
    with BufferedWriter(_EarlyFile(directory / files.STATE, "w")) as file:
        try:
            torch.save(dict(state), file)
        except RuntimeError as error:  # torch's, about its position in the file, for the OSError that came first
            raise error.__context__ or error from None
        file.flush()
        os.fsync(file.fileno())
    files.synchronize(directory)


def _delete(path: Path) -> None:
    """Delete a directory, or the file that someone put in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
