"""The global batch is divided exactly, or refused with what would do."""

from __future__ import annotations

import pytest

from bert import check
from bert.options import parse
from ultracluster_job import BadInputError, Batch


def divided(global_batch: int, nodes: int, scaling: str) -> Batch:
    options = ["--global-batch", str(global_batch), "--micro-batch", "16", "--scaling", scaling]
    return check.divided(parse(["check", "--output", "run", *options]), nodes, 32)


@pytest.mark.parametrize(
    ("global_batch", "nodes", "scaling", "sequences", "accumulation"),
    [
        (16_384, 1, "strong", 16_384, 32),
        (16_384, 16, "strong", 16_384, 2),
        (16_384, 32, "strong", 16_384, 1),
        (65_536, 16, "weak", 1_048_576, 128),  # the published run on 16 nodes
        (16_384, 3, "weak", 49_152, 32),
    ],
)
def test_batch_of_nodes(global_batch: int, nodes: int, scaling: str, sequences: int, accumulation: int) -> None:
    batch = divided(global_batch, nodes, scaling)
    assert (batch.sequences, batch.accumulation) == (sequences, accumulation)
    assert batch.ranks * batch.accumulation * batch.micro == sequences


@pytest.mark.parametrize(
    ("global_batch", "nodes", "scaling", "message"),
    [
        (16_384, 24, "strong", "--nodes: got 24; allowed: 1, 2, 4, 8, 16 or 32 (--global-batch 16384 = --micro-batch "
         "16 x 32 workers per node x 32), or any number with --scaling weak"),
        (1_000, 1, "weak", "--global-batch: got 1000; allowed: a multiple of 512 (--micro-batch 16 x 32 workers per "
         "node), such as 512 or 1024"),
        (100, 1, "strong", "--global-batch: got 100; allowed: a multiple of 512 (--micro-batch 16 x 32 workers per "
         "node), such as 512"),
    ],
)  # fmt: skip
def test_what_does_not_divide_is_refused_with_what_does(
    global_batch: int, nodes: int, scaling: str, message: str
) -> None:
    with pytest.raises(BadInputError) as refusal:
        divided(global_batch, nodes, scaling)
    assert str(refusal.value) == message
