"""The training run: steps, records, checkpoints, and how it ends, whatever the model.

On XLA the host is one step ahead of the device: the numbers of a step are fetched while the next is under way. All
ranks see the same numbers at the same step, and so decide alike whether to stop.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np

from . import files
from .backend import Backend
from .batch import Batch
from .checkpoint import Checkpoints
from .errors import FINISHED, STOPPED, BadInputError, DivergedError, TrainingError
from .files import CHECKPOINTS, IDENTITY, STOP
from .heartbeat import Heartbeat, Stage
from .ranks import Exchange, Worker
from .recorder import Recorder
from .records import tell

_STEPS_BETWEEN_WAITS = 50  # of a host that is ahead: a slow device is seen only where it waits, which costs time
_T = TypeVar("_T")


class Learner(Protocol):
    """A model with its optimizer, on the device of this rank."""

    def accumulate(self, batch: Mapping[str, Any], seed: int) -> None:
        """Add a micro-batch's losses and gradients to those of the step; the seed is that of dropout."""

    def update(self, learning_rate: float, contribution: Sequence[float]) -> Any:
        """Make the optimizer step, and return a vector on the device.

        It has the norm of the mean gradient, the losses, means over all ranks, the sums over all ranks of the
        contributed numbers, and for each rank 1 where its own losses are not finite, else 0.
        """

    def state(self) -> dict[str, Any]:
        """Return all that the next steps depend on, in host memory."""


class Feed(Protocol):
    """The micro-batches of this rank, in the order of the steps."""

    def __next__(self) -> Mapping[str, Any]:
        """Return the tensors of the next micro-batch."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is to do.

    Attributes:
        output: Its directory.
        steps: Optimizer steps of the whole run.
        done: Of these, those of the checkpoint that it continues from.
        stop_after: Optimizer steps of this start; None: to the end of the run.
        checkpoint_interval: Optimizer steps between checkpoints.
        evaluate_every: Optimizer steps between evaluations, of which one is at the end.
        keep: Checkpoints to keep.
        seed: Dropout's.
        learning_rate: Of a step, by the number of steps that are done.
        losses: The names of the losses that the learner returns; the loss is their sum.
        identity: What a run may not change when it continues from its checkpoints.
        tokens_per_sequence: Padding counted.
        flops_per_sequence: Floating-point operations that a sequence takes, by the convention of model FLOPs.
        reference: A run on one node, for the scaling efficiency.
    """

    output: Path
    steps: int
    done: int
    stop_after: int | None
    checkpoint_interval: int
    evaluate_every: int
    keep: int
    seed: int
    learning_rate: Callable[[int], float]
    losses: Sequence[str]
    identity: Mapping[str, Any]
    tokens_per_sequence: int
    flops_per_sequence: float
    reference: Path | None

    @property
    def end(self) -> int:
        """The last step of this start."""
        return min(self.steps, self.done + (self.stop_after or self.steps))


@dataclass(frozen=True)
class _StepUnderWay:
    """A step whose numbers are still on the device.

    Attributes:
        number: From 1 on.
        learning_rate: What it was made with.
        numbers: What ``Learner.update`` returned: the norm of the gradient, the losses, how many ranks took part, how
            many of them were asked to stop, of each rank the seconds of computing and those of waiting for data, and
            whether its losses are not finite.
        waited: Whether the seconds of computing are those of the device, not of the host alone.
    """

    number: int
    learning_rate: float
    numbers: Any
    waited: bool


def connect(name: str, worker: Worker, *, stochastic_rounding: bool = False) -> Backend:
    """Return a back end that is connected to the other ranks: neuron, native (PyTorch's own accelerator) or cpu.

    NeuronCores alone round stochastically, which is for weights that are bf16 alone; where there is a copy in float32,
    AWS's recipes round to the nearest number (GPU-compatible mode of https://awsdocs-neuron.readthedocs-hosted.com/en/
    latest/about-neuron/appnotes/torch-neuronx/migration-from-xla-downcast-bf16.html). What the environment says counts.
    """
    if name == "neuron":
        # Before torch_xla, whose import starts the Neuron software.
        os.environ.setdefault("NEURON_RT_STOCHASTIC_ROUNDING_EN", str(int(stochastic_rounding)))
        from .neuron_backend import NeuronBackend  # torch_xla is not everywhere

        return NeuronBackend(worker)
    return Backend(worker, accelerated=name == "native")


def agree(output: Path, backend: Backend, exchange: Exchange, find: Callable[[], _T]) -> _T:
    """Return what rank 0 finds, which alone has the run's directory, and locks it; all ranks must call it.

    Thousands of ranks that each open all data and read a checkpoint twice would be a load on the file system.

    Raises:
        BadInputError: By ``find``, or another run has the directory.
    """
    found: _T | None = None
    problems: Sequence[str] = ()
    if backend.worker.rank == 0:
        try:
            if not backend.extracting:  # which writes nothing
                output.mkdir(parents=True, exist_ok=True)
                files.lock(output)
            found = find()
        except BadInputError as error:
            problems = error.problems
        except files.HeldError as error:
            problems = [f"--output: got {output}, where a run is at work ({error}); allowed: another"]
        except OSError as error:
            allowed = f"a directory that can be written to and locked ({error})"
            problems = [f"--output: got {output}; allowed: {allowed}"]
    found, problems = exchange.share("start", (found, problems))
    if found is None or problems:
        raise BadInputError(problems)
    return found


class TrainingLoop:
    """One start of a run, on one rank."""

    def __init__(
        self,
        plan: Plan,
        *,
        batch: Batch,
        backend: Backend,
        exchange: Exchange,
        learner: Learner,
        feed: Feed,
        heartbeat: Heartbeat,
        recorder: Recorder | None,
        evaluate: Callable[[], Iterator[Mapping[str, float]]] | None = None,
    ) -> None:
        """Take the parts, ready for the first step. Who has a recorder keeps the checkpoints.

        What evaluates yields as often on each rank, so that a rank that is behind can be told, and numbers at last.
        """
        self._plan, self._batch, self._backend, self._exchange = plan, batch, backend, exchange
        self._learner, self._feed, self._recorder = learner, feed, recorder
        self._heartbeat, self._evaluate = heartbeat, evaluate
        self._done, self._end = plan.done, plan.end
        self._under_way: deque[_StepUnderWay] = deque()
        self._stopping = False
        self._checkpoints = Checkpoints(plan.output / CHECKPOINTS, plan.keep)
        self._settled = perf_counter()
        self._told_failure: str | None = None
        self._checkpoint_seconds = 0.0

    def go(self) -> int:
        """Make all steps, and return the exit code."""
        while self._done < self._end and not self._stopping:
            self._under_way.append(self._make_step())
            self._done += 1
            if len(self._under_way) > self._backend.ahead:
                self._settle()
            is_saved = self._done == self._end or self._done % self._plan.checkpoint_interval == 0
            if self._stopping or is_saved or self._is_evaluated(self._done):
                while self._under_way:
                    self._settle()
            if self._stopping or is_saved:
                self._save()
        return self._finish()

    def _make_step(self) -> _StepUnderWay:
        plan, batch, worker = self._plan, self._batch, self._backend.worker
        waits = not self._backend.ahead or self._done % _STEPS_BETWEEN_WAITS == 0
        if waits:
            self._backend.wait()
        start, waited = perf_counter(), 0.0
        for micro_batch in range(batch.accumulation):
            asked = perf_counter()
            self._heartbeat.beat(Stage.READ)
            tensors = next(self._feed)
            waited += perf_counter() - asked
            self._heartbeat.beat(Stage.COMPUTE)
            index = batch.first(worker.rank, micro_batch) // batch.micro
            self._learner.accumulate(tensors, _seed(plan.seed, self._done, index))
        if waits:
            self._backend.wait()
        computed = perf_counter() - start
        rate = plan.learning_rate(self._done)
        of_ranks = [0.0] * (2 * worker.ranks)
        of_ranks[worker.rank], of_ranks[worker.ranks + worker.rank] = computed, waited
        asked_to_stop = worker.rank == 0 and (plan.output / STOP).exists()
        self._heartbeat.beat(Stage.UPDATE)
        numbers = self._learner.update(rate, [1.0, float(asked_to_stop), *of_ranks])
        return _StepUnderWay(self._done + 1, rate, numbers, waits)

    def _settle(self) -> None:
        """Fetch the numbers of the oldest step under way, and act on them."""
        step = self._under_way.popleft()
        self._heartbeat.beat(Stage.FETCH)
        numbers = self._backend.fetch(step.numbers)
        if self._backend.extracting:
            self._evaluated(step.number)
            return
        self._heartbeat.step(step.number)
        norm, *losses = numbers[: 1 + len(self._plan.losses)]
        participants, stop, *_ = numbers[1 + len(losses) :]
        if participants != self._backend.worker.ranks:
            raise TrainingError(f"{participants:g} ranks took part in a reduction, of {self._backend.worker.ranks}")
        if not isfinite(sum(losses) + norm):
            if self._recorder:
                flags = numbers[-self._backend.worker.ranks :]
                self._recorder.diverged(step.number, next((rank for rank, flag in enumerate(flags) if flag), None))
            raise DivergedError(
                f"Step {step.number}: the loss is {sum(losses)}, the norm of the gradient {norm}. The newest "
                f"checkpoint is from before this step. If it comes to the same on other nodes, submit the run again "
                f"with a lower --learning-rate or more --warmup-steps."
            )
        self._stopping = self._stopping or stop > 0
        now = perf_counter()
        evaluation = {} if self._stopping else self._evaluated(step.number)
        if self._recorder:
            self._record(self._recorder, step, numbers, evaluation, now)
        self._settled = now + evaluation.get("evaluation_seconds", 0.0)

    def _is_evaluated(self, step: int) -> bool:
        return self._evaluate is not None and (step % self._plan.evaluate_every == 0 or step == self._end)

    def _evaluated(self, step: int) -> Mapping[str, float]:
        """Evaluate after a step that asks for it, and return the numbers.

        No other step is under way then, so that the weights are those of this one.
        """
        numbers: Mapping[str, float] = {}
        if self._evaluate is None or not self._is_evaluated(step):
            return numbers
        start = perf_counter()
        for yielded in self._evaluate():
            numbers = yielded
            self._heartbeat.beat(Stage.EVALUATE)
        if not all(isfinite(number) for number in numbers.values()):
            if self._recorder:
                self._recorder.diverged(step, None)
            raise DivergedError(f"Step {step}: the losses on held-out data are {dict(numbers)}.")
        return {**numbers, "evaluation_seconds": perf_counter() - start} if numbers else numbers

    def _record(
        self,
        recorder: Recorder,
        step: _StepUnderWay,
        numbers: Sequence[float],
        evaluation: Mapping[str, float],
        now: float,
    ) -> None:
        plan, sequences = self._plan, self._batch.sequences
        norm, *losses = numbers[: 1 + len(plan.losses)]
        of_ranks, ranks = numbers[3 + len(losses) :], self._backend.worker.ranks
        recorder.step(
            step=step.number,
            loss=sum(losses),
            seconds=now - self._settled,
            compute_seconds=of_ranks[:ranks],
            further={
                "steps": plan.steps,
                "sequences": sequences,
                "tokens": sequences * plan.tokens_per_sequence,
                "flops": sequences * plan.flops_per_sequence,
                **dict(zip(plan.losses, losses, strict=True)),
                "learning_rate": step.learning_rate,
                "gradient_norm": norm,
                "waited_for_devices": step.waited,
                "data_seconds": max(of_ranks[ranks : 2 * ranks]),
                "checkpoint_seconds": self._checkpoint_seconds,
                **evaluation,
            },
        )
        self._checkpoint_seconds = 0.0
        recorder.tell_now_and_then(last=step.number == self._end or bool(evaluation))
        if self._checkpoints.failure != self._told_failure:
            self._told_failure = self._checkpoints.failure
            print(self._told_failure or "Checkpoints are saved again.", file=sys.stderr, flush=True)

    def _save(self) -> None:
        """Begin to write a checkpoint. All its steps are settled, so that it has no loss that is not finite."""
        self._heartbeat.beat(Stage.CHECKPOINT)
        if not self._recorder:
            return
        start = perf_counter()
        self._recorder.synchronize()
        self._checkpoints.save(self._done, {IDENTITY: dict(self._plan.identity), **self._learner.state()})
        self._checkpoint_seconds += perf_counter() - start

    def _finish(self) -> int:
        """Wait for the last checkpoint, and return the exit code."""
        failure = None
        self._heartbeat.beat(Stage.CHECKPOINT)
        if self._recorder:
            failure = self._checkpoints.wait()
            if summary := self._recorder.finish(self._plan.reference):
                print("\n".join(tell(summary)), flush=True)
        self._heartbeat.beat(Stage.END)
        failure = self._exchange.share("end", failure)
        self._heartbeat.stop()
        if failure:
            raise TrainingError(failure)
        return STOPPED if self._stopping and self._done < self._plan.steps else FINISHED


def _seed(*numbers: int) -> int:
    """Return a seed that follows from numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
