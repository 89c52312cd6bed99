"""A run's records, read back: its steps, its attempts, and what they come to. Standard library alone."""

from __future__ import annotations

import json
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

RUN = "run.json"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
WARM_UP_STEPS = 5  # of each attempt: they load or compile graphs, so that speeds are told without them
STRAGGLING = 1.1  # a rank straggles in a step that takes it longer than the mean of all ranks times this
_STRAGGLERS_TOLD = 5
_RECENT = 21  # steps, whose median a checkpoint or another pause does not change
_SLOW = 0.8  # of the speed before
_LARGEST = 1e30  # of a further number that is used: sums of what a program logs stay finite

_SAME_WORK = ("phase", "sequence_length", "layers", "hidden", "heads", "intermediate", "vocabulary")
"""Options that a sequence's work follows from, where a program has them."""

_SAME_WAY = ("optimizer", "global_batch", "micro_batch", "precision", "head")
"""Options that speed depends on, too. The global batch is that of a node with weak scaling, of all with strong."""


class RunError(ValueError):
    """The records of a run cannot be used."""


@dataclass(frozen=True)
class Step:
    """A line of metrics.jsonl: one optimizer step.

    Attributes:
        step: Its number, from 1 on.
        time: When it ended, in seconds since 1970.
        loss: The mean over the global batch.
        seconds: From the end of the step before to the end of this one.
        further: All else that the line has, by name: what the program logs, and what follows from it. Known names:
            sequences, tokens and flops (floating-point operations) of the step over all ranks, and the same a second;
            sequences_per_second_per_node; mfu, from 0 to 1; learning_rate; gradient_norm, before clipping;
            compute_seconds_min, _mean, _max of the ranks until the reduction of gradients, with slowest_rank and
            slowest_host; waited_for_devices, whether these are the devices' seconds, not those of hosts, which are
            ahead; data_seconds, of the rank that waited longest for data; checkpoint_seconds; evaluation_loss, on
            held-out data, and more of evaluation_, whose seconds are not the step's.
    """

    step: int
    time: float
    loss: float
    seconds: float
    further: Mapping[str, Any]

    def number(self, name: str) -> float | None:
        """Return a further number, or None where there is none of this name."""
        value = self.further.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST:
            return None
        return float(value)

    def line(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {"step": self.step, "time": self.time, "loss": self.loss, "seconds": self.seconds, **self.further}


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
class Slowdown:
    """Steps that are well slower than those of the same attempt before them; at most one of an attempt is told.

    Attributes:
        step: The first of them, about.
        speed: Their median speed over that of the steps before, from 0 to 0.8.
    """

    step: int
    speed: float


class Pace:
    """Whether the newest steps of an attempt are well slower than all before them, told as the steps come."""

    def __init__(self) -> None:
        self._before: list[float] = []
        self._recent: deque[tuple[int, float]] = deque()

    def slowdown(self, step: Step) -> Slowdown | None:
        """Take the next step beyond the first ones of the attempt, and return how slow the newest are, if they are."""
        self._recent.append((step.step, _speed(step)))
        if len(self._recent) > _RECENT:
            insort(self._before, self._recent.popleft()[1])
        if len(self._before) < _RECENT:
            return None
        middle = len(self._before) // 2
        usual = (self._before[middle] + self._before[~middle]) / 2
        recent = median(speed for _, speed in self._recent)
        if recent >= _SLOW * usual:
            return None
        return Slowdown(next(number for number, speed in self._recent if speed < _SLOW * usual), recent / usual)


def _speed(step: Step) -> float:
    """Return what a step did a second, of what its program counts."""
    known = (step.number(name) for name in ("sequences_per_second", "tokens_per_second"))
    return next((rate for rate in known if rate), 1 / step.seconds if step.seconds > 0 else 0.0)


@dataclass(frozen=True)
class Summary:
    """The results of a run so far. Speeds are those of the steps beyond the first five of each attempt.

    Attributes:
        nodes: Of the last attempt, as workers.
        sequences: Of all steps on record; None where the program does not log them, as tokens and what follows.
        mfu: Model FLOPs utilization, from 0 to 1; None where the peak of the hardware is not known.
        scaling_efficiency: Sequences/s per node over those of the reference run; None without one.
        compute_spread: By how much the slowest rank's computing exceeds the mean's, as a share of it; mean of the steps
            that waited for devices, or of all if there are none.
        evaluation_loss: The last on held-out data, after evaluation_step; None without any.
        step_seconds: All steps together. Work that was lost and done again counts once.
        data_seconds: Of these, waiting for data.
        checkpoint_seconds: Of these, waiting for checkpoints.
        resumed_steps: The step each attempt started from; 0 for one from the beginning.
        stragglers: The ranks that straggled in most steps, five at most.
        slowdowns: Where attempts became slower than they were.
    """

    nodes: int
    workers: int
    steps: int
    sequences: int | None
    tokens: int | None
    sequences_per_second: float | None
    sequences_per_second_median: float | None
    sequences_per_second_per_node: float | None
    tokens_per_second: float | None
    mfu: float | None
    scaling_efficiency: float | None
    loss_first: float
    loss_last: float
    evaluation_loss: float | None
    evaluation_step: int | None
    compute_spread: float | None
    step_seconds: float
    data_seconds: float | None
    checkpoint_seconds: float | None
    attempts: int
    resumed_steps: tuple[int, ...]
    stragglers: tuple[Straggler, ...]
    slowdowns: tuple[Slowdown, ...]


@dataclass(frozen=True)
class Run:
    """The records of a run.

    Attributes:
        program: Its name.
        options: The options of the program in the last attempt.
        attempts: Each start, the first first; there is one at least.
        steps: The lines of metrics.jsonl; there is one at least.
    """

    program: str
    options: Mapping[str, Any]
    attempts: Sequence[Attempt]
    steps: Sequence[Step]


def parse_step(line: bytes) -> Step | None:
    """Return the step of a line, or None of one that is cut off or damaged."""
    try:
        said = json.loads(line) if line.endswith(b"\n") else {}
        step, moment, loss, seconds = (said.pop(name) for name in ("step", "time", "loss", "seconds"))
        return Step(int(step), float(moment), float(loss), float(seconds), said) if step >= 1 else None
    except (AttributeError, KeyError, TypeError, ValueError):
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
        options, named = dict(facts["options"]), str(facts["program"])
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
    return Run(named, options, attempts, steps)


def measured(run: Run) -> Sequence[Step]:
    """Return the steps beyond the first ones of each attempt, or all if there are no others."""
    warm_up = {each.resumed_step + count + 1 for each in run.attempts for count in range(WARM_UP_STEPS)}
    return [step for step in run.steps if step.step not in warm_up] or run.steps


def summarize(run: Run, reference: Run | None = None) -> Summary:
    """Return what a run came to, compared per node with another if there is one."""
    steps = measured(run)
    last, attempt = run.steps[-1], run.attempts[-1]
    evaluated = next((step for step in reversed(run.steps) if step.number("evaluation_loss") is not None), None)
    per_second = [rate for step in steps if (rate := step.number("sequences_per_second"))]
    per_node = _mean_rate(steps, "sequences_per_second_per_node")
    of_reference = summarize(reference).sequences_per_second_per_node if reference else None
    spreads = [_excess(step) for step in [s for s in steps if s.further.get("waited_for_devices")] or steps]
    known = [spread for spread in spreads if spread is not None]
    sequences, tokens = _sum(run.steps, "sequences"), _sum(run.steps, "tokens")
    return Summary(
        nodes=attempt.nodes,
        workers=attempt.workers,
        steps=last.step,
        sequences=None if sequences is None else round(sequences),
        tokens=None if tokens is None else round(tokens),
        sequences_per_second=_mean_rate(steps, "sequences_per_second"),
        sequences_per_second_median=median(per_second) if per_second else None,
        sequences_per_second_per_node=per_node,
        tokens_per_second=_mean_rate(steps, "tokens_per_second"),
        mfu=_mean_rate(steps, "mfu"),
        scaling_efficiency=per_node / of_reference if per_node and of_reference else None,
        loss_first=run.steps[0].loss,
        loss_last=last.loss,
        evaluation_loss=evaluated.number("evaluation_loss") if evaluated else None,
        evaluation_step=evaluated.step if evaluated else None,
        compute_spread=fmean(known) if known else None,
        step_seconds=sum(step.seconds for step in run.steps),
        data_seconds=_sum(run.steps, "data_seconds"),
        checkpoint_seconds=_sum(run.steps, "checkpoint_seconds"),
        attempts=len(run.attempts),
        resumed_steps=tuple(each.resumed_step for each in run.attempts),
        stragglers=_stragglers(steps),
        slowdowns=tuple(_slowdowns(run)),
    )


def _sum(steps: Sequence[Step], name: str) -> float | None:
    known = [number for step in steps if (number := step.number(name)) is not None]
    return sum(known) if known else None


def _mean_rate(steps: Sequence[Step], name: str) -> float | None:
    """Return the mean of rates, each over its step's time; a step without one does not count."""
    known = [(rate, step.seconds) for step in steps if (rate := step.number(name)) is not None and step.seconds > 0]
    return sum(rate * seconds for rate, seconds in known) / sum(seconds for _, seconds in known) if known else None


def references(runs: Sequence[Run]) -> list[Run | None]:
    """Return for each run the first of them that it can be compared with; None: there is none."""
    return [
        next((each for each in runs if each.program == run.program and not blockers(run.options, each)), None)
        for run in runs
    ]


def described(run: Run, reference: Run | None) -> dict[str, Any]:
    """Return what a run came to, as values of JSON."""
    return {
        "program": run.program,
        "wanted_steps": run.options.get("steps", run.steps[-1].number("steps")),
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
    lines = [f"steps: {summary.steps}, loss: {summary.loss_last:.4f}, {summary.loss_first:.4f} at the first step"]
    if summary.evaluation_loss is not None:
        lines.append(f"evaluation loss: {summary.evaluation_loss:.4f} at step {summary.evaluation_step}")
    if summary.sequences is not None:
        lines.append(f"sequences: {summary.sequences}, tokens: {_told(summary.tokens, '{}')}")
    if summary.sequences_per_second is not None:
        lines.append(
            f"sequences/s: {_told(summary.sequences_per_second)}, median {_told(summary.sequences_per_second_median)}, "
            f"per node {_told(summary.sequences_per_second_per_node)}"
        )
    if summary.tokens_per_second is not None:
        lines.append(f"tokens/s: {_told(summary.tokens_per_second)}")
    return [
        *lines,
        f"MFU: {_told(summary.mfu, '{:.1%}')}, scaling efficiency: {_told(summary.scaling_efficiency, '{:.1%}')}",
        f"worst straggler: {_worst(summary.stragglers)}",
        *(f"slower from step {each.step} on: {each.speed:.0%} of the speed before" for each in summary.slowdowns),
        f"attempts: {summary.attempts}, from step {' and '.join(map(str, summary.resumed_steps))}",
    ]


def _told(number: float | None, form: str = "{:,.1f}") -> str:
    return "not known" if number is None else form.format(number)


def _worst(stragglers: Sequence[Straggler]) -> str:
    if not stragglers:
        return "none"
    worst = stragglers[0]
    return f"rank {worst.rank} on {worst.host}, {worst.steps} steps, {worst.seconds:.1f} seconds over the mean"


def _excess(step: Step) -> float | None:
    mean, most = step.number("compute_seconds_mean"), step.number("compute_seconds_max")
    return most / mean - 1 if mean and most is not None else None


def _slowdowns(run: Run) -> Iterator[Slowdown]:
    """Yield the first of each attempt. Its steps end where the next attempt began."""
    for number, attempt in enumerate(run.attempts, start=1):
        first = attempt.resumed_step + WARM_UP_STEPS
        last = min((each.resumed_step for each in run.attempts[number:]), default=run.steps[-1].step)
        pace = Pace()
        found = (pace.slowdown(step) for step in run.steps if first < step.step <= last)
        yield from [each for each in found if each][:1]


def _stragglers(steps: Sequence[Step]) -> tuple[Straggler, ...]:
    lost: dict[tuple[int, str], list[float]] = defaultdict(list)
    for step in steps:
        names = ("compute_seconds_mean", "compute_seconds_max", "slowest_rank")
        mean, most, rank = map(step.number, names)
        if mean is not None and most is not None and rank is not None and most > STRAGGLING * mean:
            lost[int(rank), str(step.further.get("slowest_host"))].append(most - mean)
    stragglers = [Straggler(rank, host, len(each), sum(each)) for (rank, host), each in lost.items()]
    return tuple(sorted(stragglers, key=lambda each: (-each.steps, each.rank))[:_STRAGGLERS_TOLD])
