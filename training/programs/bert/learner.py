"""One optimizer step on one rank: micro-batches add up gradients, then all ranks' mean updates the weights.

Weights and gradients are kept in float32 beside a model in bf16, which AWS recommends as standard mixed precision:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/libraries/neuronx-distributed/standard_mixed_precision.html. So
hundreds of micro-batches can be added up without loss, and a small update is never rounded away. With the precision
bf16-stochastic they are bf16, too, as in the recipe whose speed AWS published: an update is rounded up or down at
random, right on average, which NeuronCores do and others do not.

On XLA each call of ``accumulate`` is one graph and each call of ``update`` another, the same for every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertForPreTraining

from ultracluster_job import Backend

from . import optimizer as optimizers
from .feed import IGNORED
from .phases import MAX_GRADIENT_NORM
from .sizes import Sizes

_DTYPES = {
    "bf16": (torch.bfloat16, torch.float32),
    "bf16-stochastic": (torch.bfloat16, torch.bfloat16),
    "fp32": (torch.float32, torch.float32),
}
"""Of the model, and of weights and gradients, by precision. Moments are float32: AWS's script calls its recipe
"Full BF16 and FP32 optimizer parameters" (run_dp_bert_large_hf_pretrain_bf16_s128.sh)."""


def model_configuration(sizes: Sizes, *, dropout: float) -> Any:
    """Return the configuration of a model.

    Attention is the plain one: the other asks the device whether a mask is empty, which stops an XLA graph.
    """
    return BertConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=sizes.intermediate,
        max_position_embeddings=sizes.positions,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        attn_implementation="eager",
    )


def build_model(sizes: Sizes, *, dropout: float, seed: int) -> Any:
    """Return a model with weights drawn from the seed, in host memory and float32."""
    torch.manual_seed(seed)
    return BertForPreTraining(model_configuration(sizes, dropout=dropout)).train()


def move_model(model: Any, device: Any, dtype: Any) -> Any:
    """Return the model on a device, with the decoder's weights still those of the embeddings.

    Moving a model to an XLA device makes new parameters, which parts the two: main program of
    https://github.com/aws-neuron/aws-neuron-samples, dp_bert_large_hf_pretrain_hdf5.py.
    """
    model = model.to(device=device, dtype=dtype)
    model.tie_weights()
    return model


def losses(model: Any, batch: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the losses of the masked words and of the next sentence, means over a micro-batch, in float32.

    A batch with positions has the labels of these alone, and words are told at no other.
    """
    output = model.bert(
        input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], token_type_ids=batch["token_type_ids"]
    )
    hidden = output.last_hidden_state
    if "positions" in batch:
        # As a product, exact for ones and zeros: NeuronCores are made for products, and gradients of rows picked by
        # their index are added up at places known at run time.
        places = torch.arange(hidden.shape[1], device=hidden.device)
        hidden = (batch["positions"].unsqueeze(-1) == places).to(hidden.dtype) @ hidden
    words, sentences = (logits.float() for logits in model.cls(hidden, output.pooler_output))
    return (
        cross_entropy(words.flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORED),
        cross_entropy(sentences, batch["next_sentence_label"]),
    )


class Learner:
    """A model with its optimizer, on the device of this rank."""

    def __init__(self, model: Any, backend: Backend, *, optimizer: str, precision: str, accumulation: int) -> None:
        """Take a model in host memory and float32, which is moved and changed; accumulation is micro-batches."""
        self._backend = backend
        self._micro_batches = accumulation * backend.worker.ranks
        self._shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
        # Clones first: in fp32 on a CPU moving the model would leave them the same tensors.
        copies = optimizers.pack({name: weight.detach().clone() for name, weight in model.named_parameters()})
        of_model, of_weights = _DTYPES[precision]
        self._model = move_model(model, backend.device, of_model)
        self._parameters = [parameter for _, parameter in self._model.named_parameters()]
        self._weights = {name: copy.to(backend.device, of_weights) for name, copy in copies.items()}
        for weight in self._weights.values():
            weight.grad = torch.zeros_like(weight)
        self._losses = torch.zeros(2, device=backend.device)
        places = torch.zeros(backend.worker.ranks)
        places[backend.worker.rank] = 1
        self._own_place = places.to(backend.device)
        self._optimizer = optimizers.Optimizer(optimizer, self._weights)
        backend.execute()
        # XLA sends equal tensors once, and a graph of fewer ones is another graph, of the first step alone.
        self._show_weights()
        backend.execute()

    @property
    def model(self) -> Any:
        """The model with the weights of now, on the device."""
        return self._model

    def accumulate(self, batch: Mapping[str, Any], seed: int) -> None:
        """Add a micro-batch's losses and gradients to those of the step, as its share in the mean of all ranks'.

        The seed is that of dropout.
        """
        self._backend.seed(seed)
        mlm, nsp = losses(self._model, self._backend.send(batch))
        gradients = torch.autograd.grad((mlm + nsp) / self._micro_batches, self._parameters)
        with torch.no_grad():
            packed = optimizers.pack(dict(zip(self._shapes, gradients, strict=True)))
            for name, weight in self._weights.items():
                weight.grad.add_(packed[name])  # to float32 as float32, whatever the model computes in
            self._losses += torch.stack([mlm.detach(), nsp.detach()]) / self._micro_batches
        self._backend.execute()

    def update(self, learning_rate: float, contribution: Sequence[float]) -> Any:
        """Make the optimizer step, and return a tensor on the device.

        It has the norm of the mean gradient before it was clipped, the two losses, means over all ranks, the sums over
        all ranks of the contributed numbers, and for each rank 1 where its own losses are not finite, else 0.
        """
        with torch.no_grad():
            return self._update(learning_rate, contribution)

    def _update(self, learning_rate: float, contribution: Sequence[float]) -> Any:
        sent = self._backend.send({"numbers": torch.tensor([learning_rate, *contribution])})["numbers"]
        # The numbers go with the gradients, so that what is seen of them holds for the gradients, too.
        numbers = torch.cat([self._losses, sent[1:], self._own_place * (~self._losses.sum().isfinite()).float()])
        weights = list(self._weights.values())
        self._backend.reduce([*(weight.grad for weight in weights), numbers])
        # Neither norm_type nor foreach: torch_xla and torch_neuronx put functions of their own here, and not all take
        # what torch's takes. AWS's dp_bert_large_hf_pretrain_hdf5.py passes the same two.
        norm = torch.nn.utils.clip_grad_norm_(weights, MAX_GRADIENT_NORM)
        self._optimizer.step(sent[0])
        self._show_weights()
        for weight in weights:
            weight.grad.zero_()
        self._losses.zero_()
        result = torch.cat([norm.reshape(1).float(), numbers])
        self._backend.execute()
        return result

    def _show_weights(self) -> None:
        """Give the model the weights, in the precision that it computes in."""
        with torch.no_grad():
            weights = optimizers.unpack(self._weights, self._sizes)
            for parameter, weight in zip(self._parameters, weights.values(), strict=True):
                parameter.copy_(weight)

    @property
    def _sizes(self) -> dict[str, int]:
        return {name: prod(shape) for name, shape in self._shapes.items()}

    def state(self) -> dict[str, Any]:
        """Return all that the next steps depend on, in host memory; weights in float32 whatever the precision."""
        kept = self._backend.to_host({"weights": dict(self._weights), "optimizer": self._optimizer.state()})
        weights = optimizers.unpack(kept["weights"], self._sizes)
        return {**kept, "weights": {name: weight.clone().float() for name, weight in weights.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state`` returned."""
        self.restore_weights(state["weights"])
        self._optimizer.restore(state["optimizer"])
        self._backend.execute()

    def restore_weights(self, weights: Mapping[str, Any]) -> None:
        """Take over weights by their names.

        Raises:
            ValueError: They are those of another model.
        """
        shapes, given = self._shapes, {name: tuple(weight.shape) for name, weight in weights.items()}
        if shapes != given:
            differing = sorted(name for name in shapes.keys() | given.keys() if shapes.get(name) != given.get(name))
            raise ValueError(f"{len(differing)} weights differ in name or shape, such as {differing[0]}")
        with torch.no_grad():
            for name, weight in optimizers.pack({name: weights[name] for name in shapes}).items():
                self._weights[name].copy_(weight)
        self._show_weights()
        self._backend.execute()
