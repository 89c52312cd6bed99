"""The training run: steps, records, checkpoints, and how it ends.

On XLA the host is one step ahead of the device: the numbers of a step are fetched while the next is under way. All
ranks see the same numbers at the same step, and so decide alike whether to stop.
"""

from __future__ import annotations

import platform
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np

from . import files
from .backend import Backend
from .batch import Batch, divide
from .check import CHECKPOINTS, IDENTITY, Findings, describe, examine, identity
from .checkpoint import Checkpoints
from .corpus import Corpus, GeneratedCorpus, ShardedCorpus
from .feed import Feed
from .heartbeat import Heartbeat, Stage
from .learner import Learner, build_model
from .options import BadInputError, Options
from .phases import learning_rate
from .ranks import Exchange, Worker, node_names, this_worker
from .recorder import Recorder, RunFacts
from .summary import Step, tell

FINISHED, STOPPED = 0, 75
_SECONDS_BETWEEN_LINES = 10
_STEPS_BETWEEN_WAITS = 50  # of a host that is ahead: a slow device is seen only where it waits, which costs time
STOP = "stop"
"""A file of this name in the run's directory asks for a checkpoint and an end with STOPPED."""

_VERSIONS = ("torch", "torch-xla", "torch-neuronx", "neuronx-cc", "libneuronxla", "transformers")


class TrainingError(Exception):
    """The run cannot continue; the message is for the user."""


class DivergedError(TrainingError):
    """A number of a step is not finite, and would be so again: the same step is made of the same numbers."""


@dataclass(frozen=True)
class _StepUnderWay:
    """A step whose numbers are still on the device.

    Attributes:
        number: From 1 on.
        learning_rate: What it was made with.
        numbers: What ``Learner.update`` returned: the norm of the gradient, two losses, how many ranks took part, how
            many of them were asked to stop, and of each rank the seconds of computing and those of waiting for data.
        waited: Whether the seconds of computing are those of the device, not of the host alone.
    """

    number: int
    learning_rate: float
    numbers: Any
    waited: bool


def train(options: Options) -> int:
    """Train, and return the exit code: FINISHED or STOPPED.

    Raises:
        BadInputError: Something is wrong with the options or the directories.
        TrainingError: The run cannot continue.
        DivergedError: It would come to the same end if it were started again as it is.
    """
    worker = this_worker()
    batch = divide(options, worker.nodes, worker.workers_per_node)
    backend = create(options.backend, worker)
    exchange = Exchange(worker)
    findings, recorder = _agree(options, batch, backend, exchange)
    return TrainingLoop(options, batch, backend, exchange, findings, recorder=recorder).go()


def create(name: str, worker: Worker) -> Backend:
    """Return a backend that is connected to the other ranks."""
    if name == "neuron":
        from .neuron_backend import NeuronBackend  # torch_xla is not everywhere

        return NeuronBackend(worker)
    return Backend(worker)


def _agree(options: Options, batch: Batch, backend: Backend, exchange: Exchange) -> tuple[Findings, Recorder | None]:
    """Return what the run starts with, the same on all ranks, which must all call it; and the records on rank 0.

    Rank 0 also prints the plan, which compares the options with those in the records before they are written again.
    Thousands of ranks that each open all shards and read a checkpoint twice would be a load on the file system.

    Raises:
        BadInputError: Something is wrong with the directories, or another run has the one for the output.
    """
    findings: Findings | None = None
    recorder: Recorder | None = None
    problems: Sequence[str] = ()
    if backend.worker.rank == 0:
        try:
            if not backend.extracting:  # which writes nothing
                options.output.mkdir(parents=True, exist_ok=True)
                files.lock(options.output)
            findings = examine(options, batch)
            print("\n".join(describe(options, batch, backend.worker.nodes, findings)), flush=True)
            if not backend.extracting:
                facts = _facts(options, batch, backend)
                recorder = Recorder(options.output, facts, findings.resumed.step if findings.resumed else 0)
        except BadInputError as error:
            problems = error.problems
        except files.HeldError as error:
            problems = [f"--output: got {options.output}, where a run is at work ({error}); allowed: another"]
        except OSError as error:
            allowed = f"a directory that can be written to and locked ({error})"
            problems = [f"--output: got {options.output}; allowed: {allowed}"]
    findings, problems = exchange.share("start", (findings, problems))
    if findings is None or problems:
        raise BadInputError(problems)
    return findings, recorder


class TrainingLoop:
    """One start of a run, on one rank."""

    def __init__(
        self,
        options: Options,
        batch: Batch,
        backend: Backend,
        exchange: Exchange,
        findings: Findings,
        *,
        recorder: Recorder | None,
    ) -> None:
        """Build the model, and take over the checkpoint if there is one. Who has a recorder keeps the checkpoints."""
        self._options, self._batch, self._backend, self._exchange = options, batch, backend, exchange
        self._heartbeat = Heartbeat(options.stall_seconds, backend.worker.local_rank)
        self._identity = identity(options, batch, findings.shards)
        self._learner = Learner(
            build_model(options.sizes, dropout=options.dropout, seed=options.seed),
            backend,
            optimizer=options.optimizer,
            precision=options.precision,
            accumulation=batch.accumulation,
        )
        self._done = 0
        if findings.resumed:
            self._learner.restore(findings.resumed.load())
            self._done = findings.resumed.step
        elif findings.first:
            self._learner.restore_weights(findings.first.load()["weights"])
        self._end = min(options.steps, self._done + (options.stop_after or options.steps))
        self._feed = Feed(
            _corpus(options, findings),
            batch,
            rank=backend.worker.rank,
            seed=options.seed,
            steps=range(self._done, self._end),
        )
        self._under_way: deque[_StepUnderWay] = deque()
        self._stopping = False
        self._recorder = recorder
        self._checkpoints = Checkpoints(options.output / CHECKPOINTS, options.keep)
        self._settled = perf_counter()
        self._told = 0.0
        self._told_failure: str | None = None
        self._checkpoint_seconds = 0.0

    def go(self) -> int:
        """Make all steps, and return the exit code."""
        while self._done < self._end and not self._stopping:
            self._under_way.append(self._make_step())
            self._done += 1
            if len(self._under_way) > self._backend.ahead:
                self._settle()
            if self._stopping or self._done == self._end or self._done % self._options.checkpoint_interval == 0:
                while self._under_way:
                    self._settle()
                self._save()
        return self._finish()

    def _make_step(self) -> _StepUnderWay:
        options, batch, worker = self._options, self._batch, self._backend.worker
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
            self._learner.accumulate(tensors, _seed(options.seed, self._done, index))
        if waits:
            self._backend.wait()
        computed = perf_counter() - start
        rate = learning_rate(
            self._done, peak=options.learning_rate, warmup_steps=options.warmup_steps, steps=options.steps
        )
        of_ranks = [0.0] * (2 * worker.ranks)
        of_ranks[worker.rank], of_ranks[worker.ranks + worker.rank] = computed, waited
        asked_to_stop = worker.rank == 0 and (options.output / STOP).exists()
        self._heartbeat.beat(Stage.UPDATE)
        numbers = self._learner.update(rate, [1.0, float(asked_to_stop), *of_ranks])
        return _StepUnderWay(self._done + 1, rate, numbers, waits)

    def _settle(self) -> None:
        """Fetch the numbers of the oldest step under way, and act on them."""
        step = self._under_way.popleft()
        self._heartbeat.beat(Stage.FETCH)
        numbers = self._backend.fetch(step.numbers)
        if self._backend.extracting:
            return
        self._heartbeat.step(step.number)
        norm, mlm, nsp, participants, stop, *_ = numbers
        if participants != self._backend.worker.ranks:
            raise TrainingError(f"{participants:g} ranks took part in a reduction, of {self._backend.worker.ranks}")
        if not isfinite(mlm + nsp + norm):
            raise DivergedError(
                f"Step {step.number}: the loss is {mlm + nsp}, the norm of the gradient {norm}. The run ends here, and "
                f"would again: the newest checkpoint is from before this step. To continue from there, submit it with "
                f"a lower --learning-rate or more --warmup-steps."
            )
        self._stopping = self._stopping or stop > 0
        if self._recorder:
            self._record(self._recorder, step, numbers)

    def _record(self, recorder: Recorder, step: _StepUnderWay, numbers: Sequence[float]) -> None:
        norm, mlm, nsp, _, _, *of_ranks = numbers
        ranks, now = self._backend.worker.ranks, perf_counter()
        record = recorder.step(
            step=step.number,
            loss=mlm + nsp,
            mlm_loss=mlm,
            nsp_loss=nsp,
            learning_rate=step.learning_rate,
            gradient_norm=norm,
            step_seconds=now - self._settled,
            compute_seconds=of_ranks[:ranks],
            waited_for_devices=step.waited,
            data_seconds=max(of_ranks[ranks:]),
            checkpoint_seconds=self._checkpoint_seconds,
        )
        self._settled, self._checkpoint_seconds = now, 0.0
        self._tell(record)

    def _tell(self, record: Step) -> None:
        """Tell of a step, unless another was told of a moment ago, and of a checkpoint that was not saved."""
        if self._settled - self._told > _SECONDS_BETWEEN_LINES or record.step == self._end:
            self._told = self._settled
            speed = self._batch.sequences / record.step_seconds
            print(
                f"step {record.step} of {self._options.steps}: loss {record.loss:.4f}, learning rate "
                f"{record.learning_rate:.2e}, {speed:,.1f} sequences/s",
                flush=True,
            )
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
        self._checkpoints.save(self._done, {IDENTITY: self._identity, **self._learner.state()})
        self._checkpoint_seconds += perf_counter() - start

    def _finish(self) -> int:
        """Wait for the last checkpoint, and return the exit code."""
        failure = None
        self._heartbeat.beat(Stage.CHECKPOINT)
        if self._recorder:
            failure = self._checkpoints.wait()
            if summary := self._recorder.finish(self._options.reference):
                print("\n".join(tell(summary)), flush=True)
        self._heartbeat.beat(Stage.END)
        failure = self._exchange.share("end", failure)
        self._heartbeat.stop()
        if failure:
            raise TrainingError(failure)
        return STOPPED if self._stopping and self._done < self._options.steps else FINISHED


def _corpus(options: Options, findings: Findings) -> Corpus:
    if options.data is not None and findings.shards is not None:
        return ShardedCorpus(options.data, findings.shards, options.vocabulary)
    return GeneratedCorpus(options.seed, options.vocabulary, options.sequence_length, options.max_predictions)


def _facts(options: Options, batch: Batch, backend: Backend) -> RunFacts:
    return RunFacts(
        nodes=backend.worker.nodes,
        workers=backend.worker.ranks,
        hosts=node_names(backend.worker.nodes),
        global_batch=batch.sequences,
        sequence_length=options.sequence_length,
        flops_per_sequence=options.sizes.flops_per_sequence(options.sequence_length),
        peak_flops=backend.peak_flops,
        options=asdict(options),
        versions=_versions(),
    )


def _versions() -> Mapping[str, str]:
    versions = {"python": platform.python_version()}
    for name in _VERSIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _seed(*numbers: int) -> int:
    """Return a seed that follows from numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
