"""The workers of a run: which of them this process is, and what they tell each other from host to host."""

from __future__ import annotations

import os
import pickle
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

NODES = "ULTRACLUSTER_NODES"
"""The variable with the names of all nodes, in the order of their numbers."""
_TIMEOUT = timedelta(hours=1)  # rank 0 reads a checkpoint at the start, and writes one at the end


@dataclass(frozen=True)
class Worker:
    """One of the workers: its numbers among all ``ranks`` and on its node, both from 0."""

    rank: int
    ranks: int
    local_rank: int
    nodes: int

    @property
    def workers_per_node(self) -> int:
        """Workers of each node."""
        return self.ranks // self.nodes


def this_worker() -> Worker:
    """Return the worker that torchrun's variables name; without them, the process is alone.

    https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
    """
    return Worker(
        rank=int(os.environ.get("RANK", "0")),
        ranks=int(os.environ.get("WORLD_SIZE", "1")),
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
    )


def node_names(nodes: int) -> list[str]:
    """Return the names of all nodes, in the order of their numbers; without Slurm, their numbers."""
    alone = [socket.gethostname()] if nodes == 1 else [f"node {node}" for node in range(nodes)]
    return os.environ.get(NODES, "").split() or alone


class Exchange:
    """Values between the ranks of one start of a run, through the store in which torchrun lets them find each other.

    No device has a part in it. While graphs are only collected for a compiler, what devices tell each other is zeros,
    and nobody waits for anybody: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/
    api-reference-guide/training/pytorch-neuron-parallel-compile.html.
    """

    def __init__(self, worker: Worker) -> None:
        """Connect to the store, which is there once the backend has connected the ranks.

        https://docs.pytorch.org/docs/stable/distributed.html#distributed-key-value-store
        """
        from torch import distributed  # a plain check needs no torch

        self._worker = worker
        # Keys of workers that the launcher has restarted are not meant.
        start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = distributed.PrefixStore(f"job/{start}", _store(worker))

    def tell(self, name: str, value: Any) -> Any:
        """Return the value of rank 0, which does not wait for the others; otherwise as ``share``."""
        if self._worker.rank == 0:
            self._store.set(name, pickle.dumps(value))
            return value
        return pickle.loads(self._store.get(name))  # noqa: S301 - of a rank of this run

    def share(self, name: str, value: Any) -> Any:
        """Return the value of rank 0; all ranks must call it, and wait for rank 0.

        Rank 0 returns last: without torchrun the store is in its process, which may end next. The name must be
        another one for each call.
        """
        if self._worker.rank == 0:
            self._store.set(name, pickle.dumps(value))
            self._store.wait([f"{name}/{rank}" for rank in range(1, self._worker.ranks)])
            return value
        heard = pickle.loads(self._store.get(name))  # noqa: S301 - of a rank of this run
        self._store.set(f"{name}/{self._worker.rank}", "")
        return heard


def _store(worker: Worker) -> Any:
    from torch import distributed

    if worker.ranks == 1:
        return distributed.HashStore()
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return distributed.TCPStore(address, port, is_master=False, timeout=_TIMEOUT, wait_for_workers=False)
