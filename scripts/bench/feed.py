"""How long a rank of the training program holds the interpreter's lock to read a micro-batch."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from scripts.bench.common import ROOT, BenchError, BenchRow, conditions, run, table

MAX_TIMES = 0.25
PYTHON = ROOT / ".venv-training/bin/python"

_HEADER = ("Phase", "micro-batches of a step", "lock, ms per micro-batch", "ratio to a read for each", "goal")
_MICRO_BATCHES_READ = 512


@dataclass(frozen=True)
class Phase:
    """Shards of a phase, and how a rank goes through them.

    Attributes:
        number: 1 or 2.
        length: Tokens of a sequence.
        predictions: Masked tokens of a sequence.
        rows: Sequences of a shard. The published number is not known: 1,024 shards of the English Wikipedia, five times
            (https://awsdocs-neuron.readthedocs-hosted.com, BERT tutorial), come to about as many.
        micro_batch: Sequences that a rank takes at once.
        accumulations: Micro-batches of a rank in a step, on one node and on more; 1 is a read for each.
    """

    number: int
    length: int
    predictions: int
    rows: int
    micro_batch: int
    accumulations: tuple[int, ...]


PHASES = (Phase(1, 128, 20, 100_000, 16, (1, 2, 8, 32)), Phase(2, 512, 80, 25_000, 2, (1, 32, 512)))


def report(rounds: int) -> tuple[str, list[BenchRow]]:
    """Measure with the interpreter of the training program, and return text and rows of a table.

    Raises:
        BenchError: It could not be measured.
    """
    heading = conditions(f"Medians of {rounds} rounds")
    if not PYTHON.exists():
        raise BenchError(f"{PYTHON} is missing: make .venv-training/.complete")
    measured = json.loads(run([str(PYTHON), "-m", "scripts.bench.feed", str(rounds)]).output)
    lines = rows([(each["phase"], each["accumulation"], each["milliseconds"]) for each in measured])
    return f"{heading}\n\n{table(_HEADER, lines)}", lines


def rows(samples: list[tuple[int, int, float]]) -> list[BenchRow]:
    """Return a row for each phase and number of micro-batches; the goal is for the most of each phase: one node."""
    alone = {phase: milliseconds for phase, accumulation, milliseconds in samples if accumulation == 1}
    most = {phase: max(count for number, count, _ in samples if number == phase) for phase, _, _ in samples}
    lines = []
    for phase, accumulation, milliseconds in samples:
        times = milliseconds / alone[phase]
        goal, met = (f"at most {MAX_TIMES} x", times <= MAX_TIMES) if accumulation == most[phase] else ("", None)
        lines.append(BenchRow((str(phase), str(accumulation), f"{milliseconds:.2f}", f"{times:.2f} x", goal), met))
    return lines


def _write_shard(path: Path, phase: Phase) -> None:
    """Write a shard as NVIDIA's create_pretraining_data.py does: compressed, and cut into chunks by h5py's own rule.

    https://github.com/NVIDIA/DeepLearningExamples/blob/master/PyTorch/LanguageModeling/BERT/create_pretraining_data.py
    """
    import h5py
    import numpy as np

    from training.pretraining.corpus import GeneratedCorpus, Rows

    made = GeneratedCorpus(1, 30522, phase.length, phase.predictions).read(Rows(0, 0, 2000))
    chosen = np.random.default_rng(1).integers(0, 2000, phase.rows)
    with h5py.File(path, "w") as file:
        for key, values in made.items():
            kind = "i1" if key in {"input_mask", "segment_ids", "next_sentence_labels"} else "i4"
            file.create_dataset(key, data=values[chosen], dtype=kind, compression="gzip")


def _milliseconds(corpus: Any, phase: Phase, accumulation: int) -> float:
    """Return the CPU time of a micro-batch: the feed's thread works alone, and h5py keeps the lock while it does."""
    from training.pretraining.batch import Batch
    from training.pretraining.feed import Feed

    batch = Batch(32 * accumulation * phase.micro_batch, phase.micro_batch, ranks=32)
    steps = range(_MICRO_BATCHES_READ // accumulation)
    start = time.process_time()
    feed = Feed(corpus, batch, rank=5, seed=1, steps=steps)
    for _ in range(len(steps) * accumulation):
        next(feed)
    return (time.process_time() - start) / _MICRO_BATCHES_READ * 1000


def _measure(rounds: int) -> list[dict[str, float]]:
    import torch

    from training.pretraining.corpus import Shard, ShardedCorpus

    torch.set_num_threads(1)
    measured = []
    with tempfile.TemporaryDirectory() as name:
        for phase in PHASES:
            path = Path(name) / f"wikicorpus_training_{phase.number}.hdf5"
            _write_shard(path, phase)
            corpus = ShardedCorpus(path.parent, [Shard(path.name, phase.rows)], vocabulary=30522)
            for accumulation in phase.accumulations:
                taken = [_milliseconds(corpus, phase, accumulation) for _ in range(rounds)]
                measured.append({"phase": phase.number, "accumulation": accumulation, "milliseconds": median(taken)})
    return measured


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]))))
