"""HDF5 shards of the published layout: found, checked, and read row by row."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from .corpus import KEYS
from .order import Rows

SUFFIX = ".hdf5"
_OPEN_FILES = 32  # per process; 32 workers share a node's limit


@dataclass(frozen=True)
class Shard:
    """A shard that was found in order.

    Attributes:
        name: Its file.
        rows: Its sequences.
    """

    name: str
    rows: int


def inspect(directory: Path, *, sequence_length: int, max_predictions: int) -> tuple[list[Shard], list[str]]:
    """Return the shards of a directory, by name, and what is wrong with them, a line each."""
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        return [], [f"--data: got {directory}, which cannot be read ({error.strerror}); allowed: a directory of shards"]
    if not paths:
        return [], [f"--data: got {directory}, which has no file *{SUFFIX}; allowed: a directory of shards"]
    shards, faults = [], []
    for path in paths:
        try:
            rows = _rows(path, sequence_length, max_predictions)
        except (OSError, ValueError) as error:
            faults.append(f"--data: shard {path}: {error}")
        else:
            shards.append(Shard(path.name, rows))
    return shards, faults


def _rows(path: Path, sequence_length: int, max_predictions: int) -> int:
    """Return the rows of a shard; raise ValueError or OSError if it has another layout."""
    wanted = dict.fromkeys(KEYS[:3], (sequence_length,)) | dict.fromkeys(KEYS[3:5], (max_predictions,)) | {KEYS[5]: ()}
    with h5py.File(path, "r") as file:
        missing = [key for key in KEYS if not isinstance(file.get(key), h5py.Dataset)]
        if missing:
            raise ValueError(f"has no dataset {', '.join(missing)}; it has {', '.join(sorted(file)) or 'none'}")
        rows = len(file[KEYS[0]])
        for key, columns in wanted.items():
            if file[key].shape != (rows, *columns):
                raise ValueError(
                    f"dataset {key} has the shape {file[key].shape}; allowed: {(rows, *columns)}, with "
                    f"--sequence-length {sequence_length} and --max-predictions {max_predictions}"
                )
            if not np.issubdtype(file[key].dtype, np.integer):
                raise ValueError(f"dataset {key} has the type {file[key].dtype}; allowed: integers")
    return rows


@dataclass
class ShardedCorpus:
    """The shards of a directory.

    Attributes:
        directory: Where they are.
        shards: Those of ``inspect``.
    """

    directory: Path
    shards: Sequence[Shard]
    _files: OrderedDict[int, Any] = field(default_factory=OrderedDict, init=False)

    @property
    def rows_of_shards(self) -> tuple[int, ...]:
        """Rows of each shard."""
        return tuple(shard.rows for shard in self.shards)

    def read(self, rows: Rows) -> Mapping[str, Any]:
        """Return an array of integers under each of KEYS, with a line for each row."""
        file = self._file(rows.shard)
        return {key: file[key][rows.first : rows.first + rows.length].astype(np.int64) for key in KEYS}

    def _file(self, shard: int) -> Any:
        """Return a shard's open file, and close the one that was read longest ago when there are many."""
        if shard not in self._files:
            self._files[shard] = h5py.File(self.directory / self.shards[shard].name, "r")
            if len(self._files) > _OPEN_FILES:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(shard)
        return self._files[shard]
