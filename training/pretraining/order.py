"""The order in which sequences are trained on: it follows from the seed and the data alone, on any number of ranks.

Sequences lie in blocks of consecutive rows, so that a reader finds a micro-batch in one place of one file. Each pass
over the data (epoch) takes the blocks in another order. Passes follow one another without a gap, so that no sequence is
left out where the data is no multiple of the global batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

BLOCK_ROWS = 1024
"""Rows of a block: a rank then opens one or two files for a step, and 16,384 sequences come from 16 places or more."""


class Rows(NamedTuple):
    """Consecutive rows of a shard.

    Attributes:
        shard: Its number.
        first: The first row.
        length: How many.
    """

    shard: int
    first: int
    length: int


class Order:
    """An endless order of the rows of all shards."""

    def __init__(self, rows_of_shards: Sequence[int], seed: int, block_rows: int = BLOCK_ROWS) -> None:
        """Take the number of rows of each shard."""
        blocks = [
            Rows(shard, first, min(block_rows, rows - first))
            for shard, rows in enumerate(rows_of_shards)
            for first in range(0, rows, block_rows)
        ]
        self._blocks = np.array(blocks, dtype=np.int64).reshape(-1, 3)
        self._total = int(sum(rows_of_shards))
        self._seed = seed
        self._epoch: tuple[int, Any, Any] = (-1, None, None)

    def rows(self, position: int, count: int) -> Iterator[Rows]:
        """Yield the rows at consecutive positions of the order.

        Args:
            position: How many sequences come before.
            count: How many are wanted.
        """
        while count:
            epoch, offset = divmod(position, self._total)
            blocks, ends = self._blocks_of(epoch)
            index = int(np.searchsorted(ends, offset, side="right"))
            shard, first, rows = (int(value) for value in blocks[index])
            skipped = rows - (int(ends[index]) - offset)
            taken = min(count, rows - skipped)
            yield Rows(shard, first + skipped, taken)
            position += taken
            count -= taken

    def _blocks_of(self, epoch: int) -> tuple[Any, Any]:
        """Return an epoch's blocks in their order, and the position behind each."""
        if self._epoch[0] != epoch:
            permutation = np.random.default_rng([self._seed, epoch]).permutation(len(self._blocks))
            blocks = self._blocks[permutation]
            self._epoch = (epoch, blocks, np.cumsum(blocks[:, 2]))
        return self._epoch[1:]
