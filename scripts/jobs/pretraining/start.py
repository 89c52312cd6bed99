"""How all ranks start alike: rank 0 looks at the directories, and the others read what it found."""

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
from .options import BadInputError, Options
from .shards import Shard

_FILE = "start.json"


def agree(options: Options, batch: Batch, backend: Backend) -> Findings:
    """Return what the run starts with, the same on all ranks, which must all call it.

    Thousands of ranks that each open all shards and read a checkpoint twice would be a load on the file system.

    Raises:
        BadInputError: Something is wrong with the directories.
    """
    path = options.output / _FILE
    if backend.place.rank == 0:
        options.output.mkdir(parents=True, exist_ok=True)
        try:
            found = {"faults": [], **asdict(examine(options, batch))}
        except BadInputError as error:
            found = {"faults": error.faults}
        files.replace(path, json.dumps(found, default=str).encode())
    backend.barrier()
    return _read(path)


def _read(path: Path) -> Findings:
    found = json.loads(path.read_bytes())
    if found["faults"]:
        raise BadInputError(found["faults"])
    shards = found["shards"]
    return Findings(
        shards=None if shards is None else [Shard(**shard) for shard in shards],
        resumed=_checkpoint(found["resumed"]),
        first=_checkpoint(found["first"]),
    )


def _checkpoint(found: dict[str, Any] | None) -> Checkpoint | None:
    return Checkpoint(found["step"], Path(found["path"])) if found else None
