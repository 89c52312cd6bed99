"""How all ranks start alike: rank 0 examines the directories, and tells the others the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import files
from .backend import Backend
from .batch import Batch
from .check import Findings, examine
from .options import BadInputError, Options
from .ranks import Exchange


def agree(options: Options, batch: Batch, backend: Backend, exchange: Exchange) -> Findings:
    """Return what the run starts with, the same on all ranks, which must all call it.

    Thousands of ranks that each open all shards and read a checkpoint twice would be a load on the file system.

    Raises:
        BadInputError: Something is wrong with the directories, or another run has the one for the output.
    """
    findings: Findings | None = None
    problems: Sequence[str] = ()
    if backend.worker.rank == 0:
        try:
            if not backend.extracting:  # which writes nothing
                _lock(options.output)
            findings = examine(options, batch)
        except BadInputError as error:
            problems = error.problems
    findings, problems = exchange.share("start", (findings, problems))
    if findings is None:
        raise BadInputError(problems)
    return findings


def unusable(output: Path, error: OSError) -> str:
    """Return the line for a run directory whose files cannot be written."""
    return f"--output: got {output}; allowed: a directory that can be written to and locked ({error})"


def _lock(output: Path) -> None:
    """Make the run directory, and let no other run into it."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        files.lock(output)
    except files.HeldError as error:
        raise BadInputError([f"--output: got {output}, where a run is at work ({error}); allowed: another"]) from None
    except OSError as error:
        raise BadInputError([unusable(output, error)]) from None
