"""All that can be refused before a node-hour is spent."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultracluster_job import (
    CHECKPOINTS,
    IDENTITY,
    STATE,
    BadInputError,
    Batch,
    RunError,
    blockers,
    differences,
    divide,
    read_run,
    seconds_between_failures,
)

from .options import Options, contradictions
from .phases import PUBLISHED_SPEED, best_seconds_between_checkpoints

if TYPE_CHECKING:
    from ultracluster_job import Checkpoint

    from .corpus import Shard

_NODES = 1
_WORKERS_PER_NODE = 32  # NeuronCores of a trn1.32xlarge
_GB = 1e9
_DAY = 86_400
_FREE_TO_CHANGE = ("steps", "micro_batch", "learning_rate", "warmup_steps", "dropout", "precision", "head")
"""Options that may have other values when a run continues, which is noted."""


@dataclass(frozen=True)
class Findings:
    """What a run will start with.

    Attributes:
        shards: Its data; None for a generated corpus.
        held_out: What it is evaluated on; None: nothing.
        resumed: The checkpoint that it continues from.
        first: The checkpoint of another run whose weights it takes.
        notes: In what the reference is another run than this one.
    """

    shards: Sequence[Shard] | None = None
    held_out: Sequence[Shard] | None = None
    resumed: Checkpoint | None = None
    first: Checkpoint | None = None
    notes: Sequence[str] = ()


def check(options: Options) -> list[str]:
    """Return the plan for a job, in lines.

    Raises:
        BadInputError: With all that stands in its way.
    """
    nodes, workers = options.nodes or _NODES, options.workers_per_node or _WORKERS_PER_NODE
    problems = contradictions(options)
    try:
        batch = divided(options, nodes, workers)
    except BadInputError as error:
        problems += error.problems
        batch = Batch(options.global_batch, options.micro_batch, nodes * workers)  # to look at the rest
    try:
        findings = examine(options, batch)
    except BadInputError as error:
        problems += error.problems
    if problems:
        raise BadInputError(problems)
    return describe(options, batch, nodes, findings)


def divided(options: Options, nodes: int, workers_per_node: int) -> Batch:
    """Return the division of an optimizer step's sequences.

    Raises:
        BadInputError: The batch cannot be kept exactly.
    """
    weak = options.scaling == "weak"
    return divide(options.global_batch, options.micro_batch, nodes=nodes, workers_per_node=workers_per_node, weak=weak)


def examine(options: Options, batch: Batch) -> Findings:
    """Return what a run would start with.

    Raises:
        BadInputError: With all that is wrong with its directories.
    """
    problems: list[str] = []
    shards = _shards(options.data, options, batch, problems) if options.data else None
    bad_data = bool(problems)
    held_out = _held_out(options.evaluate_data, options, problems) if options.evaluate_data else None
    wanted = identity(options, batch, shards)
    if bad_data:
        del wanted["data"]  # it is not known
    notes = _check_reference(options, problems)
    resumed = _newest(options.output) if _is_writable_output(options, problems) else None
    if resumed:
        _compare(f"output {options.output}", resumed, wanted, problems)
    first = None
    if options.start_from and not resumed:
        first = _newest(options.start_from)
        if first:
            _compare(f"start-from {options.start_from}", first, options.sizes_by_option, problems)
        else:
            problems.append(
                _problem("start-from", options.start_from, "the directory of a run with a complete checkpoint")
            )
    if problems:
        raise BadInputError(problems)
    return Findings(shards, held_out, resumed, first, notes)


def identity(options: Options, batch: Batch, shards: Sequence[Shard] | None) -> dict[str, Any]:
    """Return what a run may not change when it continues from its checkpoint, which would mean something else."""
    same = ("phase", "optimizer", "seed", "sequence_length", "max_predictions")
    return {
        "data": _told_data(shards),
        "global-batch": batch.sequences,
        **{name.replace("_", "-"): getattr(options, name) for name in same},
        **options.sizes_by_option,
    }


def _told_data(shards: Sequence[Shard] | None) -> str:
    """Return a line that is another for other data: the order of sequences follows from what is in it."""
    if shards is None:
        return "a generated corpus"
    names_and_rows = json.dumps([(shard.name, shard.rows) for shard in shards])
    digest = hashlib.sha256(names_and_rows.encode()).hexdigest()[:12]
    return f"{sum(shard.rows for shard in shards)} sequences in {len(shards)} shards, {digest} by names and rows"


def _problem(option: str, got: object, allowed: str) -> str:
    return f"--{option}: got {got}; allowed: {allowed}"


def _inspected(option: str, directory: Path, options: Options) -> tuple[Sequence[Shard], Sequence[str]]:
    from .corpus import inspect

    return inspect(
        directory,
        sequence_length=options.sequence_length,
        max_predictions=options.max_predictions,
        vocabulary=options.vocabulary,
        option=option,
    )


def _held_out(directory: Path, options: Options, problems: list[str]) -> Sequence[Shard]:
    shards, lines = _inspected("evaluate-data", directory, options)
    problems += lines
    if options.data and not lines and directory.resolve() == options.data.resolve():
        problems.append(_problem("evaluate-data", directory, "shards that the run does not train on, as --data does"))
    return shards


def _shards(directory: Path, options: Options, batch: Batch, problems: list[str]) -> Sequence[Shard]:
    shards, lines = _inspected("data", directory, options)
    problems += lines
    rows = sum(shard.rows for shard in shards)
    if not lines and rows < batch.sequences:
        problems.append(
            _problem("data", f"{directory} with {rows} sequences", f"one global batch, {batch.sequences}, or more")
        )
    return shards


def _is_writable_output(options: Options, problems: list[str]) -> bool:
    """Tell what cannot be written to, or if there is no space for the checkpoints and one more."""
    standing = next(path for path in (options.output, *options.output.absolute().parents) if path.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK | os.X_OK):
        problems.append(
            _problem("output", options.output, f"a directory that can be written to, which {standing} is not")
        )
        return False
    there = len(list((options.output / CHECKPOINTS).glob("step-*")))
    needed = max(1, options.keep + 1 - there) * options.sizes.checkpoint_bytes
    free = shutil.disk_usage(standing).free
    if free < needed:
        problems.append(
            _problem("output", f"{options.output} with {free / _GB:.1f} GB free", f"{needed / _GB:.1f} GB or more")
        )
    return True


def _check_reference(options: Options, problems: list[str]) -> list[str]:
    """Return in what the run to compare with differs, as far as that is allowed."""
    if not options.reference:
        return []
    try:
        reference = read_run(options.reference)
    except RunError as error:
        problems.append(_problem("reference", options.reference, f"the directory of a run ({error})"))
        return []
    for got, allowed in blockers(asdict(options), reference):
        problems.append(_problem("reference", f"{options.reference} {got}", allowed))
    return differences(asdict(options), reference)


def _newest(directory: Path) -> Checkpoint | None:
    try:
        if not (directory / CHECKPOINTS).is_dir():
            return None
        from ultracluster_job import Checkpoints

        return Checkpoints(directory / CHECKPOINTS, keep=1).newest()
    except OSError as error:
        raise BadInputError([f"{directory / CHECKPOINTS} cannot be read: {error}"]) from None


def _compare(option: str, checkpoint: Checkpoint, wanted: Mapping[str, Any], problems: list[str]) -> None:
    """Tell in what a checkpoint is one of another run. Its tensors are not read."""
    import torch

    state = torch.load(checkpoint.path / STATE, map_location="cpu", weights_only=True, mmap=True)
    for name, value in wanted.items():
        if state[IDENTITY].get(name) != value:
            problems.append(_problem(name, value, f"{state[IDENTITY].get(name)}, as in the checkpoint of --{option}"))


def describe(options: Options, batch: Batch, nodes: int, findings: Findings) -> list[str]:
    """Return what a run will do, in lines."""
    lost = min(options.checkpoint_interval, options.steps)
    speed = PUBLISHED_SPEED[options.phase]
    minutes = lost * batch.sequences / (speed * nodes) / 60
    best = best_seconds_between_checkpoints(nodes, options.sizes.checkpoint_bytes)
    return [
        f"nodes: {nodes}, workers: {batch.ranks}",
        f"global batch: {batch.sequences} = {batch.ranks} workers x {batch.accumulation} micro-batches x {batch.micro}",
        f"steps: {options.steps}, sequences: {options.steps * batch.sequences}",
        f"model: {options.sizes.parameters / 1e6:.1f} million parameters",
        f"checkpoint: {options.sizes.checkpoint_bytes / _GB:.2f} GB, every {options.checkpoint_interval} steps, "
        f"{options.keep} kept",
        f"a failure loses: at most {lost} steps, {lost * batch.sequences} sequences, {minutes:.0f} minutes at "
        f"{speed} sequences/s per node, AWS's with bf16-stochastic",
        f"failures expected: one in {seconds_between_failures(nodes) / _DAY:.1f} days, as Meta published of Llama 3; "
        f"best between checkpoints: {best / 60:.0f} minutes, of which the default takes 30 at most",
        *_data_lines(batch, findings),
        *_evaluation_lines(options, findings),
        *_change_lines(options, findings),
        *findings.notes,
        *_start_lines(options, findings),
    ]


def _change_lines(options: Options, findings: Findings) -> list[str]:
    """Return in what a run that continues differs from its last attempt."""
    if not findings.resumed:
        return []
    try:
        before = read_run(options.output).options
    except RunError as error:
        return [f"note: whether options have changed is not known: {error}"]
    return [
        f"note: --{name.replace('_', '-')} was {before.get(name)}, and is {getattr(options, name)} now"
        for name in _FREE_TO_CHANGE
        if before.get(name) != getattr(options, name)
    ]


def _data_lines(batch: Batch, findings: Findings) -> list[str]:
    if findings.shards is None:
        return ["data: a generated corpus"]
    rows = sum(shard.rows for shard in findings.shards)
    lines = [f"data: {rows} sequences in {len(findings.shards)} shards"]
    if len(findings.shards) < batch.ranks:
        lines.append(f"note: fewer shards than the {batch.ranks} workers, which share all sequences evenly")
    return lines


def _evaluation_lines(options: Options, findings: Findings) -> list[str]:
    if findings.held_out is None:
        return []
    rows = sum(shard.rows for shard in findings.held_out)
    every = options.evaluate_every or options.checkpoint_interval
    return [f"evaluation: {rows} sequences in {len(findings.held_out)} shards, every {every} steps and at the end"]


def _start_lines(options: Options, findings: Findings) -> list[str]:
    lines = []
    if options.checkpoint_interval > options.steps:
        interval = f"--checkpoint-interval {options.checkpoint_interval} is above --steps {options.steps}"
        lines.append(f"note: {interval}: the only checkpoint is the last")
    if findings.resumed:
        return [*lines, f"start: from step {findings.resumed.step} of {options.output}"]
    if findings.first:
        return [*lines, f"start: with the weights of step {findings.first.step} of {options.start_from}"]
    if options.phase != 1:
        lines.append("note: phase 2 without --start-from starts from random weights, not from those of phase 1")
    return [*lines, "start: with new weights"]
