"""All that differs between devices: here those of PyTorch itself. ``neuron_backend`` has NeuronCores by PyTorch/XLA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import distributed

from .ranks import Worker


class Backend:
    """What training needs of the hardware and of the other ranks: here of a CPU, or of PyTorch's own accelerator.

    That is a GPU, or what an installed package registers, as TorchNeuron is to do with Trn2 and Trn3
    (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/pytorch-native-overview.html). Ranks are
    connected by what PyTorch has for such a device: gloo, NCCL.

    Attributes:
        device: torch's device of this rank.
        ahead: Steps that the host may be ahead of the device; 0 where it computes itself.
        extracting: Whether graphs are only collected for a compiler, so that all results are zeros.
        peak_flops: What one rank's hardware could do, FLOP/s; None where it is not known.
        worker: Which of the workers this is.
    """

    device: Any = torch.device("cpu")
    ahead = 0
    extracting = False
    peak_flops: float | None = None

    def __init__(self, worker: Worker, *, accelerated: bool = False) -> None:
        """Connect to the other ranks: with an accelerator of this rank's, if it is wanted and there is one."""
        self.worker = worker
        if accelerated and (kind := torch.accelerator.current_accelerator(check_available=True)):
            torch.accelerator.set_device_index(worker.local_rank)
            self.device, self.ahead = torch.device(kind.type, worker.local_rank), 1
        if worker.ranks > 1:
            distributed.init_process_group(distributed.get_default_backend_for_device(self.device))

    def send(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors on the device, without waiting for it."""
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in tensors.items()}

    def seed(self, number: int) -> None:
        """Seed the device's random numbers."""
        torch.manual_seed(number)

    def execute(self) -> None:
        """Hand what was computed since the last call to the device, without waiting for it."""

    def wait(self) -> None:
        """Wait until the device has done all that was handed to it."""
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)

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
