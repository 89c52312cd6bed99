"""Tables that compare training runs, finished or not, by the records that the training program writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scripts.tables import Column, Table
from training.pretraining.summary import WARM_UP_STEPS, Run, RunError, Summary, blockers, read_run, summarize

_NONE = "-"


class ReportError(ValueError):
    """Runs are missing or damaged: one line for each."""


@dataclass(frozen=True)
class ReportedRun:
    """A run of the report.

    Attributes:
        name: Name of its directory; the whole path where names are the same.
        run: Its records.
        summary: Their summary; the scaling efficiency is against the first run on one node, of the same phase, sequence
            length and model, among those of the report.
    """

    name: str
    run: Run
    summary: Summary


def load(directories: Sequence[Path]) -> list[ReportedRun]:
    """Return the runs of some directories.

    Raises:
        ReportError: One is missing or damaged.
    """
    runs, problems = [], []
    for directory in directories:
        try:
            runs.append(read_run(directory))
        except RunError as error:
            problems.append(str(error))
    if problems:
        raise ReportError("\n".join(problems))
    names = [directory.resolve().name for directory in directories]
    if len(set(names)) < len(names):
        names = [str(directory) for directory in directories]
    references = [next((each for each in runs if not blockers(run.options, each)), None) for run in runs]
    return [
        ReportedRun(name, run, summarize(run, reference))
        for name, run, reference in zip(names, runs, references, strict=True)
    ]


def tables(runs: Sequence[ReportedRun]) -> list[Table]:
    """Return all tables; that of stragglers if there are any."""
    stragglers = [_stragglers(runs)] if any(run.summary.stragglers for run in runs) else []
    return [_speeds(runs), _progress(runs), _attempts(runs), *stragglers]


def _speeds(runs: Sequence[ReportedRun]) -> Table:
    rows = [
        (
            run.name,
            f"{summary.nodes:,}",
            f"{summary.workers:,}",
            f"{summary.sequences_per_second:,.1f}",
            f"{summary.sequences_per_second_median:,.1f}",
            f"{summary.sequences_per_second_per_node:,.1f}",
            _percent(summary.mfu),
            _percent(summary.scaling_efficiency),
            _percent(summary.compute_spread),
            _percent(summary.data_seconds / summary.step_seconds),
            _percent(summary.checkpoint_seconds / summary.step_seconds),
        )
        for run in runs
        for summary in [run.summary]
    ]
    titles = (
        "Nodes",
        "Workers",
        "Sequences/s",
        "median",
        "per node",
        "MFU",
        "Scaling\nefficiency",
        "Slowest rank\nover mean",
        "Waiting\nfor data",
        "Waiting for\ncheckpoints",
    )
    notes = [f"Speeds leave out the first {WARM_UP_STEPS} steps of each attempt, which compile or load graphs."]
    if any(run.summary.scaling_efficiency is None for run in runs):
        notes.append("Scaling efficiency: name a run on one node too, of the same phase, sequence length and model.")
    return Table("Speed", [Column("Run", False), *map(Column, titles)], rows, notes=notes)


def _progress(runs: Sequence[ReportedRun]) -> Table:
    rows = [
        (
            run.name,
            f"{summary.steps:,}" + (f" of {wanted:,}" if wanted else ""),
            f"{summary.sequences:,}",
            f"{summary.tokens:,}",
            f"{summary.loss_first:.4f}",
            f"{summary.loss_last:.4f}",
            _hours(summary.step_seconds),
            f"{summary.attempts:,}",
            _moment(run.run.steps[-1].time),
        )
        for run in runs
        for summary, wanted in [(run.summary, run.run.options.get("steps"))]
    ]
    titles = ("Steps", "Sequences", "Tokens", "First loss", "Last loss", "Step time", "Attempts", "Last step (UTC)")
    return Table("Progress", [Column("Run", False), *map(Column, titles)], rows)


def _attempts(runs: Sequence[ReportedRun]) -> Table:
    rows = [
        (
            run.name if number == 1 else "",
            f"{number:,}",
            _moment(attempt.started),
            f"{attempt.resumed_step:,}",
            f"{attempt.nodes:,}",
            f"{attempt.workers:,}",
            attempt.job or _NONE,
            f"{attempt.restarts:,}",
        )
        for run in runs
        for number, attempt in enumerate(run.run.attempts, start=1)
    ]
    titles = ("Attempt", "Started (UTC)", "From step", "Nodes", "Workers", "Slurm job", "Requeued")
    return Table("Attempts", [Column("Run", False), *map(Column, titles)], rows)


def _stragglers(runs: Sequence[ReportedRun]) -> Table:
    rows = [
        (run.name, f"{each.rank:,}", each.host, f"{each.steps:,}", f"{each.seconds:,.1f}")
        for run in runs
        for each in run.summary.stragglers
    ]
    columns = [Column("Run", False), Column("Rank"), Column("Node", False), Column("Steps")]
    note = "The slowest rank of a step, where it took more than a tenth longer than the mean of all ranks."
    return Table("Stragglers", [*columns, Column("Seconds over the mean")], rows, notes=[note])


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:.1%}"


def _hours(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{rest:02}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
