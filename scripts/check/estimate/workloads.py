"""How fast a model trains, by what AWS published of trn1.32xlarge.

Rows: aws-neuron-sdk, about-neuron/benchmarks/trn1/training_data_encoder.csv and training_data_decoder.csv (older
releases: general/benchmarks/trn1/), each the latest that was published for its number of nodes. Weak-scaling efficiency
from 1 to 16 nodes: general/benchmarks/trn1/nlp_data.csv of release 2.6, the only one that has such a pair of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise
from math import ceil, log
from typing import Final

from scripts.core.errors import UnusableError

INSTANCE_TYPE: Final = "trn1.32xlarge"
NODES_OF_EFFICIENCY: Final = 16


class Basis(StrEnum):
    """How a throughput is known."""

    MEASURED = "measured"
    INTERPOLATED = "interpolated"
    EXTRAPOLATED = "extrapolated"


class WorkloadError(UnusableError):
    """A workload cannot run as asked; the message says why."""


@dataclass(frozen=True)
class Row:
    """A published measurement: throughput of all nodes, global batch in sequences, release of the Neuron SDK."""

    nodes: int
    sequences_per_second: float
    batch: int
    sdk: str


@dataclass(frozen=True)
class Workload:
    """A training run.

    Attributes:
        rows: Measurements, by number of nodes.
        sequence_length: Tokens per sequence.
        sequences: Sequences of the whole run; None: from a number of tokens.
        tokens: Tokens of the published pre-training, for workloads without a number of sequences.
        efficiency: Published throughput per node on 16 nodes relative to 1 node, each node with the same batch.
        nodes_per_replica: Nodes that one copy of the model takes; runs have a multiple of it.
    """

    name: str
    title: str
    rows: Sequence[Row]
    sequence_length: int
    efficiency: float = 122.13 / (16 * 8.23)
    efficiency_of: str = "GPT-3 6.7B, release 2.6, 1 to 16 nodes"
    sequences: int | None = None
    tokens: int | None = None
    nodes_per_replica: int = 1
    remark: str = ""

    def length(self, tokens: int | None) -> int:
        """Return the sequences of a run on a number of tokens; None: as published.

        Raises:
            WorkloadError: The run has a fixed number of sequences.
        """
        if self.sequences is not None:
            if tokens is not None:
                raise WorkloadError(f"{self.name} has a fixed length of {self.sequences:,} sequences, no --tokens")
            return self.sequences
        return ceil((tokens or self.tokens or 0) / self.sequence_length)

    def throughput(self, nodes: int) -> tuple[float, Basis]:
        """Return sequences per second on a number of nodes, and how they are known.

        Between two rows the throughput follows the power of the number of nodes that joins them. Beyond, it follows the
        nearest row with the published weak-scaling efficiency, as if each sixteenfold lost as much again.
        """
        for row in self.rows:
            if row.nodes == nodes:
                return row.sequences_per_second, Basis.MEASURED
        for below, above in pairwise(self.rows):
            if below.nodes < nodes < above.nodes:
                power = log(above.sequences_per_second / below.sequences_per_second) / log(above.nodes / below.nodes)
                return below.sequences_per_second * (nodes / below.nodes) ** power, Basis.INTERPOLATED
        nearest = self.rows[0] if nodes < self.rows[0].nodes else self.rows[-1]
        times = nodes / nearest.nodes
        lost = self.efficiency ** log(times, NODES_OF_EFFICIENCY)
        return nearest.sequences_per_second * times * lost, Basis.EXTRAPOLATED

    def batch(self, nodes: int) -> int:
        """Return the global batch in sequences: the measured one, else as many per node as the largest row has."""
        largest = self.rows[-1]
        measured = {row.nodes: row.batch for row in self.rows}
        return measured.get(nodes, largest.batch * nodes // largest.nodes)


_BERT_SOURCE = "BERT-Large phase {} BF16, release 2.6, 1 to 16 nodes"
_BERT_RECIPE = "measured with bf16 weights and stochastic rounding, --precision bf16-stochastic of the program"
_LLAMA_2 = partial(Workload, sequence_length=4096, tokens=2_000_000_000_000)
_LLAMA_2_TOKENS = "2 trillion tokens: arXiv 2307.09288"
_LLAMA_3 = partial(
    Workload, sequence_length=8192, tokens=15_000_000_000_000, remark="15 trillion tokens: arXiv 2407.21783"
)

_ALL = (
    Workload(
        "bert-large-phase1",
        "BERT-Large pre-training, phase 1 (128 tokens, BF16)",
        (Row(1, 3826.6, 16_384, "2.28.0"), Row(16, 57_407.9, 1_048_576, "2.28.0")),
        sequence_length=128,
        sequences=28_125 * 16_384,
        efficiency=49_846 / (16 * 3365),
        efficiency_of=_BERT_SOURCE.format(1),
        remark="1 node is AdamW at a batch of 16,384, 16 nodes are LAMB at 1,048,576; at a batch of 16,384 "
        f"AWS measured 26,474 sequences/s on 16 nodes (2.22), less than half; {_BERT_RECIPE}",
    ),
    Workload(
        "bert-large-phase2",
        "BERT-Large pre-training, phase 2 (512 tokens, BF16)",
        (Row(1, 527.95, 32_768, "2.6.0"), Row(16, 7800.9, 524_288, "2.22.0")),
        sequence_length=512,
        sequences=1563 * 32_768,
        efficiency=8084 / (16 * 527.95),
        efficiency_of=_BERT_SOURCE.format(2),
        remark=f"the rows are of two releases; 16 nodes were measured at 8,396 sequences/s with 2.20; {_BERT_RECIPE}",
    ),
    _LLAMA_2(
        "llama-2-7b",
        "Llama 2 7B pre-training (4,096 tokens)",
        (Row(16, 101.3, 1024, "2.20.0"),),
        remark=_LLAMA_2_TOKENS,
    ),
    _LLAMA_2(
        "llama-2-13b",
        "Llama 2 13B pre-training (4,096 tokens)",
        (Row(16, 64.7, 1024, "2.17.0"), Row(32, 84.0, 1024, "2.20.0")),
        nodes_per_replica=2,
        remark=f"both rows have a batch of 1,024; {_LLAMA_2_TOKENS}",
    ),
    _LLAMA_2(
        "llama-2-70b",
        "Llama 2 70B pre-training (4,096 tokens)",
        (Row(32, 14.2, 1024, "2.20.0"),),
        nodes_per_replica=8,
        remark=f"the best row published was 17.9 sequences/s; {_LLAMA_2_TOKENS}",
    ),
    _LLAMA_3("llama-3.1-8b", "Llama 3.1 8B pre-training (8,192 tokens)", (Row(32, 47.95, 1024, "2.24.0"),)),
    _LLAMA_3(
        "llama-3.1-70b",
        "Llama 3.1 70B pre-training (8,192 tokens)",
        (Row(32, 7.94, 1024, "2.24.0"),),
        nodes_per_replica=8,
    ),
)
WORKLOADS: Final = {workload.name: workload for workload in _ALL}
