"""What the training program takes of a host: for make bench and make test-xla.

As a program (python -m tests.training.programs.bert.measure feed|checkpoint|trace) it prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep
from typing import Any

_ROWS, _MICRO_BATCHES = 4_096, 4_096
_GIGABYTE = 1_000_000_000
_ROUNDS = 7
_PHASES = {1: (128, 20, 16), 2: (512, 80, 2)}


def feed(phase: int) -> float:
    """Return the sequences that one process reads for a second of CPU time, from a shard of the published layout."""
    from bert.corpus import GeneratedCorpus, Rows, ShardedCorpus, inspect
    from bert.feed import Feed
    from tests.training.programs.bert.shard_files import write_shard
    from ultracluster_job import Batch

    length, predictions, micro = _PHASES[phase]
    with TemporaryDirectory() as name:
        rows = GeneratedCorpus(7, 30_522, length, predictions).read(Rows(0, 0, _ROWS))
        write_shard(Path(name) / "wikicorpus_training_0.hdf5", rows)
        shards, problems = inspect(Path(name), sequence_length=length, max_predictions=predictions, vocabulary=30_522)
        assert not problems, problems
        batch = Batch(sequences=32 * micro, micro=micro, ranks=1)
        given = Feed(ShardedCorpus(Path(name), shards, 30_522), batch, rank=0, seed=1, steps=range(1_000_000))
        next(given)
        began = process_time()
        for _ in range(_MICRO_BATCHES):
            next(given)
        return _MICRO_BATCHES * micro / (process_time() - began)


def checkpoint(directory: Path) -> dict[str, float]:
    """Return the least seconds in which a checkpoint of 1 GB is on the disk, and the same bytes in a plain file."""
    import torch

    from ultracluster_job import Checkpoints

    tensors = {f"weight {number}": torch.randn(4096, 1024) for number in range(60)}
    size = sum(tensor.nbytes for tensor in tensors.values())
    seconds: dict[str, list[float]] = {"checkpoint": [], "plain": []}
    for number in range(1, _ROUNDS + 1):
        began = perf_counter()
        with (directory / "plain").open("wb") as file:
            for tensor in tensors.values():
                file.write(tensor.numpy())
            file.flush()
            os.fsync(file.fileno())
        seconds["plain"].append(perf_counter() - began)
        (directory / "plain").unlink()
        checkpoints = Checkpoints(directory / "checkpoints", keep=1)
        began = perf_counter()
        checkpoints.save(number, tensors)
        assert checkpoints.wait() is None
        seconds["checkpoint"].append(perf_counter() - began)
    return {name: min(each) * _GIGABYTE / size for name, each in seconds.items()}


def on_a_cpu_as_neuron() -> None:
    """Set what torch_neuronx sets: without functionalization, which costs BERT 15 %, tensors change in place.

    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/api-reference-guide/training/
    torch-neuron-envvars.html
    """
    os.environ.update(PJRT_DEVICE="CPU", XLA_DISABLE_FUNCTIONALIZATION="1")


def trace() -> list[tuple[float, float]]:
    """Return the host's CPU seconds in micro-batches of 24 layers: forward and backward, adding up gradients.

    A layer is narrow: the operations count, not their sizes. Nothing is compiled, for each graph is dropped.
    """
    on_a_cpu_as_neuron()
    import torch

    from bert.feed import tensors
    from bert.learner import Learner, build_model
    from bert.sizes import Sizes
    from tests.training.programs.bert.shard_files import LENGTH, VOCABULARY, arrays
    from ultracluster_job.neuron_backend import NeuronBackend
    from ultracluster_job.ranks import Worker

    backend = NeuronBackend(Worker(rank=0, ranks=1, local_rank=0, nodes=1))
    model = build_model(Sizes(24, 32, 2, 64, VOCABULARY, LENGTH), dropout=0.1, seed=1)
    learner = Learner(model, backend, optimizer="adamw", precision="bf16", accumulation=1)
    backend.wait()
    differentiate, marks = torch.autograd.grad, list[float]()

    def marked(*given: Any) -> Any:
        gradients = differentiate(*given)
        marks.append(process_time())
        return gradients

    torch.autograd.grad, backend.execute = marked, lambda: None  # type: ignore[method-assign]
    batch, seconds = tensors(arrays(0, 2)), []
    for _ in range(12):
        for weight in learner._weights.values():
            weight.grad = torch.zeros(weight.shape).to(backend.device)
        learner._losses = torch.zeros(2).to(backend.device)
        sleep(0.05)  # the transfer has threads of its own
        began = process_time()
        learner.accumulate(batch, seed=1)
        seconds.append((marks[-1] - began, process_time() - marks[-1]))
    return seconds


def main() -> None:
    """Measure what is asked for, on one core."""
    import torch

    torch.set_num_threads(1)
    if sys.argv[1] == "feed":
        measured: Any = {phase: feed(phase) for phase in _PHASES}
    elif sys.argv[1] == "checkpoint":
        with TemporaryDirectory() as name:
            measured = checkpoint(Path(name))
    else:
        measured = trace()
    print(json.dumps(measured), flush=True)
    os._exit(0)  # the feed's thread and torch_xla's would make an end of their own


if __name__ == "__main__":
    main()
