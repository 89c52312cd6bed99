"""The losses on held-out sequences: the same numbers on any number of ranks.

Each sequence counts once. Micro-batches are the same sequences on whichever rank, each leaves its sums at its own
place of a vector, and these are added up in their order, in double precision.

On XLA each micro-batch is the same graph, another than in training: there is no dropout and no gradient. The last one
is filled up with sequences that count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ultracluster_job import Backend

from .corpus import KEYS, Corpus, Rows
from .feed import IGNORED, tensors

_SUMS = 6
_ROWS_READ = 1024  # at once, as in feed.py


class Evaluation:
    """The losses of a model on all sequences of a corpus."""

    def __init__(self, corpus: Corpus, backend: Backend, micro_batch: int) -> None:
        """Take the corpus, and how many sequences a rank takes at once."""
        self._corpus, self._backend, self._micro = corpus, backend, micro_batch
        self._all = -(-sum(corpus.rows_of_shards) // micro_batch)
        worker = backend.worker
        self._per_rank = -(-self._all // worker.ranks)
        first = worker.rank * self._per_rank
        self._own = range(min(first, self._all), min(first + self._per_rank, self._all))

    def __call__(self, model: Any) -> Iterator[Mapping[str, float]]:
        """Yield after each micro-batch, as often on each rank, and at last the losses, means over all sequences.

        While graphs are only collected for a compiler, one micro-batch shows all of them, and there are no losses.
        """
        count = 1 if self._backend.extracting else self._per_rank
        micro_batches = self._micro_batches()
        model.eval()
        sums = torch.zeros(self._all, _SUMS, device=self._backend.device)
        self._backend.execute()
        with torch.no_grad():
            for _ in range(count):
                if (own := next(micro_batches, None)) is not None:
                    index, batch = own
                    sent = self._backend.send({**batch, "index": torch.tensor(index)})
                    places = torch.arange(self._all, device=self._backend.device) == sent["index"]
                    sums = sums + places.float()[:, None] * summed(model, sent)[None, :]
                    self._backend.execute()
                yield {}
        model.train()
        self._backend.reduce([sums])
        flat = sums.flatten()
        self._backend.execute()
        numbers = np.asarray(self._backend.fetch(flat), dtype=np.float64).reshape(-1, _SUMS)
        yield {} if self._backend.extracting else means(numbers.sum(axis=0))

    def _micro_batches(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield this rank's micro-batches with their places, read many at once."""
        step = max(1, _ROWS_READ // self._micro)
        for first in range(self._own.start, self._own.stop, step):
            last = min(first + step, self._own.stop)
            rows = range(first * self._micro, min(last * self._micro, sum(self._corpus.rows_of_shards)))
            read = [self._corpus.read(each) for each in rows_at(self._corpus.rows_of_shards, rows)]
            arrays = {key: np.concatenate([each[key] for each in read]) for key in KEYS}
            for index in range(first, last):
                begin = (index - first) * self._micro
                yield (
                    index,
                    filled({key: array[begin : begin + self._micro] for key, array in arrays.items()}, self._micro),
                )


def rows_at(rows_of_shards: Sequence[int], wanted: range) -> Iterator[Rows]:
    """Yield where consecutive rows are, of all shards in their order."""
    begin = 0
    for shard, rows in enumerate(rows_of_shards):
        first, last = max(wanted.start, begin), min(wanted.stop, begin + rows)
        if first < last:
            yield Rows(shard, first - begin, last - first)
        begin += rows


def filled(arrays: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Return the tensors of a micro-batch, filled up with its first sequence, which then has no labels."""
    there = len(arrays[KEYS[0]])
    repeated = {
        key: np.concatenate([array, np.repeat(array[:1], rows - there, axis=0)]) for key, array in arrays.items()
    }
    made = tensors(repeated)
    for name in ("labels", "next_sentence_label"):
        made[name][there:] = IGNORED
    return made


def summed(model: Any, batch: Mapping[str, Any]) -> Any:
    """Return sums over a micro-batch, in float32.

    They are, for masked words and for next sentences: the loss, what was right, and how many have a label.
    """
    output = model(
        input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], token_type_ids=batch["token_type_ids"]
    )
    sums = []
    for logits, labels in (
        (output.prediction_logits.float().flatten(0, 1), batch["labels"].flatten()),
        (output.seq_relationship_logits.float(), batch["next_sentence_label"]),
    ):
        # Neither argmax, a reduction of two operands, nor gather: reductions of one are what compilers know best.
        others = torch.arange(logits.shape[-1], device=logits.device) != labels[:, None]
        right = (logits.masked_fill(others, -torch.inf).amax(-1) == logits.amax(-1)).float().sum()
        loss = cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
        sums += [loss, right, (labels != IGNORED).float().sum()]
    return torch.stack(sums)


def means(sums: Sequence[float]) -> dict[str, float]:
    """Return what is recorded of the sums over all micro-batches."""
    mlm, words_right, words, nsp, sentences_right, sentences = (float(each) for each in sums)
    mlm, nsp = mlm / words if words else nan, nsp / sentences if sentences else nan
    return {
        "evaluation_loss": mlm + nsp,
        "evaluation_mlm_loss": mlm,
        "evaluation_nsp_loss": nsp,
        "evaluation_mlm_accuracy": words_right / words if words else nan,
        "evaluation_nsp_accuracy": sentences_right / sentences if sentences else nan,
        "evaluation_sequences": sentences,
    }
