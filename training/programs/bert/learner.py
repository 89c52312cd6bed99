"""One optimizer step on one rank: micro-batches add up gradients, then all ranks' mean updates the weights.

Weights and gradients are kept in float32 beside a model in bf16, which AWS recommends as standard mixed precision:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/libraries/neuronx-distributed/standard_mixed_precision.html. So
hundreds of micro-batches can be added up without loss, and a small update is never rounded away.

On XLA each call of ``accumulate`` is one graph and each call of ``update`` another, the same for every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

_DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


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
    """Return the losses of the masked words and of the next sentence, means over a micro-batch, in float32."""
    labels, next_sentence = batch["labels"], batch["next_sentence_label"]
    output = model(
        input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], token_type_ids=batch["token_type_ids"]
    )
    words, sentences = output.prediction_logits.float(), output.seq_relationship_logits.float()
    return (
        cross_entropy(words.flatten(0, 1), labels.flatten(), ignore_index=IGNORED),
        cross_entropy(sentences, next_sentence),
    )


class Learner:
    """A model with its optimizer, on the device of this rank."""

    def __init__(self, model: Any, backend: Backend, *, optimizer: str, precision: str, accumulation: int) -> None:
        """Take a model in host memory and float32, which is moved and changed; accumulation is micro-batches."""
        self._backend = backend
        self._micro_batches = accumulation * backend.worker.ranks
        # Clones first: in fp32 on a CPU moving the model would leave them the same tensors.
        copies = {name: weight.detach().clone().to(backend.device) for name, weight in model.named_parameters()}
        self._model = move_model(model, backend.device, _DTYPES[precision])
        self._parameters = dict(self._model.named_parameters())
        self._weights = {name: torch.nn.Parameter(copy, requires_grad=False) for name, copy in copies.items()}
        self._gradients = {name: torch.zeros_like(weight) for name, weight in self._weights.items()}
        self._losses = torch.zeros(2, device=backend.device)
        places = torch.zeros(backend.worker.ranks)
        places[backend.worker.rank] = 1
        self._own_place = places.to(backend.device)
        self._optimizer = optimizers.create(optimizer, self._weights, capturable=backend.capturable)
        backend.execute()
        # XLA sends equal tensors once, and a graph of fewer ones is another graph, of the first step alone.
        self.restore_weights(copies)

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
        ((mlm + nsp) / self._micro_batches).backward()
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                self._gradients[name] += parameter.grad.float()
                parameter.grad = None
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
        self._backend.reduce([*self._gradients.values(), numbers])
        for name, weight in self._weights.items():
            weight.grad = self._gradients[name]
        # Neither norm_type nor foreach: torch_xla and torch_neuronx put functions of their own here, and not all take
        # what torch's takes. AWS's dp_bert_large_hf_pretrain_hdf5.py passes the same two.
        norm = torch.nn.utils.clip_grad_norm_(self._weights.values(), MAX_GRADIENT_NORM)
        optimizers.set_learning_rate(self._optimizer, sent[0])
        self._optimizer.step()
        for name, weight in self._weights.items():
            self._parameters[name].copy_(weight)
            self._gradients[name].zero_()
            weight.grad = None
        self._losses.zero_()
        result = torch.cat([norm.reshape(1), numbers])
        self._backend.execute()
        return result

    def state(self) -> dict[str, Any]:
        """Return all that the next steps depend on, in host memory."""
        return self._backend.to_host({"weights": dict(self._weights), "optimizer": optimizers.state(self._optimizer)})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state`` returned."""
        self.restore_weights(state["weights"])
        optimizers.restore(self._optimizer, state["optimizer"])
        self._backend.execute()

    def restore_weights(self, weights: Mapping[str, Any]) -> None:
        """Take over weights by their names.

        Raises:
            ValueError: They are those of another model.
        """
        shapes = {name: tuple(weight.shape) for name, weight in self._weights.items()}
        given = {name: tuple(weight.shape) for name, weight in weights.items()}
        if shapes != given:
            differing = sorted(name for name in shapes.keys() | given.keys() if shapes.get(name) != given.get(name))
            raise ValueError(f"{len(differing)} weights differ in name or shape, such as {differing[0]}")
        with torch.no_grad():
            for name, weight in self._weights.items():
                weight.copy_(weights[name])
                self._parameters[name].copy_(weights[name].to(self._parameters[name].dtype))
        self._backend.execute()
