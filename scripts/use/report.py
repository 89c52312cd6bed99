"""Tables that compare training runs, finished or not, by the records that the training program writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.values import Line as Text
from scripts.core.document import Document, Result
from scripts.core.errors import HeadNodeError, UnusableError
from scripts.core.figures import counted
from scripts.core.report import Block, Column, Gap, Table
from ultracluster_job import records as summary
from ultracluster_job.records import WARM_UP_STEPS, Attempt, RunError, Summary, described, read_run, references

_NONE = "-"


class ComparedRun(Document):
    """A run as ``runs show`` compares it."""

    name: str = Field(description="Name of its directory; the whole path where names are the same.")
    program: Text = Field(description="What it ran.")
    wanted_steps: int | None = Field(description="Steps that it was told to make; null: not known.")
    updated: datetime = Field(description="When its last step ended.")
    summary: Summary = Field(description="Speeds, losses, stragglers. Speeds leave out the first steps of attempts.")
    attempts: tuple[Attempt, ...] = Field(description="Each start, the first first.")


class Comparison(Result):
    """What ``runs show --output json`` prints."""

    runs: tuple[ComparedRun, ...] = Field(description="The runs, in the order in which they were named.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people: a table each of speed, progress and attempts, and of what is slow if anything is."""
        for table in (_speeds, _progress, _attempts, _stragglers, _slowdowns):
            yield table(self.runs)
            yield Gap()


def compare(directories: Sequence[Path]) -> Comparison:
    """Return the runs of some directories.

    The scaling efficiency of each is against the first of them on one node, of the same phase, sequence length and
    model.

    Raises:
        UnusableError: Some are missing or damaged: one line for each.
    """
    runs, problems = [], []
    for directory in directories:
        try:
            runs.append(read_run(directory))
        except RunError as error:
            problems.append(str(error))
    if problems:
        raise UnusableError("\n".join(problems))
    rows = [described(run, reference) for run, reference in zip(runs, references(runs), strict=True)]
    return _comparison([str(each.resolve()) for each in directories], [str(each) for each in directories], rows)


class _Compared(Document):
    """What the head node answers."""

    problems: tuple[Text, ...]
    runs: tuple[dict[str, Any], ...]


def compare_on_cluster(deployment: Deployment, directories: Sequence[str]) -> Comparison:
    """Do the same with runs on the cluster's file system, which the head node reads as its own user.

    Raises:
        HeadNodeError: The head node cannot be asked, or its answer cannot be read.
        UnusableError: A directory is not absolute, or some are missing or damaged: one line for each.
    """
    if relative := [each for each in directories if not each.startswith("/")]:
        raise UnusableError(
            f"got {', '.join(relative)}; allowed: the absolute path of a run on the cluster, as runs list has it"
        )
    text = Path(summary.__file__).read_text(encoding="utf-8")
    words = program.as_user(deployment.system_user, program.words("records", text, *directories))
    head_node = HeadNode(deployment)
    answer = program.ask(head_node, words, "compared", _Compared, seconds=300)
    if answer.problems:
        raise UnusableError("\n".join(answer.problems))
    if len(answer.runs) != len(directories):
        raise HeadNodeError(f"The head node {head_node.instance_id} compared {counted(len(answer.runs), 'runs')}")
    try:
        return _comparison(directories, directories, answer.runs)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnusableError(f"a record is damaged: {where}: {first['msg']}") from None


def _comparison(paths: Sequence[str], given: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Comparison:
    names = [Path(each).name for each in paths]
    if len(set(names)) < len(names):
        names = list(given)
    return Comparison(
        runs=tuple(ComparedRun.model_validate({"name": name, **row}) for name, row in zip(names, rows, strict=True))
    )


def _speeds(runs: Sequence[ComparedRun]) -> Table:
    notes = [f"Speeds leave out the first {WARM_UP_STEPS} steps of each attempt, which compile or load graphs."]
    if any(run.summary.scaling_efficiency is None for run in runs):
        notes.append("Scaling efficiency: name a run on one node too, of the same phase, sequence length and model.")
    cells = [
        {
            "Program": run.program,
            "Nodes": f"{summary.nodes:,}",
            "Workers": f"{summary.workers:,}",
            "Sequences/s": _number(summary.sequences_per_second),
            "median": _number(summary.sequences_per_second_median),
            "per node": _number(summary.sequences_per_second_per_node),
            "Tokens/s": _number(summary.tokens_per_second, 0),
            "MFU": _percent(summary.mfu),
            "Scaling\nefficiency": _percent(summary.scaling_efficiency),
            "Slowest rank\nover mean": _percent(summary.compute_spread),
            "Waiting\nfor data": _share(summary.data_seconds, summary),
            "Waiting for\ncheckpoints": _share(summary.checkpoint_seconds, summary),
        }
        for run, summary in ((run, run.summary) for run in runs)
    ]
    return _table("Speed", [run.name for run in runs], cells, notes)


def _progress(runs: Sequence[ComparedRun]) -> Table:
    cells = []
    for run in runs:
        summary, wanted = run.summary, run.wanted_steps
        cells.append(
            {
                "Steps": f"{summary.steps:,}" + (f" of {wanted:,}" if wanted else ""),
                "Sequences": _number(summary.sequences, 0),
                "Tokens": _number(summary.tokens, 0),
                "First loss": f"{summary.loss_first:.4f}",
                "Last loss": f"{summary.loss_last:.4f}",
                "Evaluation loss,\nafter step": _evaluated(summary),
                "Step time": _hours(summary.step_seconds),
                "Attempts": f"{summary.attempts:,}",
                "Last step (UTC)": _moment(run.updated),
            }
        )
    return _table("Progress", [run.name for run in runs], cells)


def _attempts(runs: Sequence[ComparedRun]) -> Table:
    attempts = [(run, number, each) for run in runs for number, each in enumerate(run.attempts, start=1)]
    cells = [
        {
            "Attempt": f"{number:,}",
            "Started (UTC)": _moment(datetime.fromtimestamp(attempt.started, UTC)),
            "From step": f"{attempt.resumed_step:,}",
            "Nodes": f"{attempt.nodes:,}",
            "Workers": f"{attempt.workers:,}",
            "Slurm job": attempt.job or _NONE,
            "Requeued": f"{attempt.restarts:,}",
        }
        for _, number, attempt in attempts
    ]
    return _table("Attempts", [run.name if number == 1 else "" for run, number, _ in attempts], cells)


def _stragglers(runs: Sequence[ComparedRun]) -> Table:
    stragglers = [(run, each) for run in runs for each in run.summary.stragglers]
    cells = [
        {
            "Rank": f"{each.rank:,}",
            "Node": each.host,
            "Steps": f"{each.steps:,}",
            "Seconds over the mean": f"{each.seconds:,.1f}",
        }
        for _, each in stragglers
    ]
    note = "The slowest rank of a step, where it took more than a tenth longer than the mean of all ranks."
    return _table("Stragglers", [run.name for run, _ in stragglers], cells, [note])


def _slowdowns(runs: Sequence[ComparedRun]) -> Table:
    slowdowns = [(run, each) for run in runs for each in run.summary.slowdowns]
    cells = [{"From step": f"{each.step:,}", "Of the speed before": _percent(each.speed)} for _, each in slowdowns]
    note = "Medians of 21 steps against all of the same attempt before, where they are below 80 %."
    return _table("Slower than before", [run.name for run, _ in slowdowns], cells, [note])


def _table(title: str, names: Sequence[str], rows: Sequence[Mapping[str, str]], notes: Sequence[str] = ()) -> Table:
    columns = [
        Column("Run", False),
        *(Column(name, name not in ("Node", "Program")) for row in rows[:1] for name in row),
    ]
    return Table(title, columns, [(name, *row.values()) for name, row in zip(names, rows, strict=True)], notes=notes)


def _evaluated(summary: Summary) -> str:
    loss = summary.evaluation_loss
    return _NONE if loss is None else f"{loss:.4f}, {summary.evaluation_step:,}"


def _number(value: float | None, digits: int = 1) -> str:
    return _NONE if value is None else f"{value:,.{digits}f}"


def _share(seconds: float | None, summary: Summary) -> str:
    return _percent(None if seconds is None or not summary.step_seconds else seconds / summary.step_seconds)


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:.1%}"


def _hours(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{rest:02}"


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
