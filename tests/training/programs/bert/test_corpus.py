"""Shards are found, checked and read; the generated corpus is like them; labels stand where words are masked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bert.corpus import KEYS, GeneratedCorpus, Rows, Shard, ShardedCorpus, inspect
from bert.feed import IGNORED, Feed, Order, tensors
from tests.training.programs.bert.shard_files import (
    LENGTH,
    PREDICTIONS,
    TYPES,
    VOCABULARY,
    arrays,
    write_shard,
    write_shards,
)
from ultracluster_job.batch import Batch


def inspected(directory: Path) -> tuple[list[Shard], list[str]]:
    return inspect(directory, sequence_length=LENGTH, max_predictions=PREDICTIONS, vocabulary=VOCABULARY)


def test_shards_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_shards(tmp_path, (3, 5))
    (tmp_path / "README.md").write_text("not a shard")
    shards, problems = inspected(tmp_path)
    assert ([(shard.name[-6], shard.rows) for shard in shards], problems) == ([("0", 3), ("1", 5)], [])
    corpus = ShardedCorpus(tmp_path, shards, VOCABULARY)
    read, written = corpus.read(Rows(1, 1, 3)), arrays(4, 3)
    for key in KEYS:
        np.testing.assert_array_equal(read[key], written[key])


def test_test_data_is_not_trained_on(tmp_path: Path) -> None:
    write_shards(tmp_path, (3,))
    write_shard(tmp_path / "wikicorpus_test_0.hdf5", arrays(0, 3))
    assert inspected(tmp_path) == (
        [],
        [
            f"--data: got {tmp_path} with 1 files such as wikicorpus_test_0.hdf5; allowed: shards to train on alone, "
            "*_training_*.hdf5"
        ],
    )


def test_few_files_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bert.corpus._OPEN_FILES", 2)
    write_shards(tmp_path, (2, 2, 2))
    corpus = ShardedCorpus(tmp_path, inspected(tmp_path)[0], VOCABULARY)
    for shard in (0, 1, 2, 0, 1):
        np.testing.assert_array_equal(corpus.read(Rows(shard, 0, 2))["input_ids"], arrays(2 * shard, 2)["input_ids"])
    held = [path for path in Path("/proc/self/fd").iterdir() if str(tmp_path) in str(path.resolve())]
    assert len(held) == 2


def test_each_shard_with_a_problem_has_its_line(tmp_path: Path) -> None:
    good = arrays(0, 4)
    write_shard(tmp_path / "a.hdf5", good)
    write_shard(tmp_path / "b.hdf5", {key: good[key] for key in KEYS if key != "segment_ids"})
    write_shard(tmp_path / "c.hdf5", {**good, "masked_lm_ids": good["masked_lm_ids"][:3]})
    write_shard(tmp_path / "d.hdf5", good, {**TYPES, "input_ids": "f4"})
    (tmp_path / "e.hdf5").write_bytes(b"cut off")
    write_shard(tmp_path / "f.hdf5", {**good, "masked_lm_positions": good["masked_lm_positions"] * 0})
    write_shard(tmp_path / "g.hdf5", {key: array[:0] for key, array in good.items()})
    shards, problems = inspected(tmp_path)
    assert [shard.name[0] for shard in shards] == ["a", "f", "g"]
    b, c, d, e, f = problems
    assert b.startswith(f"--data: shard {tmp_path}/b.hdf5: has no dataset segment_ids; it has input_ids, input_mask, ")
    assert c.startswith(f"--data: shard {tmp_path}/c.hdf5: dataset masked_lm_ids has the shape (3, 5); allowed: (4, 5)")
    assert c.endswith(f", with --sequence-length {LENGTH} and --max-predictions {PREDICTIONS}")
    assert d == f"--data: shard {tmp_path}/d.hdf5: dataset input_ids has the type float32; allowed: integers"
    assert e.startswith(f"--data: shard {tmp_path}/e.hdf5: ")
    assert f.endswith("dataset masked_lm_positions has no masked token in row 0; allowed: one or more in each row")


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("input_ids", VOCABULARY, "0 to 511, with --vocabulary 512"),
        ("masked_lm_positions", -1, "0 to 31"),
        ("next_sentence_labels", 2, "0 to 1"),
    ],
)
def test_values_that_the_model_has_no_place_for_are_refused(tmp_path: Path, key: str, value: int, allowed: str) -> None:
    content = {name: array.copy() for name, array in arrays(0, 100).items()}
    content[key].reshape(100, -1)[2, -1] = value
    write_shard(tmp_path / "a.hdf5", content)
    told = f"--data: shard {tmp_path}/a.hdf5: dataset {key} has the value {value} in row 2; allowed: {allowed}"
    assert inspected(tmp_path)[1] == [told]
    corpus = ShardedCorpus(tmp_path, [Shard("a.hdf5", 100)], VOCABULARY)
    corpus.read(Rows(0, 3, 97))
    with pytest.raises(ValueError, match=re.escape(told.removeprefix("--data: "))):
        corpus.read(Rows(0, 1, 2))


def test_labels_are_the_hidden_words_and_nothing_else() -> None:
    rows = arrays(0, 8)
    batch = tensors(rows)
    for line in range(8):
        masked = rows["masked_lm_positions"][line]
        labels = dict(zip(masked[masked > 0], rows["masked_lm_ids"][line][masked > 0], strict=True))
        assert len(labels) > 0
        for place, label in enumerate(batch["labels"][line].tolist()):
            assert label == labels.get(place, IGNORED)
    assert batch["next_sentence_label"].tolist() == rows["next_sentence_labels"].tolist()


def test_the_generated_corpus_has_the_shape_of_a_shard() -> None:
    rows = arrays(0, 200)
    words, places = rows["input_ids"], np.arange(LENGTH)
    lengths = rows["input_mask"].sum(axis=1)
    assert set(lengths) <= set(range(LENGTH // 2, LENGTH + 1))
    np.testing.assert_array_equal(rows["input_mask"], places < lengths[:, None])
    np.testing.assert_array_equal(words == 0, places >= lengths[:, None])
    assert (words < VOCABULARY).all()
    assert ((words == 2).sum(axis=1) == 2).all()  # two separators, of which none is masked
    assert set(rows["next_sentence_labels"]) == {0, 1}
    counts = (rows["masked_lm_positions"] > 0).sum(axis=1)
    assert counts.min() >= 1
    assert ((words == 3).sum(axis=1) == counts).all()


def test_a_rank_gets_its_micro_batches_in_the_order_of_the_steps(tmp_path: Path) -> None:
    write_shards(tmp_path, (20, 21))  # an odd number: micro-batches reach from one shard into the other
    corpus = ShardedCorpus(tmp_path, inspected(tmp_path)[0], VOCABULARY)

    def fed(ranks: int, steps: range) -> list[list[int]]:
        batch = Batch(sequences=8, micro=2, ranks=ranks)
        feeds = [Feed(corpus, batch, rank=rank, seed=1, steps=steps) for rank in range(ranks)]
        return [next(feed)["input_ids"].tolist() for _ in steps for feed in feeds for _ in range(batch.accumulation)]

    alone = fed(1, range(12))
    rows = Order((20, 21), seed=1).rows(0, 12 * 8)
    in_order = np.concatenate([corpus.read(each)["input_ids"] for each in rows])
    assert alone == in_order.reshape(-1, 2, LENGTH).tolist()
    assert fed(2, range(12)) == fed(4, range(12)) == alone
    assert fed(1, range(3, 12)) == alone[12:]


def test_each_pass_has_every_sequence_once_in_an_order_of_its_own() -> None:
    def sequences(seed: int, position: int) -> list[tuple[int, int]]:
        blocks = Order(shards, seed, block_rows=4).rows(position, sum(shards))
        return [(rows.shard, rows.first + index) for rows in blocks for index in range(rows.length)]

    shards = (10, 3, 7, 12)
    first, second, other_seed = sequences(1, 0), sequences(1, sum(shards)), sequences(2, 0)
    assert sorted(first) == sorted(second) == [(shard, row) for shard, rows in enumerate(shards) for row in range(rows)]
    assert first != second
    assert first != other_seed


def test_a_step_reads_consecutive_rows_at_once() -> None:
    class Noting(GeneratedCorpus):
        def read(self, rows: Rows) -> Mapping[str, Any]:
            reads.append(rows)
            return super().read(rows)

    reads: list[Rows] = []
    corpus, batch = Noting(7, VOCABULARY, LENGTH, PREDICTIONS), Batch(sequences=3072, micro=16, ranks=2)
    feed = Feed(corpus, batch, rank=1, seed=1, steps=range(1))
    for _ in range(batch.accumulation):
        next(feed)
    assert reads == list(Order(corpus.rows_of_shards, seed=1).rows(1536, 1536))
    assert [rows.length for rows in reads] == [512, 1024]


def test_what_goes_wrong_while_reading_ahead_is_raised_where_the_data_is_used(tmp_path: Path) -> None:
    corpus = ShardedCorpus(tmp_path, [Shard("gone.hdf5", 8)], VOCABULARY)
    with pytest.raises(FileNotFoundError, match=r"gone\.hdf5"):
        next(Feed(corpus, Batch(8, 2, 1), rank=0, seed=1, steps=range(1)))
