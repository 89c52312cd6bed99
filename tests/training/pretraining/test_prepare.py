"""`pretraining.prepare build`: shards of plain text, by the published recipe."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import pytest
from tokenizers.implementations import BertWordPieceTokenizer

from training.pretraining.corpus import KEYS, inspect
from training.pretraining.prepare import main
from training.pretraining.text_corpus import (
    Layout,
    TextDocument,
    divide,
    find_documents,
    load_tokenizer,
    write_shard,
)

DOCUMENTS = 60
PADDING, UNKNOWN, CLASS, SEPARATOR, MASK = range(5)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of sentences; each word says of which document and sentence it is."""
    chance = Random(1)  # noqa: S311
    documents = [
        "\n".join(
            " ".join(f"d{document:02}s{sentence}" for _ in range(chance.randint(5, 25)))
            for sentence in range(chance.randint(3, 9))
        )
        for document in range(DOCUMENTS)
    ]
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    path.write_text("\n\n".join(documents) + "\n")
    return path


@pytest.fixture(scope="module")
def tokenizer(text: Path) -> Path:
    """A WordPiece vocabulary of that text, in which each word is one token, both as tokenizer.json and vocab.txt."""
    trained = BertWordPieceTokenizer()
    trained.train([str(text)], vocab_size=2000, min_frequency=1, show_progress=False)
    directory = text.parent / "tokenizer"
    directory.mkdir()
    trained.save(str(directory / "tokenizer.json"))
    trained.save_model(str(directory))
    return directory


def build(text: Path, tokenizer: Path, output: Path, *options: str) -> int:
    arguments = ["--text", str(text), "--tokenizer", str(tokenizer), "--output", str(output), "--processes", "2"]
    return main(["build", *arguments, *options])


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.hdf5")}


@pytest.fixture(scope="module")
def built(text: Path, tokenizer: Path) -> Path:
    output = text.parent / "built"
    assert build(text, tokenizer, output, "--shards", "3") == 0
    return output


@pytest.fixture(scope="module")
def rows(built: Path) -> dict[str, Any]:
    shards = []
    for path in sorted(built.glob("*.hdf5")):
        with h5py.File(path) as file:
            shards.append({key: file[key][:] for key in KEYS})
    return {key: np.concatenate([shard[key] for shard in shards]) for key in KEYS}


def test_the_layout_is_that_of_the_published_shards(built: Path) -> None:
    shards, problems = inspect(built, sequence_length=128, max_predictions=20, vocabulary=30_522)
    assert (len(shards), problems) == (3, [])
    assert all(shard.rows > 50 for shard in shards)
    with h5py.File(built / shards[0].name) as file:
        assert [file[key].dtype.str for key in KEYS] == ["<i4", "|i1", "|i1", "<i4", "<i4", "|i1"]


def test_a_sequence_is_two_texts_in_a_frame(rows: dict[str, Any]) -> None:
    for words, mask, segments in zip(rows["input_ids"], rows["input_mask"], rows["segment_ids"], strict=True):
        length = int(mask.sum())
        assert list(mask) == [1] * length + [0] * (128 - length)
        assert list(words[length:]) == [PADDING] * (128 - length)
        first, second = np.flatnonzero(words[:length] == SEPARATOR)[[0, -1]]
        assert (words[0], second) == (CLASS, length - 1)
        assert list(segments) == [0] * (first + 1) + [1] * (second - first) + [0] * (128 - length)


def test_fifteen_in_a_hundred_tokens_are_to_be_predicted(rows: dict[str, Any]) -> None:
    lengths = rows["input_mask"].sum(axis=1)
    counts = (rows["masked_lm_positions"] > 0).sum(axis=1)
    assert list(counts) == [min(20, max(1, round(int(length) * 0.15))) for length in lengths]
    assert (rows["masked_lm_ids"][rows["masked_lm_positions"] == 0] == 0).all()
    places, truths = rows["masked_lm_positions"], rows["masked_lm_ids"]
    shown = np.take_along_axis(rows["input_ids"], places.astype(np.int64), axis=1)[places > 0]
    truths = truths[places > 0]
    assert not np.isin(truths, (PADDING, UNKNOWN, CLASS, SEPARATOR, MASK)).any()
    shares = np.array([(shown == MASK).mean(), (shown == truths).mean()])
    assert np.allclose(shares, (0.8, 0.1), atol=0.03)


def test_the_label_says_whether_the_second_text_follows(rows: dict[str, Any], tokenizer: Path) -> None:
    words = load_tokenizer(tokenizer)
    labels = rows["next_sentence_labels"]
    assert 0.4 < labels.mean() < 0.75  # half, and the last sentences of documents
    for row, label in enumerate(labels):
        original = rows["input_ids"][row].copy()
        places = rows["masked_lm_positions"][row]
        original[places[places > 0]] = rows["masked_lm_ids"][row][places > 0]
        first, second = words.decode(original, skip_special_tokens=False).split("[SEP]")[:2]
        last_word, next_word = first.split()[-1], second.split()[0]
        assert (last_word[:3] == next_word[:3]) is not bool(label)
        if not label:
            assert int(next_word[4:]) >= int(last_word[4:])


def test_a_shard_that_is_not_whole_does_not_have_its_name(
    text: Path, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: h5py.File, name: str, **content: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(h5py.File, "create_dataset", fail)
    with pytest.raises(OSError, match="No space"):
        write_shard(tmp_path / "0.hdf5", 0, list(find_documents(text)), tokenizer, Layout(32, 5, 1, 0))
    assert not (tmp_path / "0.hdf5").exists()


def test_a_build_that_was_interrupted_continues(
    text: Path, tokenizer: Path, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, work = tmp_path / "out", tmp_path / ".out.building"
    assert build(text, tokenizer, output, "--shards", "3") == 0
    output.rename(work)
    kept = (work / "shard-00001.hdf5").stat().st_mtime_ns
    (work / "shard-00000.hdf5").unlink()
    (work / "shard-00002.hdf5").rename(work / "shard-00002.part")
    assert build(text, tokenizer, output, "--shards", "3", "--seed", "7") == 2
    assert f"--output: got {work}, made of something else" in capsys.readouterr().err
    assert build(text, tokenizer, output, "--shards", "3", "--processes", "1") == 0
    assert contents(output) == contents(built), "the same seed gives the same, on any number of processes"
    assert (output / "shard-00001.hdf5").stat().st_mtime_ns == kept
    assert not work.exists()


BAD_TEXTS = {
    "nothing": (b"", "--text: got 0 documents; allowed: two documents for each shard, 2 or more"),
    "blank lines": (b"\n \n\n", "--text: got 0 documents"),
    "one document": (b"a b\nc d\n", "--text: got 1 documents"),
    "another encoding": ("déjà vu\n\nb\n".encode("latin-1"), "invalid continuation byte"),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_text_that_will_not_do(case: str, tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, words = BAD_TEXTS[case]
    (tmp_path / "bad.txt").write_bytes(content)
    assert build(tmp_path / "bad.txt", tokenizer, tmp_path / "out") == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_all_problems_are_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build(tmp_path / "no.txt", tmp_path / "nowhere", tmp_path / "out", "--max-predictions", "128") == 2
    assert capsys.readouterr().err.splitlines() == [
        "--max-predictions: got 128; allowed: less than --sequence-length 128",
        f"--tokenizer: got {tmp_path}/nowhere: it has neither tokenizer.json nor vocab.txt; allowed: a directory with "
        "a tokenizer for BERT",
        f"--text: got {tmp_path}/no.txt, which cannot be read ([Errno 2] No such file or directory: "
        f"'{tmp_path}/no.txt'); allowed: files of text in UTF-8",
    ]


def test_documents_are_divided_by_their_size() -> None:
    documents = [TextDocument("text", 0, size) for size in (90, 1, 1, 1, 1, 1, 1, 100, 1, 1)]
    assert [[run.size for run in part] for part in divide(documents, 3)] == [
        [90, 1],
        [1, 1, 1, 1, 1, 100],
        [1, 1],
    ]
    assert [len(part) for part in divide(documents, 5)] == [2, 2, 2, 2, 2]
