"""AdamW and LAMB, set as the published runs set them, and such that an XLA graph is the same for each step.

What changes from step to step, the learning rate and the corrections for bias, comes in tensors, whose values are no
part of a graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import torch

from .phases import WEIGHT_DECAY

NOT_DECAYED = "biases and layer norms"
_BETAS = (0.9, 0.999)
_EPSILON = 1e-6


def pack(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors of weights by name, with all that belong to biases and layer norms in one vector, the last.

    BERT-Large has 248 of these, with 0.08 % of the numbers. On XLA the host's time is that of operations, whatever
    their size, and no optimizer makes a difference between them: neither weight decay nor a trust ratio.
    """
    decayed = {name: tensor for name, tensor in tensors.items() if not _is_exempt(name)}
    return {**decayed, NOT_DECAYED: torch.cat([tensor for name, tensor in tensors.items() if _is_exempt(name)])}


def unpack(packed: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the tensors that ``pack`` took, by the names and in the order of ``sizes``, the numbers of each."""
    exempt = [name for name in sizes if _is_exempt(name)]
    parts = dict(zip(exempt, packed[NOT_DECAYED].split([sizes[name] for name in exempt]), strict=True))
    return {name: parts[name] if name in parts else packed[name] for name in sizes}


class Optimizer:
    """AdamW, or LAMB as in AWS's sample with the defaults of its published run. Both keep moments in float32.

    Moments are corrected for their bias, and epsilon is added after that. LAMB gives what decays a trust ratio of
    weight and update, decay included, which is 1 at most; the rest is Adam's. The sample also limits the norm of all
    gradients, to the one to which they have been clipped by then.

    https://github.com/aws-neuron/aws-neuron-samples, torch-neuronx/training/dp_bert_hf_pretrain/lamb.py, with
    trust_clip=True of dp_bert_large_hf_pretrain_hdf5.py; https://arxiv.org/abs/1904.00962,
    https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html.
    """

    def __init__(self, name: str, weights: Mapping[str, Any]) -> None:
        """Take the name, adamw or lamb, and weights as ``pack`` returns them."""
        self._weights = weights
        self._has_trust_ratio = name == "lamb"
        self._steps = 0
        # Else the first step would make them, and on XLA be another graph than all others.
        self._means, self._squares = (
            {key: torch.zeros_like(weight, dtype=torch.float32) for key, weight in weights.items()} for _ in range(2)
        )

    def step(self, rate: Any) -> None:
        """Change each weight by its gradient; the learning rate is a tensor on the device."""
        with torch.no_grad():
            self._step(rate)

    def _step(self, rate: Any) -> None:
        self._steps += 1
        of_mean, of_square = _BETAS
        # In double precision: 1 - 0.999 loses four digits in float32.
        corrections = torch.tensor([1 - of_mean**self._steps, sqrt(1 - of_square**self._steps)]).to(rate.device)
        for name, weight in self._weights.items():
            mean, square, gradient = self._means[name], self._squares[name], weight.grad.float()
            mean.mul_(of_mean).add_(gradient, alpha=1 - of_mean)
            square.mul_(of_square).addcmul_(gradient, gradient, value=1 - of_square)
            update = (mean / corrections[0]).div_((square.sqrt() / corrections[1]).add_(_EPSILON))
            if not _is_exempt(name):
                update.add_(weight, alpha=WEIGHT_DECAY)
                if self._has_trust_ratio:
                    update.mul_(_trust_ratio(_norm(weight), _norm(update)))
            weight.sub_(update.mul_(rate))

    def state(self) -> dict[str, Any]:
        """Return what the next steps depend on."""
        return {"steps": self._steps, "means": dict(self._means), "squares": dict(self._squares)}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Take over what ``state`` returned."""
        self._steps = kept["steps"]
        for mine, others in ((self._means, kept["means"]), (self._squares, kept["squares"])):
            for name, moment in mine.items():
                moment.copy_(others[name])


def _norm(matrix: torch.Tensor) -> torch.Tensor:
    """Return the norm, of rows first: a sum of 31 million squares loses three digits of float32, a shorter one none."""
    return torch.linalg.vector_norm(torch.linalg.vector_norm(matrix.float(), dim=-1))


def _trust_ratio(weight: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
    """Return the ratio of two norms, at most 1, and 1 where either is 0."""
    some = torch.logical_and(weight > 0, update > 0)
    return torch.where(some, weight / update, torch.ones_like(weight)).clamp(max=1)


def _is_exempt(name: str) -> bool:
    """Tell whether a weight does not decay: https://github.com/aws-neuron/aws-neuron-samples, as above."""
    return name == NOT_DECAYED or name.endswith("bias") or "LayerNorm" in name
