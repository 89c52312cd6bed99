"""The records of a run: a line per optimizer step, TensorBoard, the attempts made, and a summary at the end.

They never stop a run: what cannot be written is told on standard error. ``summary.py`` reads them back.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from . import files
from .summary import METRICS, RUN, SUMMARY, Attempt, RunError, Step, Summary, parse_step, read_run, summarize

BOARD = "tensorboard"
_NOT_SHOWN = ("step", "time", "slowest_host", "waited_for_devices")


@dataclass(frozen=True)
class RunFacts:
    """What is the same in all steps of an attempt; hosts are in the order of the ranks on them.

    Attributes:
        flops_per_sequence: Floating-point operations that a sequence takes: see ``Sizes.flops_per_sequence``.
        peak_flops: What one worker's hardware could do, FLOP/s; None where that is not known.
    """

    nodes: int
    workers: int
    hosts: Sequence[str]
    global_batch: int
    sequence_length: int
    flops_per_sequence: float
    peak_flops: float | None
    options: Mapping[str, Any]
    versions: Mapping[str, str]


class Recorder:
    """Writes the records of a run; for rank 0 alone."""

    def __init__(self, directory: Path, facts: RunFacts, resumed_step: int) -> None:
        """Note a new attempt, and drop the steps beyond its checkpoint (0: none), which it will do again.

        Raises:
            OSError: The directory cannot be written to.
        """
        from torch.utils.tensorboard import SummaryWriter

        self._directory = directory
        self._facts = facts
        directory.mkdir(parents=True, exist_ok=True)
        self._note_attempt(resumed_step)
        self._drop_steps_beyond(resumed_step)
        self._file = (directory / METRICS).open("ab", buffering=0)
        # TensorBoard hides what earlier attempts told of this step and later ones.
        self._board = SummaryWriter(directory / BOARD, purge_step=resumed_step + 1)
        self._board_failed = False

    def step(self, step: int, step_seconds: float, compute_seconds: Sequence[float], **measured: Any) -> Step:
        """Write an optimizer step's line, made of the computing of each rank and attributes of ``Step``; return it."""
        line = self._derive(step, step_seconds, compute_seconds, measured)
        self._append(json.dumps(asdict(line)).encode() + b"\n")
        self._show(line)
        return line

    def synchronize(self) -> None:
        """Bring the lines to the disk. Call it before a checkpoint is saved, so that no line before it can be lost."""
        with _reported(METRICS):
            os.fsync(self._file.fileno())

    def finish(self, reference: Path | None = None) -> Summary | None:
        """Write the summary, with the scaling efficiency against a reference, and return it; None without any step."""
        self.synchronize()
        self._file.close()
        with _reported(BOARD):
            self._board.close()
        compared, summary = None, None
        with _reported("scaling efficiency"):
            compared = read_run(reference) if reference else None
        with _reported(SUMMARY):
            summary = summarize(read_run(self._directory), compared)
            files.replace(self._directory / SUMMARY, _json(asdict(summary)))
        return summary

    def _note_attempt(self, resumed_step: int) -> None:
        path = self._directory / RUN
        try:
            attempts = json.loads(path.read_bytes())["attempts"]
        except FileNotFoundError:
            attempts = []
        except (KeyError, TypeError, ValueError):
            _complain(f"{path} is damaged, and written again")
            attempts = []
        facts = asdict(self._facts)
        attempt = Attempt(
            started=time.time(),
            resumed_step=resumed_step,
            nodes=facts.pop("nodes"),
            workers=facts.pop("workers"),
            hosts=facts.pop("hosts"),
            job=os.environ.get("SLURM_JOB_ID"),
            restarts=int(os.environ.get("SLURM_RESTART_COUNT", "0")),
        )
        files.replace(path, _json({**facts, "attempts": [*attempts, asdict(attempt)]}))

    def _drop_steps_beyond(self, resumed_step: int) -> None:
        path = self._directory / METRICS
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        steps = ((parse_step(line), line) for line in lines)
        files.replace(path, b"".join(line for step, line in steps if step and step.step <= resumed_step))

    def _derive(self, step: int, step_seconds: float, compute: Sequence[float], measured: Mapping[str, Any]) -> Step:
        facts = self._facts
        sequences_per_second = facts.global_batch / step_seconds
        peak = facts.peak_flops and facts.peak_flops * facts.workers
        slowest = max(range(len(compute)), key=compute.__getitem__)
        return Step(
            **measured,
            step=step,
            step_seconds=step_seconds,
            time=time.time(),
            compute_seconds_min=min(compute),
            compute_seconds_mean=fmean(compute),
            compute_seconds_max=compute[slowest],
            slowest_rank=slowest,
            slowest_host=facts.hosts[slowest * facts.nodes // facts.workers],
            sequences=step * facts.global_batch,
            tokens=step * facts.global_batch * facts.sequence_length,
            sequences_per_second=sequences_per_second,
            sequences_per_second_per_node=sequences_per_second / facts.nodes,
            mfu=sequences_per_second * facts.flops_per_sequence / peak if peak else None,
        )

    def _append(self, line: bytes) -> None:
        """Append a line, or leave the file as it is."""
        size = self._file.seek(0, os.SEEK_END)
        with _reported(METRICS):
            try:
                if self._file.write(line) != len(line):
                    raise OSError("the file system took a part of the line only")
            except OSError:
                self._file.truncate(size)
                raise

    def _show(self, step: Step) -> None:
        """Hand the numbers of a step to TensorBoard's own thread; after a failure, those of no further step."""
        if self._board_failed:
            return
        self._board_failed = True
        with _reported(BOARD):
            for field in fields(step):
                value = getattr(step, field.name)
                if field.name not in _NOT_SHOWN and value is not None:
                    self._board.add_scalar(field.name, value, step.step, walltime=step.time)
            self._board_failed = False


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Report what cannot be written, or compared with, and continue."""
    try:
        yield
    except (OSError, RunError) as error:
        _complain(f"{what}: {error}")


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2, default=str).encode() + b"\n"


def _complain(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
