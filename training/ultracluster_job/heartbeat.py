"""What each worker tells its node of its progress, in memory that the node's launcher reads.

The memory is the node's own, not the shared file system: tens of thousands of workers write several times a step.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import signal
import struct
import time
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from statistics import median

from .records import WARM_UP_STEPS

DIRECTORY = "ULTRACLUSTER_HEARTBEATS"
"""The variable that names the directory of a node's heartbeats and stacks; without it nobody reads them."""
SIGNAL = signal.SIGUSR2
"""It makes a worker write the stacks of all its threads, even while it is stuck in C code: faulthandler handles it
(https://docs.python.org/3/library/faulthandler.html#faulthandler.register)."""
START_SECONDS = "ULTRACLUSTER_START_SECONDS"
"""The variable with the limit until the first steps of a start are made, which compile graphs or load them: run_node.sh
sets it by what the compile cache has; 0: none."""
_START_SECONDS = 7200
_BEATS = "beats"
_SLOT = struct.Struct("qqqqdd")
_MEDIAN_STEPS = 10  # without a heartbeat are a stall
_STEPS_KEPT = 101  # of which the median is


class Stage(IntEnum):
    """What a worker does after a heartbeat. All workers go through the same stages in the same order."""

    START = 0
    READ = 1
    COMPUTE = 2
    UPDATE = 3
    FETCH = 4
    RECORD = 5
    CHECKPOINT = 6
    END = 7
    EVALUATE = 8

    @property
    def words(self) -> str:
        """What the stage is, for people."""
        return (
            "starts",
            "waits for data",
            "computes",
            "adds up gradients over all ranks",
            "waits for the numbers of a step",
            "records a step",
            "saves a checkpoint",
            "ends",
            "evaluates",
        )[self]


@dataclass(frozen=True)
class Beat:
    """The last heartbeat of a worker.

    Attributes:
        process: Its process; 0 if it has not started yet.
        count: Its heartbeats so far: of two workers, the one with fewer is behind.
        step: The last step whose numbers it has seen; 0 before the first of this start.
        stage: What it has done since.
        time: When it was, by ``time.monotonic``, which is the same for all processes of a node.
        limit: Seconds until the next one is overdue; 0 while nobody watches, as before the first.
    """

    process: int
    count: int
    step: int
    stage: Stage
    time: float
    limit: float

    def is_overdue(self, now: float) -> bool:
        """Return whether the next one is."""
        return self.limit > 0 and now - self.time > self.limit


class Heartbeat:
    """The heartbeat of this worker."""

    def __init__(self, least: int, local_rank: int) -> None:
        """Start to tell, and to write stacks when SIGNAL comes; the shortest limit is in seconds, 0 for none at all."""
        start = int(os.environ.get(START_SECONDS, _START_SECONDS))
        self._least, self._count, self._step = least, 0, 0
        self._limit = float(max(least, start)) if least and start else 0.0
        self._ended: float | None = None
        self._seconds: deque[float] = deque(maxlen=_STEPS_KEPT)
        self._offset = local_rank * _SLOT.size
        self._memory: mmap.mmap | bytearray = bytearray(self._offset + _SLOT.size)
        if directory := os.environ.get(DIRECTORY):
            self._memory = _map(Path(directory))
            self._stacks = stacks(Path(directory), local_rank).open("w")  # as long as the process lives
            faulthandler.register(SIGNAL, file=self._stacks, all_threads=True)
        self.beat(Stage.START)

    def beat(self, stage: Stage) -> None:
        """Tell that the worker is alive, and what it does next."""
        self._count += 1
        now = time.monotonic()
        _SLOT.pack_into(self._memory, self._offset, os.getpid(), self._count, self._step, stage, now, self._limit)

    def step(self, number: int) -> None:
        """Take note that the numbers of a step are there.

        Until the first ones are made, the limit is the start's: they compile graphs, which can take most of an hour.
        """
        now = time.monotonic()
        if self._ended is not None:
            self._seconds.append(now - self._ended)
        self._ended, self._step = now, number
        if self._least and len(self._seconds) >= WARM_UP_STEPS - 1:
            self._limit = max(self._least, _MEDIAN_STEPS * median(self._seconds))
        self.beat(Stage.RECORD)

    def stop(self) -> None:
        """Tell that nothing is to come."""
        self._least, self._limit = 0, 0.0
        self.beat(Stage.END)


class Beats:
    """The heartbeats of all workers of a node, for its launcher."""

    def __init__(self, directory: Path, workers: int) -> None:
        """Make the memory, before the workers start."""
        (directory / _BEATS).write_bytes(bytes(workers * _SLOT.size))
        self._memory = _map(directory)

    def read(self) -> list[Beat]:
        """Return the last heartbeat of each worker, in the order of their numbers."""
        return [
            Beat(process, count, step, Stage(stage), when, limit)
            for process, count, step, stage, when, limit in _SLOT.iter_unpack(self._memory)
        ]


def stacks(directory: Path, local_rank: int) -> Path:
    """Return the file that a worker writes its stacks to."""
    return directory / f"stacks-{local_rank}"


def _map(directory: Path) -> mmap.mmap:
    with (directory / _BEATS).open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)
