"""AdamW and LAMB, set as the published runs set them, and such that an XLA graph is the same for each step.

Both take the learning rate as a tensor, whose value is no part of the graph. AdamW counts its steps in tensors, too;
LAMB's count is on the host, and what follows from it reaches the device in a tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import torch

from .phases import WEIGHT_DECAY

_SMALLEST_RATE = 1e-30
_BETAS = (0.9, 0.999)
_EPSILON = 1e-6


class Lamb(torch.optim.Optimizer):  # type: ignore[misc]
    """LAMB as in AWS's sample, with the defaults of its published run.

    Both moments are corrected for their bias, and epsilon is added after that. What decays has a trust ratio of weight
    and update, decay included, which is 1 at most; the rest is Adam's. The sample also limits the norm of all
    gradients, to the one to which they have been clipped by then.

    https://github.com/aws-neuron/aws-neuron-samples, torch-neuronx/training/dp_bert_hf_pretrain/lamb.py, with
    trust_clip=True of dp_bert_large_hf_pretrain_hdf5.py; https://arxiv.org/abs/1904.00962.
    """

    def step(self, closure: Any = None) -> None:
        """Change each weight by its gradient."""
        with torch.no_grad():
            self._step()

    def _step(self) -> None:
        step = self.param_groups[0].get("step", 0) + 1
        (of_mean, of_square), rate = _BETAS, self.param_groups[0]["lr"]
        # In double precision: 1 - 0.999 loses four digits in float32. In a tensor they are no part of a graph.
        corrections = torch.tensor([1 - of_mean**step, sqrt(1 - of_square**step)]).to(rate.device)
        for group in self.param_groups:
            group["step"] = step
            for weight in group["params"]:
                mean, square = self.state[weight]["exp_avg"], self.state[weight]["exp_avg_sq"]
                mean.mul_(of_mean).add_(weight.grad, alpha=1 - of_mean)
                square.mul_(of_square).addcmul_(weight.grad, weight.grad, value=1 - of_square)
                update = (mean / corrections[0]).div_((square.sqrt() / corrections[1]).add_(_EPSILON))
                if group["weight_decay"] != 0:
                    update.add_(weight, alpha=group["weight_decay"])
                    update.mul_(_trust_ratio(_norm(weight), _norm(update)))
                weight.sub_(update.mul_(rate))


def _norm(matrix: torch.Tensor) -> torch.Tensor:
    """Return the norm, of rows first: a sum of 31 million squares loses three digits of float32, a shorter one none."""
    return torch.linalg.vector_norm(torch.linalg.vector_norm(matrix, dim=-1))


def _trust_ratio(weight: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
    """Return the ratio of two norms, at most 1, and 1 where either is 0."""
    some = torch.logical_and(weight > 0, update > 0)
    return torch.where(some, weight / update, torch.ones_like(weight)).clamp(max=1)


def create(name: str, weights: Mapping[str, Any], *, capturable: bool) -> Any:
    """Return an optimizer of named weights.

    Weight decay leaves out biases and layer norms; coefficients are the defaults of the published optimizers:
    https://github.com/aws-neuron/aws-neuron-samples/tree/master/torch-neuronx/training/dp_bert_hf_pretrain. Where it is
    capturable, AdamW keeps its count of steps on the device.
    """
    decayed = [weight for key, weight in weights.items() if not _is_exempt(key)]
    exempt = [weight for key, weight in weights.items() if _is_exempt(key)]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": exempt, "weight_decay": 0.0}]
    if name == "lamb":
        optimizer = Lamb(groups, {})
    else:
        optimizer = torch.optim.AdamW(groups, betas=_BETAS, eps=_EPSILON, foreach=False, capturable=capturable)
    # Else the first step would make them, and on XLA be another graph than all others.
    for weight in weights.values():
        moments = {"exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
        if name != "lamb":
            moments["step"] = torch.zeros((), device=weight.device if capturable else "cpu")
        optimizer.state[weight].update(moments)
    return optimizer


def set_learning_rate(optimizer: Any, rate: Any) -> None:
    """Set the rate of the next step, a tensor on the device.

    A rate of 0, which the published schedule starts with, becomes a tiny one, which changes no weight either:
    capturable AdamW divides by the rate.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate.clamp(min=_SMALLEST_RATE)


def state(optimizer: Any) -> dict[str, Any]:
    """Return what the next steps depend on."""
    whole: dict[str, Any] = optimizer.state_dict()
    return whole


def restore(optimizer: Any, kept: Mapping[str, Any]) -> None:
    """Take over what ``state`` returned.

    PyTorch/XLA keeps equal numbers once. AdamW's counts are made different tensors again, or the first step would be
    another graph than all others (https://github.com/pytorch/xla/issues/3604).
    """
    optimizer.load_state_dict(kept)
    for moments in optimizer.state.values():
        if "step" in moments:
            moments["step"] = moments["step"].clone()


def _is_exempt(name: str) -> bool:
    return name.endswith("bias") or "LayerNorm" in name
