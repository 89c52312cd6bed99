"""Training on CPUs, with gloo between the ranks: for tests and for a first try, not for speed."""

from __future__ import annotations

from collections.abc import Mapping
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

    def reduce_gradients(self, optimizer: Any) -> None:
        """Average the gradients over all ranks, many in one message."""
        gradients = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            if self.place.ranks > 1:
                distributed.all_reduce(flat)
            flat /= self.place.ranks
            parts = flat.split([gradient.numel() for gradient in bucket])
            for gradient, part in zip(bucket, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def reduce_vector(self, vector: Any) -> Any:
        """Return the sum over all ranks."""
        total = vector.clone()
        if self.place.ranks > 1:
            distributed.all_reduce(total)
        return total

    def fetch(self, vector: Any) -> list[float]:
        """Return the numbers of a tensor."""
        numbers: list[float] = vector.tolist()
        return numbers

    def to_host(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of nested tensors."""
        return deepcopy(dict(state))


def _buckets(gradients: list[Any]) -> list[list[Any]]:
    """Return the gradients in lists of some 32 MiB each."""
    buckets: list[list[Any]] = []
    room = 0
    for gradient in gradients:
        if gradient.nbytes > room:
            buckets.append([])
            room = _BUCKET_BYTES
        buckets[-1].append(gradient)
        room -= gradient.nbytes
    return buckets
