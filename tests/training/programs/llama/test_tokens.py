"""Tokens of text: the same bytes always, nothing lost, and what cannot be used refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import time
from contextlib import redirect_stderr
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from llama import tokens
from llama.tokens import main, read_manifest, rows_of

END = "</s>"
LENGTH = 32


def words(seed: int, count: int) -> str:
    chance = Random(seed)  # noqa: S311
    return " ".join("".join(chance.choices("abcdefgh", k=chance.randint(1, 7))) for _ in range(count))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two files of documents, one of them packed, and a file that is a document."""
    directory = tmp_path_factory.mktemp("text")
    lines = [json.dumps({"text": words(number, 40)}) for number in range(60)]
    (directory / "a.jsonl").write_text("\n".join(lines[:40]) + "\n\n", encoding="utf-8")
    with gzip.open(directory / "b.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join([*lines[40:], json.dumps({"text": "  "})]))
    (directory / "c.txt").write_text(words(99, 500), encoding="utf-8")
    return sorted(directory.iterdir())


@pytest.fixture(scope="module")
def tokenizer(text: list[Path]) -> Path:
    """A byte-level tokenizer, trained here, as Llama's and GPT's are."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator(
        [words(number, 200) for number in range(9)], trainers.BpeTrainer(vocab_size=500, special_tokens=[END])
    )
    directory = text[0].parent.parent / "tokenizer"
    directory.mkdir()
    trained.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": END}}))
    return directory


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_PART_BYTES", 2_000)
    monkeypatch.setattr(tokens, "_BATCH_BYTES", 700)
    monkeypatch.setattr(tokens, "_SHARD_BYTES", 20 * (LENGTH + 1) * 4)


def prepare(text: list[Path], tokenizer: Path, output: Path, *further: str) -> int:
    options = ["--tokenizer", str(tokenizer), "--sequence-length", str(LENGTH), "--output", str(output), *further]
    return main(["--text", *map(str, text), *options])


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_every_token_is_there_once_in_order(text: list[Path], tokenizer: Path, tmp_path: Path) -> None:
    assert prepare(text, tokenizer, tmp_path / "out") == 0
    manifest = read_manifest(tmp_path / "out")
    rows = np.concatenate([rows_of(tmp_path / "out", manifest, shard) for shard in manifest.shards])
    encoder = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    expected = [
        token for document in tokens._documents(text) for token in [*encoder.encode(document).ids, manifest.end_of_text]
    ]
    assert rows.shape[1] == LENGTH + 1
    assert rows.reshape(-1).tolist() == expected[: rows.size]
    assert (manifest.tokens, manifest.left_out, manifest.documents) == (len(expected), len(expected) - rows.size, 61)
    assert 0 <= manifest.left_out <= LENGTH
    assert len(manifest.shards) > 2
    for shard in manifest.shards:
        assert hashlib.sha256((tmp_path / "out" / shard.name).read_bytes()).hexdigest() == shard.sha256


def test_a_killed_preparation_continues_and_gives_the_same_bytes(
    text: list[Path], tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prepare(text, tokenizer, tmp_path / "undisturbed") == 0
    tokenize, made = tokens._tokenize, list[str]()

    def failing(*given: Any) -> None:
        if len(made) == 3:
            given[-1].with_suffix(".new").write_bytes(b"half")
            raise OSError(28, "No space left on device")
        made.append(given[-1].name)
        tokenize(*given)

    with monkeypatch.context() as patch:
        patch.setattr(tokens, "_tokenize", failing)
        assert prepare(text, tokenizer, tmp_path / "killed") == 1

    def noting(*given: Any) -> None:
        made.append(given[-1].name)
        tokenize(*given)

    with monkeypatch.context() as patch:
        patch.setattr(tokens, "_tokenize", noting)
        assert prepare(text, tokenizer, tmp_path / "killed") == 0
    assert len(made) == len(set(made)), "a part that is there is not made again"
    assert contents(tmp_path / "killed") == contents(tmp_path / "undisturbed")
    assert prepare(text, tokenizer, tmp_path / "killed") == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "nothing.txt"}, "--text: got nothing.txt; allowed: a file"),
        ({"bad": '{"no text": 1}\n'}, "allowed: UTF-8; of .jsonl a line such as"),
        ({"bad": '{"text": 1}\n'}, "line 1: text is no string"),
        ({"bad": "\n"}, "without a document; allowed: text"),
        ({"bad": '{"text": "a"}\n'}, "tokens; allowed: 33 or more, a row"),
        ({"further": ("--end-of-text", "[no]")}, "--end-of-text: got [no]; allowed: a token of "),
        ({"tokenizer": "/nowhere"}, "--tokenizer: got /nowhere; allowed: a folder with tokenizer.json"),
        ({"output": "there"}, "with other files in it; allowed: a new directory"),
        ({"output": "other"}, "with tokens of another sequence_length; allowed: another directory"),
    ],
)
def test_what_cannot_work_is_refused(
    text: list[Path], tokenizer: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").touch()
    if change.get("output") == "other":
        assert prepare(text, tokenizer, tmp_path / "other", "--sequence-length", "16") == 0
    if "bad" in change:
        (tmp_path / "bad.jsonl").write_text(change["bad"], encoding="utf-8")
    given = [tmp_path / "bad.jsonl"] if "bad" in change else [Path(change["text"])] if "text" in change else text
    output, said = tmp_path / change.get("output", "out"), io.StringIO()
    with redirect_stderr(said):
        assert prepare(given, Path(change.get("tokenizer", tokenizer)), output, *change.get("further", ())) == 2
    assert message in said.getvalue()


@pytest.mark.slow
def test_it_takes_little_more_than_the_tokenizer(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPU seconds of all threads, of 3 MB of text."""
    for name in ("_PART_BYTES", "_BATCH_BYTES", "_SHARD_BYTES"):
        monkeypatch.setattr(tokens, name, {"_PART_BYTES": 2**25, "_BATCH_BYTES": 2**20, "_SHARD_BYTES": 2**28}[name])
    documents = [words(number, 1_000) for number in range(600)]
    (tmp_path / "text.jsonl").write_text("\n".join(json.dumps({"text": each}) for each in documents), encoding="utf-8")
    encoder = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    ratios = []
    for attempt in range(2):
        start = time.process_time()
        for first in range(0, len(documents), 100):
            for encoding in encoder.encode_batch_fast(documents[first : first + 100], add_special_tokens=False):
                encoding.ids  # noqa: B018 - it makes a list
        own = time.process_time() - start
        start = time.process_time()
        assert prepare([tmp_path / "text.jsonl"], tokenizer, tmp_path / f"out-{attempt}") == 0
        ratios.append((time.process_time() - start) / own)
    assert min(ratios) < 1.2, ratios
