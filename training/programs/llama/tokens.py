"""Tokens of text: packed into rows, in shards that a run maps into memory. ``python -m programs.llama.tokens``.

Documents follow one another, an end of text after each, and are cut into rows of --sequence-length and one more token:
a row's first tokens are what a model reads, the same from the second on what it predicts. So no token is padding, and
documents of a row see each other, as in AWS's examples. What does not fill a row at the end is left out, and counted.

The same text, tokenizer and length give the same bytes, however often the program was killed meanwhile: text is
tokenized in parts, each of which is there whole or not at all, and the manifest comes last.
Exit code 0: the shards are there; 1: it failed, and the same command continues; 2: it cannot work as asked.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from ultracluster_job import BadInputError, synchronize

MANIFEST = "manifest.json"
WORK = ".preparing"
_TYPE = np.dtype("<u4")
_PART_BYTES = 32 * 1024**2  # of text: what a killed run does again, and what is in memory at once
_SHARD_BYTES = 256 * 1024**2
_BATCH_BYTES = 1024**2  # of text that the tokenizer gets at once, for all its threads
_DIGITS = 16 * 1024**2


@dataclass(frozen=True)
class Shard:
    """A file of rows.

    Attributes:
        sha256: Of the whole file.
    """

    name: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What the shards of a directory are.

    Attributes:
        text: Names, sizes and digests of the files of text, in their order.
        tokenizer: Digest of tokenizer.json.
        vocabulary: Tokens that the tokenizer knows.
        end_of_text: The token after each document.
        sequence_length: Tokens that a model reads of a row, which has one more.
        documents: How many there are.
        tokens: All of them, with ends of text.
        left_out: Of these, at the end.
        shards: In their order.
    """

    text: Sequence[Sequence[Any]]
    tokenizer: str
    vocabulary: int
    end_of_text: int
    sequence_length: int
    documents: int
    tokens: int
    left_out: int
    shards: Sequence[Shard]


def read_manifest(directory: Path) -> Manifest:
    """Return what a directory has; its shards have the sizes that it tells.

    Raises:
        BadInputError: It has no manifest, a damaged one, or other shards.
    """
    try:
        said = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        manifest = Manifest(**{**said, "shards": [Shard(**each) for each in said["shards"]]})
    except (OSError, KeyError, TypeError, ValueError) as error:
        allowed = "a directory that programs.llama.tokens has finished"
        raise BadInputError([f"--data: got {directory}; allowed: {allowed} ({error})"]) from None
    problems = []
    for shard in manifest.shards:
        path = directory / shard.name
        wanted = shard.rows * (manifest.sequence_length + 1) * _TYPE.itemsize
        size = path.stat().st_size if path.is_file() else None
        if size != wanted:
            problems.append(f"--data: got {path} with {size or 'no'} bytes; allowed: {wanted}, as its manifest says")
    if problems:
        raise BadInputError(problems)
    return manifest


def rows_of(directory: Path, manifest: Manifest, shard: Shard) -> Any:
    """Return the rows of a shard, uint32 of shape (rows, sequence length + 1), mapped, not read."""
    shape = (shard.rows, manifest.sequence_length + 1)
    return np.memmap(directory / shard.name, _TYPE, "r", shape=shape)


# --- prepare ---


def prepare(text: Sequence[Path], tokenizer: Path, output: Path, *, sequence_length: int, end: str | None) -> Manifest:
    """Make shards of text, unless they are there, and return what they are.

    Raises:
        BadInputError: The text, tokenizer or directory cannot be used.
        OSError: It failed; the same call continues.
    """
    encoder, known = _load(tokenizer, end)
    facts: dict[str, Any] = {
        "text": [[path.name, path.stat().st_size, _digest(path)] for path in text],
        **known,
        "sequence_length": sequence_length,
    }
    work = output / WORK
    _begin(output, work, facts)
    if (output / MANIFEST).exists():
        return read_manifest(output)
    parts, documents = [], 0
    for number, batch in enumerate(_parts(text)):
        part = work / f"{number:06}.tokens"
        documents += len(batch)
        parts.append(part)
        if not part.exists():
            _tokenize(encoder, batch, known["end_of_text"], part)
    if not parts:
        raise BadInputError([f"--text: got {len(text)} files without a document; allowed: text"])
    shards, tokens, left_out = _pack(parts, output, sequence_length + 1)
    manifest = Manifest(**facts, documents=documents, tokens=tokens, left_out=left_out, shards=shards)
    _write(output / MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
    shutil.rmtree(work)
    return manifest


def _load(directory: Path, end: str | None) -> tuple[Tokenizer, dict[str, Any]]:
    """Return a tokenizer, and what a manifest has of it.

    Raises:
        BadInputError: It cannot be read, or has no token that ends a text.
    """
    path = directory / "tokenizer.json"
    try:
        encoder = Tokenizer.from_file(str(path))
    except Exception as error:  # it has no other
        raise BadInputError(
            [f"--tokenizer: got {directory}; allowed: a folder with tokenizer.json ({error})"]
        ) from None
    named = end or _end_of_text(directory)
    token = encoder.token_to_id(named) if named else None
    if token is None:
        got = named or "none in tokenizer_config.json"
        raise BadInputError([f"--end-of-text: got {got}; allowed: a token of {path}, such as </s> or <|end_of_text|>"])
    encoder.no_padding()
    encoder.no_truncation()
    facts = {"tokenizer": _digest(path), "vocabulary": encoder.get_vocab_size(), "end_of_text": token}
    return encoder, facts


def _end_of_text(directory: Path) -> str | None:
    """Return the end of text that a tokenizer of transformers is configured with."""
    try:
        said = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))["eos_token"]
    except (OSError, KeyError, TypeError, ValueError):
        return None
    named = said.get("content") if isinstance(said, dict) else said
    return named if isinstance(named, str) else None


def _begin(output: Path, work: Path, facts: dict[str, Any]) -> None:
    """Make the directory of parts, or refuse one that is of something else.

    Raises:
        BadInputError: It is.
    """
    output.mkdir(parents=True, exist_ok=True)
    of = output / MANIFEST if (output / MANIFEST).exists() else work / MANIFEST
    try:
        before = json.loads(of.read_text(encoding="utf-8"))
    except FileNotFoundError:
        before = None
    except ValueError:
        before = {}
    if before is not None:
        differing = [name for name, value in facts.items() if before.get(name) != value]
        if differing:
            raise BadInputError(
                [f"--output: got {output}, with tokens of another {', '.join(differing)}; allowed: another directory"]
            )
        return
    if any(output.iterdir()):
        raise BadInputError([f"--output: got {output}, with other files in it; allowed: a new directory"])
    work.mkdir()
    _write(work / MANIFEST, json.dumps(facts).encode())


def _parts(text: Sequence[Path]) -> Iterator[list[str]]:
    """Yield the documents of all text in lists of about 32 MiB, which follow from the text alone."""
    part, size = list[str](), 0
    for document in _documents(text):
        part.append(document)
        size += len(document)
        if size >= _PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _documents(text: Sequence[Path]) -> Iterator[str]:
    """Yield each document: a line of .jsonl (its "text"), or a whole file; .gz is unpacked.

    Raises:
        BadInputError: A line is no document, or a file no text.
    """
    for path in text:
        opened = gzip.open if path.suffix == ".gz" else open
        is_lines = path.name.removesuffix(".gz").endswith(".jsonl")
        try:
            with opened(path, "rt", encoding="utf-8") as file:
                if not is_lines:
                    yield from (document for document in [file.read()] if document.strip())
                    continue
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        document = json.loads(line)["text"]
                        if not isinstance(document, str):
                            raise TypeError(f"line {number}: text is no string")
                        yield from (each for each in [document] if each.strip())
        except (KeyError, TypeError, ValueError, EOFError, gzip.BadGzipFile) as error:
            allowed = 'UTF-8; of .jsonl a line such as {"text": "..."} for each document'
            raise BadInputError([f"--text: got {path}; allowed: {allowed} ({error!r})"]) from None


def _tokenize(encoder: Tokenizer, documents: Sequence[str], end: int, part: Path) -> None:
    """Write the tokens of documents, an end of text after each."""
    hidden = part.with_suffix(".new")
    with hidden.open("wb") as file:
        for batch in _batches(documents):
            for encoding in encoder.encode_batch_fast(batch, add_special_tokens=False):
                file.write(np.array([*encoding.ids, end], _TYPE).tobytes())
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(part)
    synchronize(part.parent)


def _batches(documents: Sequence[str]) -> Iterator[Sequence[str]]:
    first = size = 0
    for number, document in enumerate(documents):
        size += len(document)
        if size >= _BATCH_BYTES:
            yield documents[first : number + 1]
            first, size = number + 1, 0
    if first < len(documents):
        yield documents[first:]


def _pack(parts: Sequence[Path], output: Path, width: int) -> tuple[list[Shard], int, int]:
    """Write the tokens of all parts in rows of a width; return the shards, all tokens, and how many were left out."""
    tokens = sum(part.stat().st_size for part in parts) // _TYPE.itemsize
    rows = tokens // width
    if not rows:
        raise BadInputError([f"--text: got {tokens} tokens; allowed: {width} or more, a row"])
    of_shard = max(1, _SHARD_BYTES // (width * _TYPE.itemsize))
    stream, shards = _read(parts), []
    for number, (first, last) in enumerate(pairwise([*range(0, rows, of_shard), rows])):
        name = f"tokens-{number:05}.u4"
        digest = _copy(stream, output / name, (last - first) * width * _TYPE.itemsize)
        shards.append(Shard(name, last - first, digest))
    synchronize(output)
    return shards, tokens, tokens - rows * width


class _read:
    """The bytes of files that follow one another."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = iter(paths)
        self._left = b""

    def read(self, count: int) -> bytes:
        """Return that many bytes, or fewer at the end."""
        while len(self._left) < count and (path := next(self._paths, None)) is not None:
            self._left += path.read_bytes()
        taken, self._left = self._left[:count], self._left[count:]
        return taken


def _copy(stream: _read, path: Path, size: int) -> str:
    """Write the next bytes of a stream to a file, and return their digest."""
    digest, hidden = hashlib.sha256(), path.with_name(f".{path.name}.new")
    with hidden.open("wb") as file:
        while size:
            piece = stream.read(min(size, _DIGITS))
            digest.update(piece)
            file.write(piece)
            size -= len(piece)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
    return digest.hexdigest()


def _write(path: Path, content: bytes) -> None:
    hidden = path.with_name(f".{path.name}.new")
    hidden.write_bytes(content)
    with hidden.open("rb") as file:
        os.fsync(file.fileno())
    hidden.replace(path)
    synchronize(path.parent)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if sys.version_info >= (3, 11) else _digest_before(file)


def _digest_before(file: Any) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_DIGITS):
        digest.update(piece)
    return digest.hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m programs.llama.tokens", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--text", type=Path, nargs="+", required=True, help="files: .jsonl, or a document each; also .gz"
    )
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with the model's tokenizer.json")
    parser.add_argument("--sequence-length", type=int, default=4096, help="tokens that the model reads (default: 4096)")
    parser.add_argument("--end-of-text", help="token after each document (default: the tokenizer's end of sequence)")
    parser.add_argument("--output", type=Path, required=True, help="directory on storage that all nodes share")
    given = parser.parse_args(arguments)
    try:
        if missing := [f"--text: got {path}; allowed: a file" for path in given.text if not path.is_file()]:
            raise BadInputError(missing)
        if given.sequence_length < 1:
            raise BadInputError([f"--sequence-length: got {given.sequence_length}; allowed: 1 or more"])
        manifest = prepare(
            given.text, given.tokenizer, given.output, sequence_length=given.sequence_length, end=given.end_of_text
        )
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error}\nNot finished. What is whole is kept for the same command.", file=sys.stderr)
        return 1
    rows = sum(shard.rows for shard in manifest.shards)
    print(
        f"{given.output}: {rows:,} rows in {len(manifest.shards)} shards, {manifest.tokens:,} tokens of "
        f"{manifest.documents:,} documents, {manifest.left_out:,} left out at the end"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
