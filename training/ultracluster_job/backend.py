"""All that differs between NeuronCores and a CPU. ``neuron_backend`` has the NeuronCores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import distributed

from .ranks import Worker


class Backend:
    """What training needs of the hardware and of the other ranks: here of a CPU, with gloo between the ranks.

    Attributes:
        name: ``neuron`` or ``cpu``.
        device: torch's device of this rank.
        ahead: Steps that the host may be ahead of the device; 0 where it computes itself.
        extracting: Whether graphs are only collected for a compiler, so that all results are zeros.
        peak_flops: What one rank's hardware could do, FLOP/s; None where it is not known.
        worker: Which of the workers this is.
    """

    name = "cpu"
    device: Any = torch.device("cpu")
    ahead = 0
    extracting = False
    peak_flops: float | None = None

    def __init__(self, worker: Worker) -> None:
        """Connect to the other ranks."""
        self.worker = worker
        if worker.ranks > 1:
            distributed.init_process_group("gloo")

    def send(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors on the device, without waiting for it."""
        return dict(tensors)

    def seed(self, number: int) -> None:
        """Seed the device's random numbers."""
        torch.manual_seed(number)

    def execute(self) -> None:
        """Hand what was computed since the last call to the device, without waiting for it."""

    def wait(self) -> None:
        """Wait until the device has done all that was handed to it."""

    def reduce(self, tensors: Sequence[Any]) -> None:
        """Replace each of the tensors on the device by its sum over all ranks: the one way in which ranks add up."""
        if self.worker.ranks == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(flat)
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def fetch(self, vector: Any) -> list[float]:
        """Wait for a tensor that was handed to the device, and return its numbers."""
        numbers: list[float] = vector.tolist()
        return numbers

    def to_host(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of nested tensors in host memory."""
        copy: dict[str, Any] = _copied(state)
        return copy


def _copied(value: Any) -> Any:
    """Return nested mappings with copies of their tensors in host memory."""
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return value.detach().to("cpu", copy=True) if isinstance(value, torch.Tensor) else value
