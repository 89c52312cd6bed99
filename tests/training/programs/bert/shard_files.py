"""Shards of the published layout, small ones, and damaged ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from bert.corpus import GeneratedCorpus, Rows

# https://github.com/NVIDIA/DeepLearningExamples/blob/master/PyTorch/LanguageModeling/BERT/create_pretraining_data.py
TYPES = {
    "input_ids": "i4",
    "input_mask": "i1",
    "segment_ids": "i1",
    "masked_lm_positions": "i4",
    "masked_lm_ids": "i4",
    "next_sentence_labels": "i1",
}
LENGTH, PREDICTIONS, VOCABULARY = 32, 5, 512


def arrays(first: int, rows: int) -> Mapping[str, Any]:
    return GeneratedCorpus(7, VOCABULARY, LENGTH, PREDICTIONS).read(Rows(0, first, rows))


def write_shard(path: Path, content: Mapping[str, Any], types: Mapping[str, str] = TYPES) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for key, array in content.items():
            file.create_dataset(key, data=array, dtype=types[key], compression="gzip")


def write_shards(directory: Path, rows_of_shards: tuple[int, ...]) -> None:
    first = 0
    for number, rows in enumerate(rows_of_shards):
        write_shard(directory / f"wikicorpus_training_{number}.hdf5", arrays(first, rows))
        first += rows
