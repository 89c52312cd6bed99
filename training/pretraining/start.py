"""How all ranks start alike: rank 0 examines the directories, and tells the others the result."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import files
from .backend import Backend
from .batch import Batch
from .check import Findings, examine
from .checkpoint import Checkpoint
from .corpus import Shard
from .options import BadInputError, Options
from .ranks import Exchange


def agree(options: Options, batch: Batch, backend: Backend, exchange: Exchange) -> Findings:
    """Return what the run starts with, the same on all ranks, which must all call it.

    Thousands of ranks that each open all shards and read a checkpoint twice would be a load on the file system.

    Raises:
        BadInputError: Something is wrong with the directories, or another run has the one for the output.
    """
    findings = _examine(options, batch, backend) if backend.worker.rank == 0 else {}
    return _read(exchange.share("start", json.dumps(findings, default=str)))


def unusable(output: Path, error: OSError) -> str:
    """Return the line for a run directory whose files cannot be written."""
    return f"--output: got {output}; allowed: a directory that can be written to and locked ({error})"


def _examine(options: Options, batch: Batch, backend: Backend) -> dict[str, Any]:
    try:
        if not backend.extracting:  # which writes nothing
            _lock(options.output)
        return {"problems": [], **asdict(examine(options, batch))}
    except BadInputError as error:
        return {"problems": error.problems}


def _lock(output: Path) -> None:
    """Make the run directory, and let no other run into it."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        files.lock(output)
    except files.HeldError as error:
        raise BadInputError([f"--output: got {output}, where a run is at work ({error}); allowed: another"]) from None
    except OSError as error:
        raise BadInputError([unusable(output, error)]) from None


def _read(text: str) -> Findings:
    findings = json.loads(text)
    if findings["problems"]:
        raise BadInputError(findings["problems"])
    shards = findings["shards"]
    return Findings(
        shards=None if shards is None else [Shard(**shard) for shard in shards],
        resumed=_checkpoint(findings["resumed"]),
        first=_checkpoint(findings["first"]),
        notes=findings["notes"],
    )


def _checkpoint(findings: dict[str, Any] | None) -> Checkpoint | None:
    return Checkpoint(findings["step"], Path(findings["path"])) if findings else None
