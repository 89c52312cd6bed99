"""What runs came to, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from scripts.pages import Column, Table
from scripts.report.runs import ShownRun
from training.pretraining.summary import WARM_UP_STEPS

_NONE = "-"


def tables(runs: Sequence[ShownRun]) -> list[Table]:
    """Return all tables; that of stragglers if there are any."""
    found = [_speeds(runs), _progress(runs), _attempts(runs)]
    return [*found, _stragglers(runs)] if any(run.summary.stragglers for run in runs) else found


def _speeds(runs: Sequence[ShownRun]) -> Table:
    rows = []
    for run in runs:
        found = run.summary
        rows.append(
            (
                run.name,
                f"{found.nodes:,}",
                f"{found.workers:,}",
                f"{found.sequences_per_second:,.1f}",
                f"{found.sequences_per_second_median:,.1f}",
                f"{found.sequences_per_second_per_node:,.1f}",
                _percent(found.mfu),
                _percent(found.scaling_efficiency),
                _percent(found.compute_spread),
                _percent(found.data_seconds / found.step_seconds),
                _percent(found.checkpoint_seconds / found.step_seconds),
            )
        )
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


def _progress(runs: Sequence[ShownRun]) -> Table:
    rows = []
    for run in runs:
        found = run.summary
        wanted = run.run.options.get("steps")
        rows.append(
            (
                run.name,
                f"{found.steps:,}" + (f" of {wanted:,}" if wanted else ""),
                f"{found.sequences:,}",
                f"{found.tokens:,}",
                f"{found.loss_first:.4f}",
                f"{found.loss_last:.4f}",
                _hours(found.step_seconds),
                f"{found.attempts:,}",
                _moment(run.run.steps[-1].time),
            )
        )
    titles = ("Steps", "Sequences", "Tokens", "First loss", "Last loss", "Step time", "Attempts", "Last step (UTC)")
    return Table("Progress", [Column("Run", False), *map(Column, titles)], rows)


def _attempts(runs: Sequence[ShownRun]) -> Table:
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


def _stragglers(runs: Sequence[ShownRun]) -> Table:
    rows = [
        (run.name, f"{each.rank:,}", each.host, f"{each.steps:,}", f"{each.seconds:,.1f}")
        for run in runs
        for each in run.summary.stragglers
    ]
    columns = [
        Column("Run", False),
        Column("Rank"),
        Column("Node", False),
        Column("Steps"),
        Column("Seconds over the mean"),
    ]
    note = "The slowest rank of a step, where it took more than a tenth longer than the mean of all ranks."
    return Table("Stragglers", columns, rows, notes=[note])


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:.1%}"


def _hours(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{rest:02}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
