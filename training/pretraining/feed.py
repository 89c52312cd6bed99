"""Micro-batches, read ahead of the training by a thread of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
import torch

from .batch import Batch
from .corpus import KEYS, Corpus
from .order import Order

IGNORED = -100
"""The label of a token that has no loss (https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html)."""

_AHEAD = 8  # micro-batches


class Feed:
    """The micro-batches of one rank, in the order of the steps."""

    def __init__(self, corpus: Corpus, batch: Batch, *, rank: int, seed: int, steps: range) -> None:
        """Begin to read for the given optimizer steps, counted from 0."""
        self._corpus, self._batch, self._rank, self._steps = corpus, batch, rank, steps
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
                    self._queue.put(tensors(arrays))
        except Exception as error:  # for the thread that trains
            self._queue.put(error)

    def _micro_batches(self, step: int) -> Iterator[Mapping[str, Any]]:
        """Yield the arrays of a step's micro-batches.

        Consecutive rows are read at once, 1,024 at most, and cut. A read of 16 rows from a published shard unpacks as
        much as one of hundreds, and h5py holds the interpreter's lock meanwhile (docs/performance.md).
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


def tensors(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors of a micro-batch, made of the arrays of a corpus.

    A position of 0, which is never masked, ends the list of masked tokens: pretraining_dataset in
    https://github.com/aws-neuron/aws-neuron-samples, dp_bert_large_hf_pretrain_hdf5.py.
    """
    labels = np.full(rows["input_ids"].shape, IGNORED, dtype=np.int64)
    line, column = np.nonzero(rows["masked_lm_positions"])
    labels[line, rows["masked_lm_positions"][line, column]] = rows["masked_lm_ids"][line, column]
    made = {
        "input_ids": rows["input_ids"],
        "attention_mask": rows["input_mask"],
        "token_type_ids": rows["segment_ids"],
        "labels": labels,
        "next_sentence_label": rows["next_sentence_labels"],
    }
    return {name: torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)) for name, array in made.items()}
