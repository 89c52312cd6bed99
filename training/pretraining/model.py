"""The model and its losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertForPreTraining

from .feed import IGNORED
from .sizes import Sizes


def configuration(sizes: Sizes, *, dropout: float) -> Any:
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


def build(sizes: Sizes, *, dropout: float, seed: int) -> Any:
    """Return a model with weights drawn from the seed, in host memory and float32."""
    torch.manual_seed(seed)
    return BertForPreTraining(configuration(sizes, dropout=dropout)).train()


def place(model: Any, device: Any, dtype: Any) -> Any:
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
