"""Shards of the published layout, made of plain text by the published recipe.

Text: a sentence per line, a blank line between documents, UTF-8. Source of the recipe:
https://github.com/google-research/bert/blob/master/create_pretraining_data.py; of the types in a shard:
https://github.com/NVIDIA/DeepLearningExamples/blob/master/PyTorch/LanguageModeling/BERT/create_pretraining_data.py.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from tokenizers import Tokenizer
from tokenizers.implementations import BertWordPieceTokenizer
from tokenizers.models import WordPiece

from .corpus import KEYS

_TYPES = dict(zip(KEYS, ("i4", "i1", "i1", "i4", "i4", "i1"), strict=True))
_MASKED_SHARE = 0.15
_MASK_SHARE, _KEEP_SHARE = 0.8, 0.1
"""Of the tokens to predict: that are hidden behind [MASK], and that stay; the rest becomes any word."""
_SHORT_SHARE = 0.1
"""Of the documents: those cut to shorter sequences, so that the model meets them before it is fine-tuned."""
_RANDOM_SECOND_SHARE = 0.5
_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")

Document = Sequence[list[int]]
"""The tokens of each of its sentences."""


@dataclass(frozen=True)
class Layout:
    """What a sequence is like.

    Attributes:
        sequence_length: Its tokens, with [CLS], twice [SEP], and padding.
        dupe_factor: Sequences that are made of each text, with other tokens masked.
    """

    sequence_length: int
    max_predictions: int
    dupe_factor: int
    seed: int


@dataclass(frozen=True)
class TextDocument:
    """A document: its file, the byte where it starts, and its bytes."""

    path: str
    first: int
    size: int


def load_tokenizer(directory: Path) -> Any:
    """Return the tokenizer of a directory with ``tokenizer.json``, or with ``vocab.txt`` of BERT.

    Raises:
        ValueError: There is none, or it is no tokenizer for BERT.
    """
    whole, words = directory / "tokenizer.json", directory / "vocab.txt"
    try:
        if whole.exists():
            tokenizer = Tokenizer.from_file(str(whole))
        elif words.exists():
            settings = directory / "tokenizer_config.json"
            lowercase = json.loads(settings.read_text()).get("do_lower_case", True) if settings.exists() else True
            tokenizer = BertWordPieceTokenizer(WordPiece.read_file(str(words)), lowercase=lowercase)
        else:
            raise ValueError("it has neither tokenizer.json nor vocab.txt")
    except Exception as error:  # the library raises Exception itself
        raise ValueError(str(error)) from error
    missing = [token for token in _SPECIAL if tokenizer.token_to_id(token) is None]
    if missing:
        raise ValueError(f"its vocabulary has no {', '.join(missing)}")
    if tokenizer.token_to_id("[PAD]") != 0:
        raise ValueError(f"its [PAD] is {tokenizer.token_to_id('[PAD]')}, and sequences are padded with 0")
    return tokenizer


def find_documents(path: Path) -> Iterator[TextDocument]:
    """Return where each document of a file is; blank lines are between them.

    Raises:
        UnicodeDecodeError: A line is not UTF-8.
    """
    first = size = 0
    with path.open("rb") as file:
        for line in file:
            if line.decode().strip():
                size += len(line)
            else:
                if size:
                    yield TextDocument(str(path), first, size)
                first, size = first + size + len(line), 0
    if size:
        yield TextDocument(str(path), first, size)


def divide(documents: Sequence[TextDocument], shards: int) -> list[list[TextDocument]]:
    """Return the documents of each shard: consecutive ones, about as many bytes in each, two at least.

    A text from anywhere is one of another document of the shard.
    """
    total, done, start = sum(document.size for document in documents), 0, 0
    parts = []
    for shard in range(1, shards):
        end = start + 2
        done += sum(document.size for document in documents[start:end])
        while end < len(documents) - 2 * (shards - shard) and done < total * shard // shards:
            done += documents[end].size
            end += 1
        parts.append(list(documents[start:end]))
        start = end
    return [*parts, list(documents[start:])]


def write_shard(
    path: Path, number: int, documents: Sequence[TextDocument], tokenizer_directory: Path, layout: Layout
) -> int:
    """Write a shard, unless it is there, and return how many sequences it has."""
    if not path.exists():
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # there is a process for each core
        chance = random.Random(f"{layout.seed}-{number}")  # noqa: S311
        maker = SequenceMaker(load_tokenizer(tokenizer_directory), layout, chance)
        columns = maker.make([maker.tokenize(_read(document)) for document in documents])
        unfinished = path.with_suffix(".part")
        with h5py.File(unfinished, "w") as file:
            for key, values in columns.items():
                file.create_dataset(key, data=values, compression="gzip")
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.rename(path)
    with h5py.File(path, "r") as file:
        return len(file[KEYS[0]])


def _read(document: TextDocument) -> str:
    with Path(document.path).open("rb") as file:
        file.seek(document.first)
        return file.read(document.size).decode()


class SequenceMaker:
    """Makes sequences of documents; all that is random comes from the generator that it is given."""

    def __init__(self, tokenizer: Any, layout: Layout, chance: random.Random) -> None:
        self._tokenizer = tokenizer
        self._words = tokenizer.get_vocab_size()
        _, self._class, self._separator, self._mask = (tokenizer.token_to_id(token) for token in _SPECIAL)
        self._layout = layout
        self._room = layout.sequence_length - 3  # for what is no [CLS] or [SEP]
        self._chance = chance

    def tokenize(self, text: str) -> Document:
        """Return the tokens of each sentence that has any."""
        sentences = self._tokenizer.encode_batch(text.splitlines(), add_special_tokens=False)
        return [sentence.ids for sentence in sentences if sentence.ids]

    def make(self, documents: Sequence[Document]) -> dict[str, Any]:
        """Return the columns of a shard: all sequences of the documents, in a random order."""
        documents = [document for document in documents if document]
        rows = [
            self._row(*pair)
            for _ in range(self._layout.dupe_factor)
            for index in range(len(documents))
            for pair in self._pairs(documents, index)
        ]
        self._chance.shuffle(rows)
        columns = zip(*rows, strict=True) if rows else [()] * len(KEYS)
        return {key: np.array(column, dtype=_TYPES[key]) for key, column in zip(KEYS, columns, strict=True)}

    def _pairs(self, documents: Sequence[Document], index: int) -> Iterator[tuple[list[int], list[int], bool]]:
        """Return pairs of texts that fill a sequence, and whether the second is from anywhere."""
        document = documents[index]
        short = self._chance.random() < _SHORT_SHARE
        wanted = self._chance.randint(2, self._room) if short else self._room
        chunk: list[list[int]] = []
        position = 0
        while position < len(document):
            chunk.append(document[position])
            position += 1
            if position < len(document) and sum(map(len, chunk)) < wanted:
                continue
            cut = self._chance.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            first = _joined(chunk[:cut])
            anywhere = len(chunk) == 1 or self._chance.random() < _RANDOM_SECOND_SHARE
            if anywhere:
                second = self._second_from_anywhere(documents, index, wanted - len(first))
                position -= len(chunk) - cut  # the sentences that were not used come next
            else:
                second = _joined(chunk[cut:])
            self._shorten(first, second)
            yield first, second, anywhere
            chunk = []

    def _second_from_anywhere(self, documents: Sequence[Document], index: int, wanted: int) -> list[int]:
        others = len(documents) - 1
        other = self._chance.randrange(others) if others else index
        document = documents[other + (others > 0 and other >= index)]
        second: list[int] = []
        for sentence in document[self._chance.randrange(len(document)) :]:
            second += sentence
            if len(second) >= wanted:
                break
        return second

    def _shorten(self, first: list[int], second: list[int]) -> None:
        """Take tokens off either end of the longer one until both find room."""
        while len(first) + len(second) > self._room:
            (first if len(first) > len(second) else second).pop(self._chance.choice((0, -1)))

    def _row(self, first: list[int], second: list[int], anywhere: bool) -> tuple[Any, ...]:
        """Return what the datasets of a shard hold for a pair, in their order."""
        tokens = [self._class, *first, self._separator, *second, self._separator]
        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        candidates = [*range(1, len(first) + 1), *range(len(first) + 2, len(tokens) - 1)]
        count = min(self._layout.max_predictions, max(1, round(len(tokens) * _MASKED_SHARE)))
        positions = sorted(self._chance.sample(candidates, min(count, len(candidates))))
        hidden = [tokens[position] for position in positions]
        for position in positions:
            dice = self._chance.random()
            if dice < _MASK_SHARE:
                tokens[position] = self._mask
            elif dice >= _MASK_SHARE + _KEEP_SHARE:
                tokens[position] = self._chance.randrange(self._words)
        length, predictions = self._layout.sequence_length, self._layout.max_predictions
        return (
            _padded(tokens, length),
            _padded([1] * len(tokens), length),
            _padded(segments, length),
            _padded(positions, predictions),
            _padded(hidden, predictions),
            int(anywhere),
        )


def description(text: Sequence[Path], tokenizer: Path, layout: Layout, shards: int) -> dict[str, Any]:
    """Return what the shards are made of, as JSON would give it back."""
    return {
        "text": [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in text],
        "tokenizer": str(tokenizer.resolve()),
        "shards": shards,
        **asdict(layout),
    }


def _joined(sentences: Sequence[list[int]]) -> list[int]:
    return [token for sentence in sentences for token in sentence]


def _padded(values: Sequence[int], length: int) -> Any:
    row = np.zeros(length, dtype=np.int32)
    row[: len(values)] = values
    return row
