"""A run's records, read back: its steps, its attempts, and what they come to. Standard library alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, harmonic_mean, median
from typing import Any

RUN = "run.json"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
WARM_UP_STEPS = 5  # of each attempt: they load or compile graphs, so that speeds are told without them
STRAGGLING = 1.1  # a rank straggles in a step that takes it longer than the mean of all ranks times this
_STRAGGLERS_TOLD = 5

_SAME_WORK = ("phase", "sequence_length", "layers", "hidden", "heads", "intermediate", "vocabulary")
"""Options that a sequence's work follows from."""

_SAME_WAY = ("optimizer", "global_batch", "micro_batch", "precision")
"""Options that speed depends on, too. The global batch is that of a node with weak scaling, of all with strong."""


class RunError(ValueError):
    """The records of a run cannot be used."""


@dataclass(frozen=True)
class Step:
    """A line of metrics.jsonl: one optimizer step.

    Attributes:
        step: Its number, from 1 on.
        time: When it ended, in seconds since 1970.
        loss: Sum of the two losses, mean over the global batch.
        mlm_loss: Loss of the masked words.
        nsp_loss: Loss of the next sentence.
        learning_rate: What the step was made with.
        gradient_norm: Before clipping.
        step_seconds: From the end of the step before to the end of this one.
        compute_seconds_min: Until the reduction of gradients, of the fastest rank.
        compute_seconds_mean: The same, mean of all ranks.
        compute_seconds_max: The same, of the slowest rank.
        slowest_rank: That rank.
        slowest_host: Its node.
        waited_for_devices: Whether the ranks waited for their devices, so that the seconds of computing are the
            devices'; otherwise they are those of the hosts, which are ahead.
        data_seconds: Waiting for data, of the rank that waited longest.
        checkpoint_seconds: Waiting for a checkpoint.
        sequences: Since the beginning of the run, all ranks.
        tokens: The same.
        sequences_per_second: Of all ranks.
        sequences_per_second_per_node: The same, per node.
        mfu: Model FLOPs utilization, from 0 to 1; None where the peak of the hardware is not known.
    """

    step: int
    time: float
    loss: float
    mlm_loss: float
    nsp_loss: float
    learning_rate: float
    gradient_norm: float
    step_seconds: float
    compute_seconds_min: float
    compute_seconds_mean: float
    compute_seconds_max: float
    slowest_rank: int
    slowest_host: str
    waited_for_devices: bool
    data_seconds: float
    checkpoint_seconds: float
    sequences: int
    tokens: int
    sequences_per_second: float
    sequences_per_second_per_node: float
    mfu: float | None


@dataclass(frozen=True)
class Attempt:
    """One start of a run.

    Attributes:
        started: When, in seconds since 1970.
        resumed_step: The step of the checkpoint it started from; 0 from the beginning.
        workers: Processes on all nodes together.
        hosts: Names of the nodes, in the order of the ranks on them.
        restarts: How often Slurm had requeued the job.
    """

    started: float
    resumed_step: int
    nodes: int
    workers: int
    hosts: Sequence[str]
    job: str | None
    restarts: int


@dataclass(frozen=True)
class Straggler:
    """A rank that kept the others waiting.

    Attributes:
        steps: In how many steps it was the slowest, and slower than the mean by more than a tenth.
        seconds: By how much it was slower than the mean in these steps together.
    """

    rank: int
    host: str
    steps: int
    seconds: float


@dataclass(frozen=True)
class Summary:
    """The results of a run so far. Speeds are those of the steps beyond the first five of each attempt.

    Attributes:
        nodes: Of the last attempt, as workers.
        mfu: Model FLOPs utilization, from 0 to 1; None where the peak of the hardware is not known.
        scaling_efficiency: Sequences/s per node over those of the reference run; None without one.
        compute_spread: By how much the slowest rank's computing exceeds the mean's, as a share of it; mean of the steps
            that waited for devices, or of all if there are none.
        step_seconds: All steps together. Work that was lost and done again counts once.
        data_seconds: Of these, waiting for data.
        checkpoint_seconds: Of these, waiting for checkpoints.
        resumed_steps: The step each attempt started from; 0 for one from the beginning.
        stragglers: The ranks that straggled in most steps, five at most.
    """

    nodes: int
    workers: int
    steps: int
    sequences: int
    tokens: int
    sequences_per_second: float
    sequences_per_second_median: float
    sequences_per_second_per_node: float
    mfu: float | None
    scaling_efficiency: float | None
    loss_first: float
    loss_last: float
    compute_spread: float
    step_seconds: float
    data_seconds: float
    checkpoint_seconds: float
    attempts: int
    resumed_steps: tuple[int, ...]
    stragglers: tuple[Straggler, ...]


@dataclass(frozen=True)
class Run:
    """The records of a run.

    Attributes:
        options: The options of the program in the last attempt.
        attempts: Each start, the first first; there is one at least.
        steps: The lines of metrics.jsonl; there is one at least.
    """

    options: Mapping[str, Any]
    attempts: Sequence[Attempt]
    steps: Sequence[Step]


def parse_step(line: bytes) -> Step | None:
    """Return the step of a line, or None of one that is cut off or damaged."""
    try:
        return Step(**json.loads(line)) if line.endswith(b"\n") else None
    except (TypeError, ValueError):
        return None


def read_run(directory: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> Run:
    """Return the records of a run, finished or not. A last line that is cut off is left out.

    Args:
        directory: Where they are.
        read: Reads a file.

    Raises:
        RunError: They are missing or damaged, or there is no step yet.
    """
    try:
        facts = json.loads(read(directory / RUN))
        attempts = [Attempt(**attempt) for attempt in facts["attempts"]]
        options = dict(facts["options"])
        lines = read(directory / METRICS).splitlines(keepends=True)
    except OSError as error:
        raise RunError(f"{directory} is not the directory of a run: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{directory / RUN} is damaged: {error}") from None
    if not attempts:
        raise RunError(f"{directory / RUN} is damaged: it tells of no attempt")
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    steps = []
    for number, line in enumerate(lines, start=1):
        step = parse_step(line)
        if step is None:
            raise RunError(f"{directory / METRICS} is damaged: line {number} is no step")
        steps.append(step)
    if not steps:
        raise RunError(f"{directory} has no step yet")
    return Run(options, attempts, steps)


def measured(run: Run) -> Sequence[Step]:
    """Return the steps beyond the first ones of each attempt, or all if there are no others."""
    warm_up = {each.resumed_step + count + 1 for each in run.attempts for count in range(WARM_UP_STEPS)}
    return [step for step in run.steps if step.step not in warm_up] or run.steps


def summarize(run: Run, reference: Run | None = None) -> Summary:
    """Return what a run came to, compared per node with another if there is one."""
    steps = measured(run)
    # Every step has the same number of sequences, so that the harmonic mean of rates is their sum over their time.
    per_node = harmonic_mean([step.sequences_per_second_per_node for step in steps])
    used = [step.mfu for step in steps if step.mfu is not None]
    last, attempt = run.steps[-1], run.attempts[-1]
    return Summary(
        nodes=attempt.nodes,
        workers=attempt.workers,
        steps=last.step,
        sequences=last.sequences,
        tokens=last.tokens,
        sequences_per_second=harmonic_mean([step.sequences_per_second for step in steps]),
        sequences_per_second_median=median(step.sequences_per_second for step in steps),
        sequences_per_second_per_node=per_node,
        mfu=harmonic_mean(used) if used else None,
        scaling_efficiency=per_node / summarize(reference).sequences_per_second_per_node if reference else None,
        loss_first=run.steps[0].loss,
        loss_last=last.loss,
        compute_spread=fmean(_excess(step) for step in [s for s in steps if s.waited_for_devices] or steps),
        step_seconds=sum(step.step_seconds for step in run.steps),
        data_seconds=sum(step.data_seconds for step in run.steps),
        checkpoint_seconds=sum(step.checkpoint_seconds for step in run.steps),
        attempts=len(run.attempts),
        resumed_steps=tuple(each.resumed_step for each in run.attempts),
        stragglers=_stragglers(steps),
    )


def references(runs: Sequence[Run]) -> list[Run | None]:
    """Return for each run the first of them that it can be compared with; None: there is none."""
    return [next((each for each in runs if not blockers(run.options, each)), None) for run in runs]


def described(run: Run, reference: Run | None) -> dict[str, Any]:
    """Return what a run came to, as values of JSON."""
    return {
        "wanted_steps": run.options.get("steps"),
        "updated": run.steps[-1].time,
        "summary": asdict(summarize(run, reference)),
        "attempts": [asdict(each) for each in run.attempts],
    }


def blockers(options: Mapping[str, Any], reference: Run) -> list[tuple[str, str]]:
    """Return why a run of these options cannot be compared with a reference: what that is, and what it must be."""
    reasons = []
    nodes = max(attempt.nodes for attempt in reference.attempts)
    if nodes > 1:
        reasons.append((f"on {nodes} nodes", "a run on one node"))
    for name in _SAME_WORK:
        if reference.options.get(name) != options.get(name):
            option = f"--{name.replace('_', '-')}"
            reasons.append((f"with {option} {reference.options.get(name)}", f"one with {option} {options.get(name)}"))
    return reasons


def differences(options: Mapping[str, Any], reference: Run) -> list[str]:
    """Return what else differs, in lines: the efficiency is then not that of the number of nodes alone."""
    return [
        f"note: --{name.replace('_', '-')} is {options.get(name)}, and {reference.options.get(name)} in --reference"
        for name in _SAME_WAY
        if reference.options.get(name) != options.get(name)
    ]


def tell(summary: Summary) -> list[str]:
    """Return what a run came to, in lines."""
    speeds = (summary.sequences_per_second, summary.sequences_per_second_median, summary.sequences_per_second_per_node)
    mean, middle, per_node = (f"{speed:,.1f}" for speed in speeds)
    return [
        f"steps: {summary.steps}, sequences: {summary.sequences}, loss: {summary.loss_last:.4f}, "
        f"{summary.loss_first:.4f} at the first step",
        f"sequences/s: {mean}, median {middle}, per node {per_node}",
        f"MFU: {_percent(summary.mfu)}, scaling efficiency: {_percent(summary.scaling_efficiency)}",
        f"worst straggler: {_worst(summary.stragglers)}",
        f"attempts: {summary.attempts}, from step {' and '.join(map(str, summary.resumed_steps))}",
    ]


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{share:.1%}"


def _worst(stragglers: Sequence[Straggler]) -> str:
    if not stragglers:
        return "none"
    worst = stragglers[0]
    return f"rank {worst.rank} on {worst.host}, {worst.steps} steps, {worst.seconds:.1f} seconds over the mean"


def _excess(step: Step) -> float:
    return step.compute_seconds_max / step.compute_seconds_mean - 1 if step.compute_seconds_mean else 0.0


def _stragglers(steps: Sequence[Step]) -> tuple[Straggler, ...]:
    lost: dict[tuple[int, str], list[float]] = defaultdict(list)
    for step in steps:
        if step.compute_seconds_max > STRAGGLING * step.compute_seconds_mean:
            excess = step.compute_seconds_max - step.compute_seconds_mean
            lost[step.slowest_rank, step.slowest_host].append(excess)
    stragglers = [Straggler(rank, host, len(each), sum(each)) for (rank, host), each in lost.items()]
    return tuple(sorted(stragglers, key=lambda each: (-each.steps, each.rank))[:_STRAGGLERS_TOLD])
