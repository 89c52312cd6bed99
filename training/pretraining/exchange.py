"""What the ranks tell each other from host to host, through the store in which torchrun lets them find each other.

No device has a part in it. While graphs are only collected for a compiler, what devices tell each other is zeros, and
nobody waits for anybody: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/
api-reference-guide/training/pytorch-neuron-parallel-compile.html.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from torch import distributed

from .backend import Place

_PATIENCE = timedelta(hours=1)  # rank 0 reads a checkpoint at the start, and writes one at the end


class Exchange:
    """The ranks of one start of a run."""

    def __init__(self, place: Place, environment: Mapping[str, str] = os.environ) -> None:
        """Connect to the store, which is there once the back end has connected the ranks.

        https://docs.pytorch.org/docs/stable/distributed.html#distributed-key-value-store
        """
        self._place = place
        # What was told before the launcher started its workers anew is not meant.
        start = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = distributed.PrefixStore(f"pretraining/{start}", _store(place, environment))

    def share(self, name: str, text: str) -> str:
        """Return the text of rank 0; all ranks must call it, and wait for rank 0.

        Rank 0 comes back last: without torchrun the store is in its process, which may end next.

        Args:
            name: What it is about; another one for each call.
            text: What rank 0 has to say; not used on others.
        """
        if self._place.rank == 0:
            self._store.set(name, text)
            self._store.wait([f"{name}/{rank}" for rank in range(1, self._place.ranks)])
            return text
        heard: str = self._store.get(name).decode()
        self._store.set(f"{name}/{self._place.rank}", "")
        return heard


def _store(place: Place, environment: Mapping[str, str]) -> Any:
    if place.ranks == 1:
        return distributed.HashStore()
    address, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    return distributed.TCPStore(address, port, is_master=False, timeout=_PATIENCE, wait_for_workers=False)
