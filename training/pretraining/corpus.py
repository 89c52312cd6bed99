"""Sequences to train on: what every corpus gives, and one that is generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .order import Rows

KEYS = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "next_sentence_labels",
)
"""Datasets of a published shard; the fourth and fifth have a column for each masked token, the last has none.

https://github.com/NVIDIA/DeepLearningExamples/blob/master/PyTorch/LanguageModeling/BERT/create_pretraining_data.py
"""

_PADDING, _CLASS, _SEPARATOR, _MASK, _FIRST_WORD = range(5)
_GENERATED_ROWS = 1 << 20
_MASKED_SHARE = 0.15  # of a sequence, as in the published data


class Corpus(Protocol):
    """Rows of sequences, in one shard or more."""

    @property
    def rows_of_shards(self) -> tuple[int, ...]:
        """Rows of each shard."""

    def read(self, rows: Rows) -> Mapping[str, Any]:
        """Return an array of integers under each of KEYS, with a line for each row."""


@dataclass(frozen=True)
class GeneratedCorpus:
    """A million sequences, which follow from the seed and are never stored.

    The words are distributed as in natural language (Zipf's law), and those of a sequence belong to one half of the
    vocabulary; the second sentence belongs to the other half when it is not the next. Both losses can therefore fall.

    Attributes:
        seed: What it follows from.
        vocabulary: Words that there are, with the special ones.
        sequence_length: Tokens of a sequence.
        max_predictions: Masked tokens of a sequence, at most.
    """

    seed: int
    vocabulary: int
    sequence_length: int
    max_predictions: int

    @property
    def rows_of_shards(self) -> tuple[int, ...]:
        """Rows of each shard."""
        return (_GENERATED_ROWS,)

    def read(self, rows: Rows) -> Mapping[str, Any]:
        """Return an array of integers under each of KEYS, with a line for each row."""
        made = [self._sequence(row) for row in range(rows.first, rows.first + rows.length)]
        return {key: np.stack([sequence[key] for sequence in made]) for key in KEYS}

    def _sequence(self, row: int) -> dict[str, Any]:
        chance = np.random.default_rng([self.seed, row])
        length = int(chance.integers(self.sequence_length // 2, self.sequence_length + 1))
        middle = int(chance.integers(length // 3, length // 2))
        follows = bool(chance.integers(2))
        topic = int(chance.integers(2))
        places = np.arange(self.sequence_length)
        second = places > middle
        words = self._words(chance, np.where(second & (not follows), 1 - topic, topic))
        words[0] = _CLASS
        words[[middle, length - 1]] = _SEPARATOR
        words[length:] = _PADDING
        candidates = np.setdiff1d(places[1 : length - 1], [middle])
        count = min(self.max_predictions, max(1, round(length * _MASKED_SHARE)))
        masked = np.zeros(self.max_predictions, dtype=np.int64)
        masked[:count] = np.sort(chance.choice(candidates, size=count, replace=False))
        hidden_words = np.zeros(self.max_predictions, dtype=np.int64)
        hidden_words[:count] = words[masked[:count]]
        words[masked[:count]] = _MASK
        return {
            "input_ids": words,
            "input_mask": (places < length).astype(np.int64),
            "segment_ids": (second & (places < length)).astype(np.int64),
            "masked_lm_positions": masked,
            "masked_lm_ids": hidden_words,
            "next_sentence_labels": np.int64(not follows),
        }

    def _words(self, chance: Any, topics: Any) -> Any:
        """Return a word for each place, of the half of the vocabulary that its topic has."""
        half = (self.vocabulary - _FIRST_WORD) // 2
        ranks = np.exp(chance.random(len(topics)) * np.log(half)).astype(np.int64) - 1
        return _FIRST_WORD + np.minimum(ranks, half - 1) * 2 + topics
