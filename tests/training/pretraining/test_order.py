"""Every sequence once in each pass, in an order that only the seed and the data decide."""

from __future__ import annotations

from training.pretraining.batch import Batch
from training.pretraining.order import Order

SHARDS = (10, 3, 7, 12)
TOTAL = sum(SHARDS)


def sequences(order: Order, position: int, count: int) -> list[tuple[int, int]]:
    return [
        (rows.shard, row) for rows in order.rows(position, count) for row in range(rows.first, rows.first + rows.length)
    ]


def test_each_pass_has_every_sequence_once() -> None:
    order = Order(SHARDS, seed=1, block_rows=4)
    everything = {(shard, row) for shard, rows in enumerate(SHARDS) for row in range(rows)}
    for epoch in range(3):
        found = sequences(order, epoch * TOTAL, TOTAL)
        assert len(found) == TOTAL
        assert set(found) == everything


def test_passes_differ_and_seeds_differ() -> None:
    first, second = sequences(Order(SHARDS, 1, 4), 0, TOTAL), sequences(Order(SHARDS, 1, 4), TOTAL, TOTAL)
    other_seed = sequences(Order(SHARDS, 2, 4), 0, TOTAL)
    assert first != second
    assert first != other_seed
    assert first == sequences(Order(SHARDS, 1, 4), 0, TOTAL)


def test_reading_in_pieces_across_passes_gives_the_same_order() -> None:
    whole = sequences(Order(SHARDS, 1, 4), 0, 3 * TOTAL)
    order = Order(SHARDS, 1, 4)
    pieces = [sequences(order, position, 5) for position in range(0, 3 * TOTAL - 5, 5)]
    assert [each for piece in pieces for each in piece] == whole[: 5 * len(pieces)]


def test_rows_of_a_block_stay_together() -> None:
    for rows in Order((4096,), seed=1).rows(0, 4096):
        assert rows.length == 1024
        assert rows.first % 1024 == 0


def test_a_global_batch_is_the_same_for_any_number_of_ranks() -> None:
    def step(ranks: int, number: int) -> list[tuple[int, int]]:
        batch = Batch(sequences=16, micro=2, ranks=ranks)
        order = Order(SHARDS, 1, 4)
        return [
            sequence
            for rank in range(ranks)
            for index in range(batch.accumulation)
            for sequence in sequences(order, number * batch.sequences + batch.first(rank, index), batch.micro)
        ]

    for number in range(5):
        assert step(1, number) == step(2, number) == step(4, number) == step(8, number)
