"""Training on CPUs, with gloo between the ranks: for tests and for a first try, not for speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import distributed

from .backend import Place

_BUCKET_BYTES = 1 << 25


class CpuBackend:
    """See ``backend.Backend``."""

    name = "cpu"
    device = torch.device("cpu")
    capturable = False
    ahead = 0
    extracting = False
    peak_flops: float | None = None

    def __init__(self, place: Place) -> None:
        self.place = place
        if place.ranks > 1:
            distributed.init_process_group("gloo")

    def send(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors as they are."""
        return dict(tensors)

    def seed(self, number: int) -> None:
        """Start torch's random numbers anew."""
        torch.manual_seed(number)

    def execute(self) -> None:
        """Do nothing: all has been computed."""

    def wait(self) -> None:
        """Do nothing: all has been computed."""

    def reduce(self, tensors: Sequence[Any]) -> None:
        """Add up the tensors of all ranks, many in one message."""
        if self.place.ranks == 1:
            return
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            distributed.all_reduce(flat)
            parts = flat.split([tensor.numel() for tensor in bucket])
            for tensor, part in zip(bucket, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def fetch(self, vector: Any) -> list[float]:
        """Return the numbers of a tensor."""
        numbers: list[float] = vector.tolist()
        return numbers

    def to_host(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of nested tensors."""
        return deepcopy(dict(state))


def _buckets(tensors: Sequence[Any]) -> list[list[Any]]:
    """Return the tensors in lists of some 32 MiB each."""
    buckets: list[list[Any]] = []
    room = 0
    for tensor in tensors:
        if tensor.nbytes > room:
            buckets.append([])
            room = _BUCKET_BYTES
        buckets[-1].append(tensor)
        room -= tensor.nbytes
    return buckets
