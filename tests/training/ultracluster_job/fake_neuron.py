"""What Neuron's packages make of PyTorch and PyTorch/XLA, for an environment where they cannot be installed.

No public index has torch_neuronx. The signature is that of the one public copy, 1.13.1.1.12.0: SummingClipGradNorm in
https://github.com/gschaves/torch-neuronx, torch_neuronx/xla_impl/ops.py. What 2.9 has is not known.
torch_xla 2.9 would put its own function over that one (torch_xla/__init__.py calls torch_neuronx.xla.init before
_apply_patches), so nodes may have either, and the program must run with both.

As a program (python -m tests.training.ultracluster_job.fake_neuron) it is a worker of torchrun, and connects the Neuron
back end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch


def replace_functions() -> None:
    """Replace PyTorch's functions by torch_neuronx's; torch_xla is imported."""
    torch.nn.utils.clip_grad_norm_ = clip_grad_norm


def clip_grad_norm(
    parameters: Iterable[Any], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """Clip gradients by their common norm of order 2, and return it."""
    assert norm_type == 2.0, norm_type
    assert not error_if_nonfinite, "it would stop the graph"
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = torch.stack([(gradient * gradient).sum() for gradient in gradients]).sum().sqrt()
    share = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(share)
    return norm


def see_all_ranks() -> None:
    """Let the runtime know the devices of all processes, as Neuron's does from torchrun's variables.

    https://github.com/pytorch/xla/blob/v2.9.0/torch_xla/_internal/neuron.py, configure_pjrt_environment
    """
    import torch_xla.runtime as xr

    ranks, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    xr.global_device_count = xr.process_count = lambda: ranks
    xr.global_ordinal = xr.process_index = lambda: rank


def main() -> None:
    """Connect to the other ranks; the back end raises if PyTorch/XLA counts fewer."""
    see_all_ranks()
    from ultracluster_job.neuron_backend import NeuronBackend
    from ultracluster_job.ranks import this_worker

    NeuronBackend(this_worker())


if __name__ == "__main__":
    main()
