"""Sequences to train on: read from HDF5 shards of the published layout, many rows at once, or generated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

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

SUFFIX = ".hdf5"
_TRAINING, _TEST = "_training_", "_test_"
_SAMPLE_ROWS = 64  # of each shard; all others are looked at when they are read
_OPEN_FILES = 32  # per process; 32 workers share a node's limit

_PADDING, _CLASS, _SEPARATOR, _MASK, _FIRST_WORD = range(5)
_GENERATED_ROWS = 1 << 20
_MASKED_SHARE = 0.15  # of a sequence, as in the published data


class Rows(NamedTuple):
    """Consecutive rows of a shard, which is given by its number."""

    shard: int
    first: int
    length: int


@dataclass(frozen=True)
class Shard:
    """A shard that was checked: the name of its file, and its sequences."""

    name: str
    rows: int


def inspect(
    directory: Path, *, sequence_length: int, max_predictions: int, vocabulary: int, option: str = "data"
) -> tuple[list[Shard], list[str]]:
    """Return the shards of a directory, by name, and what is wrong with them, a line each.

    Layouts are looked at whole, values in the first rows of each shard.
    """
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        return [], [
            f"--{option}: got {directory}, which cannot be read ({error.strerror}); allowed: a directory of shards"
        ]
    if not paths:
        return [], [f"--{option}: got {directory}, which has no file *{SUFFIX}; allowed: a directory of shards"]
    tests = [path.name for path in paths if _TEST in path.name]
    if tests and any(is_for_training(path.name) for path in paths):
        allowed = f"shards to train on alone, *{_TRAINING}*{SUFFIX}" if option == "data" else "held-out shards alone"
        return [], [f"--{option}: got {directory} with {len(tests)} files such as {tests[0]}; allowed: {allowed}"]
    shards, problems = [], []
    for path in paths:
        try:
            with h5py.File(path, "r") as file:
                rows = _rows(file, sequence_length, max_predictions)
                sample = {key: file[key][:_SAMPLE_ROWS] for key in KEYS}
        except (OSError, ValueError) as error:
            problems.append(f"--{option}: shard {path}: {error}")
        else:
            shards.append(Shard(path.name, rows))
            lines = [*_values_out_of_range(sample, 0, vocabulary), *_rows_without_masks(sample)]
            problems += [f"--{option}: shard {path}: {line}" for line in lines]
    return shards, problems


def is_for_training(name: str) -> bool:
    """Return whether a file of the published data is to train on, and not to test with."""
    return _TRAINING in name and name.endswith(SUFFIX)


def _rows(file: Any, sequence_length: int, max_predictions: int) -> int:
    """Return the rows of a shard; raise ValueError if it has another layout."""
    wanted = dict.fromkeys(KEYS[:3], (sequence_length,)) | dict.fromkeys(KEYS[3:5], (max_predictions,)) | {KEYS[5]: ()}
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


def _values_out_of_range(arrays: Mapping[str, Any], first_row: int, vocabulary: int) -> Iterator[str]:
    """Tell of the first value of each dataset that the model has no place for."""
    word = (vocabulary, f", with --vocabulary {vocabulary}")
    position, yes_or_no = (arrays["input_ids"].shape[1], ""), (2, "")
    for key, (limit, reason) in zip(KEYS, (word, yes_or_no, yes_or_no, position, word, yes_or_no), strict=True):
        array = arrays[key]
        if array.size and (array.min() < 0 or array.max() >= limit):
            where = tuple(np.argwhere((array < 0) | (array >= limit))[0])
            value, row = array[where], first_row + where[0]
            yield f"dataset {key} has the value {value} in row {row}; allowed: 0 to {limit - 1}{reason}"


def _rows_without_masks(arrays: Mapping[str, Any]) -> Iterator[str]:
    key = "masked_lm_positions"
    bare = np.flatnonzero((arrays[key] == 0).all(axis=1))
    if bare.size:
        yield f"dataset {key} has no masked token in row {bare[0]}; allowed: one or more in each row"


@dataclass
class ShardedCorpus:
    """The shards of a directory.

    Attributes:
        directory: Where they are.
        shards: Those of ``inspect``.
        vocabulary: Words that the model knows.
    """

    directory: Path
    shards: Sequence[Shard]
    vocabulary: int

    def __post_init__(self) -> None:
        # A file that was read longest ago is closed when there are many.
        self._file = lru_cache(_OPEN_FILES)(self._open)

    @property
    def rows_of_shards(self) -> tuple[int, ...]:
        """Rows of each shard."""
        return tuple(shard.rows for shard in self.shards)

    def read(self, rows: Rows) -> Mapping[str, Any]:
        """Return an array of integers under each of KEYS, with a line for each row.

        Raises:
            ValueError: A value is one that the model has no place for.
        """
        file = self._file(rows.shard)
        read = {key: file[key][rows.first : rows.first + rows.length] for key in KEYS}
        for line in _values_out_of_range(read, rows.first, self.vocabulary):
            raise ValueError(f"shard {self.directory / self.shards[rows.shard].name}: {line}")
        return read

    def _open(self, shard: int) -> Any:
        return h5py.File(self.directory / self.shards[shard].name, "r")


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
        positions = np.arange(self.sequence_length)
        second = positions > middle
        words = self._words(chance, np.where(second & (not follows), 1 - topic, topic))
        words[0] = _CLASS
        words[[middle, length - 1]] = _SEPARATOR
        words[length:] = _PADDING
        candidates = np.setdiff1d(positions[1 : length - 1], [middle])
        count = min(self.max_predictions, max(1, round(length * _MASKED_SHARE)))
        masked = np.zeros(self.max_predictions, dtype=np.int64)
        masked[:count] = np.sort(chance.choice(candidates, size=count, replace=False))
        hidden_words = np.zeros(self.max_predictions, dtype=np.int64)
        hidden_words[:count] = words[masked[:count]]
        words[masked[:count]] = _MASK
        return {
            "input_ids": words,
            "input_mask": (positions < length).astype(np.int64),
            "segment_ids": (second & (positions < length)).astype(np.int64),
            "masked_lm_positions": masked,
            "masked_lm_ids": hidden_words,
            "next_sentence_labels": np.int64(not follows),
        }

    def _words(self, chance: Any, topics: Any) -> Any:
        """Return a word for each place, of the half of the vocabulary that its topic has."""
        half = (self.vocabulary - _FIRST_WORD) // 2
        ranks = np.exp(chance.random(len(topics)) * np.log(half)).astype(np.int64) - 1
        return _FIRST_WORD + np.minimum(ranks, half - 1) * 2 + topics


Corpus = ShardedCorpus | GeneratedCorpus
