"""Training on NeuronCores through PyTorch/XLA: the one module that imports torch_xla.

More than one process needs Trn1: on a CPU torch_xla makes each a world of its own, where a reduction does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend  # registers "xla" with torch.distributed
import torch_xla.runtime as xr

from .backend import Backend
from .ranks import Worker

NEURON_CORE_V2_PEAK = 95e12
"""Dense BF16 of a NeuronCore v2, FLOP/s: a Trainium chip has 190e12 and two cores
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium.html)."""


class NeuronBackend(Backend):
    """NeuronCores, with XLA's collectives between the ranks."""

    ahead = 1
    peak_flops: float | None = NEURON_CORE_V2_PEAK

    def __init__(self, worker: Worker) -> None:
        """Connect to the other ranks.

        Raises:
            RuntimeError: PyTorch/XLA sees another number of ranks, so that its reductions would leave some out.
        """
        self.worker = worker
        if worker.ranks > 1:
            # Without xla:// torch_xla 2.9 never calls set_replication, and counts one rank
            # (torch_xla/_internal/rendezvous.py; world_size in torch_xla/runtime.py).
            torch.distributed.init_process_group("xla", init_method="xla://")
        self.device = torch_xla.device()
        # neuron_parallel_compile sets it: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/
        # torch-neuronx/api-reference-guide/training/pytorch-neuron-parallel-compile.html
        self.extracting = bool(os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY"))
        if (xr.world_size(), xr.global_ordinal()) != (worker.ranks, worker.rank):
            seen = f"rank {xr.global_ordinal()} of {xr.world_size()}"
            raise RuntimeError(
                f"PyTorch/XLA takes this process for {seen}, torchrun for {worker.rank} of {worker.ranks}"
            )

    def send(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors on the NeuronCore; they travel with the next execution."""
        return {name: tensor.to(self.device) for name, tensor in tensors.items()}

    def seed(self, number: int) -> None:
        """Seed the NeuronCore's random numbers. The number is an input of the graph, not part of it."""
        torch_xla.manual_seed(number)

    def execute(self) -> None:
        """Hand the graph to the runtime."""
        torch_xla.sync()

    def wait(self) -> None:
        """Wait until all graphs handed to the runtime have been executed."""
        xm.wait_device_ops()

    def reduce(self, tensors: Sequence[Any]) -> None:
        """Add up the tensors of all ranks, within the graph, as ``xm.reduce_gradients`` does: many in one message.

        Its variable ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB tells how many go together (torch_xla/core/xla_model.py).
        """
        megabytes = int(os.environ.get("ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB", "50"))
        xm.all_reduce_bucketized_gradients(tensors, 1.0, groups=None, pin_layout=True, bucket_cap_mb=megabytes)

    def fetch(self, vector: Any) -> list[float]:
        """Wait for a tensor, and return its numbers."""
        numbers: list[float] = vector.cpu().tolist()
        return numbers

    def to_host(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy in host memory, all tensors in one transfer, as AWS's sample does."""
        copy: dict[str, Any] = xm._maybe_convert_to_cpu(dict(state))
        return copy
