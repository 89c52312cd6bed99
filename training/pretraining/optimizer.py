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
_KEPT = ("step", "exp_avg", "exp_avg_sq")


def create(name: str, weights: Mapping[str, Any], *, capturable: bool) -> Any:
    """Return an optimizer of named weights.

    Weight decay leaves out biases and layer norms; coefficients are the defaults of the published optimizers:
    https://github.com/aws-neuron/aws-neuron-samples/tree/master/torch-neuronx/training/dp_bert_hf_pretrain. Where it is
    capturable, AdamW keeps its count of steps on the device.
    """
    decayed = [weight for key, weight in weights.items() if not _is_exempt(key)]
    exempt = [weight for key, weight in weights.items() if _is_exempt(key)]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": exempt, "weight_decay": 0.0}]
    if name == "adamw":
        return torch.optim.AdamW(groups, betas=_BETAS, eps=_EPSILON, foreach=False, capturable=capturable)
    return _lamb(groups)


def set_learning_rate(optimizer: Any, rate: Any) -> None:
    """Set the rate of the next step, a tensor on the device.

    A rate of 0, which the published schedule starts with, becomes a tiny one, which changes no weight either:
    capturable AdamW divides by the rate. Of LAMB, weights without a trust ratio take their correction of bias with it.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate.clamp(min=_SMALLEST_RATE)
        if group.get("adam"):
            correction = torch.tensor([_bias_correction(group.get("step", 0) + 1)])
            group["lr"] = group["lr"] * correction.to(rate.device)[0]


def state(optimizer: Any) -> dict[str, Any]:
    """Return what the next steps depend on.

    It leaves out the norms that LAMB keeps for the curious: on XLA they are a graph of their own.
    """
    whole: dict[str, Any] = optimizer.state_dict()
    kept = {
        index: {name: value for name, value in moments.items() if name in _KEPT}
        for index, moments in whole["state"].items()
    }
    return {**whole, "state": kept}


def restore(optimizer: Any, kept: Mapping[str, Any]) -> None:
    """Take over what ``state`` returned.

    PyTorch/XLA keeps equal numbers once. AdamW's counts are made different tensors again, or the first step would be
    another graph than all others (https://github.com/pytorch/xla/issues/3604).
    """
    optimizer.load_state_dict(kept)
    for moments in optimizer.state.values():
        if "step" in moments:
            moments["step"] = moments["step"].clone()


def _lamb(groups: list[dict[str, Any]]) -> Any:
    """Return LAMB as in https://arxiv.org/abs/1904.00962, with the weight decay inside the trust ratio.

    - foreach: the other way asks the device for two numbers per weight, which would stop the graph hundreds of times.
    - adam_debias: the library corrects no bias of the moments: it knows the first moment's alone, and as a number in
      the graph. The trust ratio cancels a correction as long as epsilon and decay are small beside what they are added
      to. In the first steps epsilon weighs more than in the published optimizer, up to 32 times, and decay less, down
      to a seventh; both differences fade within the warm-up.
    - adam: weights without decay take no trust ratio, as in the published optimizer, and their correction of bias with
      the learning rate.
    - clamp: the norm of a weight has no limit, as in the published optimizer; the library's is 10.

    The published one also limits the trust ratio to 1, which the library cannot; it is some hundredths.
    """
    from pytorch_optimizer.optimizer.lamb import Lamb

    decayed, exempt = groups
    optimizer = Lamb(
        [{**decayed, "adam": False}, {**exempt, "adam": True}],
        betas=_BETAS,
        eps=_EPSILON,
        weight_decouple=False,
        adam_debias=True,
        foreach=True,
    )
    optimizer.clamp = torch.finfo(torch.float32).max
    return optimizer


def _bias_correction(step: int) -> float:
    """Return by what the update of a step, counted from 1, is multiplied for the bias of both moments.

    Epsilon is multiplied with it, which the published optimizer adds after the correction:
    https://github.com/aws-neuron/aws-neuron-samples/blob/master/torch-neuronx/training/dp_bert_hf_pretrain/lamb.py.
    """
    first, second = _BETAS
    return sqrt(1 - second**step) / (1 - first**step)


def _is_exempt(name: str) -> bool:
    return name.endswith("bias") or "LayerNorm" in name
