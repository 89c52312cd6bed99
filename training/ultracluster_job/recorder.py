"""The records of a run: a line per optimizer step, TensorBoard, the attempts made, and a summary at the end.

They never stop a run: what cannot be written is told on standard error. ``records.py`` reads them back.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from . import files
from .records import (
    METRICS,
    RUN,
    STRAGGLING,
    SUMMARY,
    WARM_UP_STEPS,
    Attempt,
    Pace,
    RunError,
    Step,
    Summary,
    parse_step,
    read_run,
    summarize,
)

BOARD = "tensorboard"
DIVERGED = ".diverged"
"""The file for train.sbatch with the step that is not finite, and the node of the rank that was first, if known."""
_BEFORE = "diverged"
"""The link that train.sbatch leaves, whose target is what the file had at an earlier start."""
_NOT_SHOWN = ("step", "time", "slowest_host", "waited_for_devices", "steps")
_SECONDS_BETWEEN_LINES = 10
_DOLLARS, _TFLOPS = "ULTRACLUSTER_NODE_DOLLARS", "ULTRACLUSTER_NODE_TFLOPS"
"""The variables with the price of a node-hour, US dollars, and dense BF16 of a node, TFLOPS; who submits knows them."""


@dataclass(frozen=True)
class RunFacts:
    """What is the same in all steps of an attempt; hosts are in the order of the ranks on them.

    Attributes:
        program: Its name.
        peak_flops: What one worker's hardware could do, FLOP/s; None where that is not known.
        identity: What was trained on what: data, sizes and all else that a run may not change.
    """

    program: str
    nodes: int
    workers: int
    hosts: Sequence[str]
    peak_flops: float | None
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    identity: Mapping[str, Any] = field(default_factory=dict)


class Recorder:
    """Writes the records of a run; for rank 0 alone."""

    def __init__(self, directory: Path, facts: RunFacts, resumed_step: int) -> None:
        """Note a new attempt, and drop the steps beyond its checkpoint (0: none), which it will do again.

        Raises:
            OSError: The directory cannot be written to.
        """
        self._directory = directory
        self._facts = facts
        directory.mkdir(parents=True, exist_ok=True)
        self._note_attempt(resumed_step)
        self._earlier = self._drop_steps_beyond(resumed_step)
        self._file = (directory / METRICS).open("ab", buffering=0)
        self._board = _board(directory / BOARD, resumed_step + 1)
        self._last: Step | None = None
        self._diverged = _earlier_divergence(directory / _BEFORE)
        self._first: Step | None = None
        self._resumed_step = resumed_step
        self._pace: Pace | None = Pace()
        self._told, self._started = 0.0, time.time()
        price = os.environ.get(_DOLLARS)
        self._dollars = float(price) * facts.nodes if price else None
        of_node = os.environ.get(_TFLOPS)
        self._peak = facts.peak_flops and facts.peak_flops * facts.workers
        if of_node:
            self._peak = float(of_node) * 1e12 * facts.nodes

    def step(
        self,
        *,
        step: int,
        loss: float,
        seconds: float,
        further: Mapping[str, Any],
        compute_seconds: Sequence[float] = (),
    ) -> Step:
        """Write an optimizer step's line, and return it.

        Args:
            step: Its number, from 1 on.
            loss: The mean over the global batch.
            seconds: Since the step before.
            further: As ``Step.further``; what follows from them is added.
            compute_seconds: Of each rank, where they are known.
        """
        derived = {**self._rates(seconds, further), **self._ranks(compute_seconds)}
        line = Step(step, time.time(), loss, seconds, {**further, **derived})
        self._append(json.dumps(line.line()).encode() + b"\n")
        self._show(line)
        self._first, self._last = self._first or line, line
        self._tell_of_divergence(step)
        self._tell_of_slowdown(line)
        return line

    def diverged(self, step: int, rank: int | None) -> None:
        """Leave for the job which step is not finite, and on which rank it was first; None: that is not known."""
        facts = self._facts
        node = "" if rank is None else facts.hosts[rank * facts.nodes // facts.workers]
        with _reported(DIVERGED):
            (self._directory / DIVERGED).write_text(f"{step} {node}\n", encoding="utf-8")

    def _tell_of_divergence(self, step: int) -> None:
        """Tell once that a step is finite which was not at an earlier start: what differs is the nodes."""
        if self._diverged and step >= self._diverged[0]:
            number, node = self._diverged
            self._diverged = None
            _complain(
                f"Step {number} is finite. At an earlier start it was not{f', first on {node}' if node else ''}: the "
                f"nodes differ in what they compute. To have it replaced, as root: scontrol update "
                f"nodename={node or 'NODE'} state=drain reason=stalled"
            )

    def _tell_of_slowdown(self, step: Step) -> None:
        """Tell once that this start has become slower, and of the rank that the others wait for, if there is one."""
        if self._pace is None or step.step <= self._resumed_step + WARM_UP_STEPS:
            return
        if slowdown := self._pace.slowdown(step):
            self._pace = None
            mean, most = step.number("compute_seconds_mean"), step.number("compute_seconds_max")
            rank = ""
            if mean and most and most > STRAGGLING * mean:
                rank = f"; the slowest rank is {step.further['slowest_rank']} on {step.further['slowest_host']}"
            share = f"{slowdown.speed:.0%} of the speed of this start before"
            _complain(f"Steps from {slowdown.step} on are slower: {share}{rank}")

    def tell_now_and_then(self, *, last: bool = False) -> None:
        """Print the newest step, unless another was told of a moment ago; the last in any case."""
        now = time.monotonic()
        if self._last and (last or now - self._told >= _SECONDS_BETWEEN_LINES):
            self._told = now
            print(self._line(self._last), flush=True)

    def _line(self, step: Step) -> str:
        """Return what is told of a step: the figures that its program gives, and what they come to."""
        steps, left = step.number("steps"), None
        if steps is not None and self._first and step.step > self._first.step:
            left = max(0.0, steps - step.step) * (step.time - self._first.time) / (step.step - self._first.step)
        told = (
            ("loss", step.loss, "{:.4f}"),
            ("evaluation loss", step.number("evaluation_loss"), "{:.4f}"),
            ("learning rate", step.number("learning_rate"), "{:.2e}"),
            ("gradient norm", step.number("gradient_norm"), "{:.2f}"),
            ("sequences/s", step.number("sequences_per_second"), "{:,.1f}"),
            ("tokens/s", step.number("tokens_per_second"), "{:,.0f}"),
            ("MFU", step.number("mfu"), "{:.1%}"),
        )
        parts = [f"{name} {form.format(value)}" for name, value, form in told if value is not None]
        if left is not None:
            parts.append(f"{left / 3600:.1f} h left")
        if self._dollars is not None:
            spent = self._earlier + time.time() - self._started
            parts.append(f"${self._dollars * spent / 3600:,.2f} so far")
            if left is not None:
                parts.append(f"${self._dollars * left / 3600:,.2f} to go")
        return f"step {step.step}{f' of {steps:.0f}' if steps else ''}: {', '.join(parts)}"

    def synchronize(self) -> None:
        """Bring the lines to the disk. Call it before a checkpoint is saved, so that no line before it can be lost."""
        with _reported(METRICS):
            os.fsync(self._file.fileno())

    def finish(self, reference: Path | None = None) -> Summary | None:
        """Write the summary, with the scaling efficiency against a reference, and return it; None without any step."""
        self.synchronize()
        self._file.close()
        if self._board:
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

    def _drop_steps_beyond(self, resumed_step: int) -> float:
        """Drop the lines of steps that will be made again, and return the seconds of the others."""
        path = self._directory / METRICS
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        kept = [(step, line) for line in lines if (step := parse_step(line)) and step.step <= resumed_step]
        files.replace(path, b"".join(line for _, line in kept))
        return sum(step.seconds for step, _ in kept)

    def _rates(self, seconds: float, further: Mapping[str, Any]) -> dict[str, float | None]:
        """Return what follows from the counts of a step."""
        facts, rates = self._facts, dict[str, "float | None"]()
        for name in ("sequences", "tokens", "flops"):
            if name in further and seconds > 0:
                rates[f"{name}_per_second"] = further[name] / seconds
        if (speed := rates.get("sequences_per_second")) is not None:
            rates["sequences_per_second_per_node"] = speed / facts.nodes
        if (flops := rates.get("flops_per_second")) is not None:
            rates["mfu"] = flops / self._peak if self._peak else None
        return rates

    def _ranks(self, compute: Sequence[float]) -> dict[str, Any]:
        if not compute:
            return {}
        facts = self._facts
        slowest = max(range(len(compute)), key=compute.__getitem__)
        return {
            "compute_seconds_min": min(compute),
            "compute_seconds_mean": fmean(compute),
            "compute_seconds_max": compute[slowest],
            "slowest_rank": slowest,
            "slowest_host": facts.hosts[slowest * facts.nodes // facts.workers],
        }

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
        board, self._board = self._board, None
        if board is None:
            return
        with _reported(BOARD):
            for name, value in step.line().items():
                if name not in _NOT_SHOWN and isinstance(value, (int, float)):
                    board.add_scalar(name, value, step.step, walltime=step.time)
            self._board = board


def _earlier_divergence(link: Path) -> tuple[int, str] | None:
    try:
        step, _, node = str(link.readlink()).partition(" ")
        return int(step), node
    except (OSError, ValueError):
        return None


def _board(directory: Path, first_step: int) -> Any:
    """Return what writes for TensorBoard, or None where a program's environment has neither it nor PyTorch.

    TensorBoard hides what earlier attempts told of the first step and later ones.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        _complain(f"{BOARD}: {error}")
        return None
    return SummaryWriter(directory, purge_step=first_step)


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
