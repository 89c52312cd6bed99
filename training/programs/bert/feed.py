"""Micro-batches in the order of the steps, read ahead of the training by a thread of their own.

The order of sequences follows from the seed and the data alone, on any number of ranks. Sequences lie in blocks of
consecutive rows, so that a reader finds a micro-batch in one place of one file. Each pass over the data (epoch) takes
the blocks in another order. Passes follow one another without a gap, so that no sequence is left out where the data is
no multiple of the global batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
import torch

from ultracluster_job import Batch

from .corpus import KEYS, Corpus, Rows

IGNORED = -100
"""The label of a token that has no loss (https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html)."""

_BLOCK_ROWS = 1024
"""A rank then opens one or two files for a step, and 16,384 sequences come from 16 places or more."""
_AHEAD = 8  # micro-batches


class Order:
    """An endless order of the rows of all shards."""

    def __init__(self, rows_of_shards: Sequence[int], seed: int, block_rows: int = _BLOCK_ROWS) -> None:
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
        """Yield the rows at consecutive positions of the order, counted from 0."""
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


class Feed:
    """The micro-batches of one rank, in the order of the steps."""

    def __init__(self, corpus: Corpus, batch: Batch, *, rank: int, seed: int, steps: range, head: str = "all") -> None:
        """Begin to read for the given optimizer steps, counted from 0."""
        self._corpus, self._batch, self._rank, self._steps = corpus, batch, rank, steps
        self._head = head
        self._order = Order(corpus.rows_of_shards, seed)
        self._queue: Queue[Any] = Queue(_AHEAD)
        Thread(target=self._read, name="reading data", daemon=True).start()

    def __next__(self) -> Mapping[str, Any]:
        """Return the tensors of the next micro-batch, as the arguments of ``Learner.accumulate``.

        Raises:
            Exception: What reading raised.
        """
        item = self._queue.get()
        if isinstance(item, Exception):
            raise item
        tensors: Mapping[str, Any] = item
        return tensors

    def _read(self) -> None:
        try:
            for step in self._steps:
                for arrays in self._micro_batches(step):
                    self._queue.put(tensors(arrays, head=self._head))
        except Exception as error:  # for the thread that trains
            self._queue.put(error)

    def _micro_batches(self, step: int) -> Iterator[Mapping[str, Any]]:
        """Yield the arrays of a step's micro-batches.

        Consecutive rows are read at once, 1,024 at most, and cut. A read of 16 rows from a published shard unpacks as
        much as one of hundreds, and h5py holds the interpreter's lock meanwhile (docs/explanation/performance.md).
        """
        position = step * self._batch.sequences + self._batch.first(self._rank, 0)
        left: Mapping[str, Any] = {}
        for rows in self._order.rows(position, self._batch.per_rank):
            read = self._corpus.read(rows)
            arrays = {key: np.concatenate([left[key], read[key]]) if left else read[key] for key in KEYS}
            count = len(arrays[KEYS[0]])
            end = count - count % self._batch.micro
            for first in range(0, end, self._batch.micro):
                yield {key: array[first : first + self._batch.micro] for key, array in arrays.items()}
            left = {key: array[end:] for key, array in arrays.items()} if end < count else {}


def tensors(rows: Mapping[str, Any], *, head: str = "all") -> dict[str, Any]:
    """Return the tensors of a micro-batch, made of the arrays of a corpus.

    With the head at all tokens there is a label for each, with the head at masked ones a position and a label for as
    many as a sequence may have. A position of 0, which is never masked, ends the list of masked tokens:
    pretraining_dataset in https://github.com/aws-neuron/aws-neuron-samples, dp_bert_large_hf_pretrain_hdf5.py.
    """
    positions, words = rows["masked_lm_positions"], rows["masked_lm_ids"]
    made = {
        "input_ids": rows["input_ids"],
        "attention_mask": rows["input_mask"],
        "token_type_ids": rows["segment_ids"],
        "next_sentence_label": rows["next_sentence_labels"],
    }
    if head == "masked":
        made |= {"positions": positions, "labels": np.where(positions == 0, IGNORED, words)}
    else:
        labels = np.full(rows["input_ids"].shape, IGNORED, dtype=np.int64)
        line, column = np.nonzero(positions)
        labels[line, positions[line, column]] = words[line, column]
        made["labels"] = labels
    return {name: torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)) for name, array in made.items()}
