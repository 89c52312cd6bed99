"""The sizes of a BERT model, and what follows from them without building it."""

from __future__ import annotations

from dataclasses import dataclass

_FLOAT32 = 4
_COPIES = 3  # weights and two moments, all in float32 (optimizer.py)
_PASSES = 3  # forward once, backward twice as much
_PER_PRODUCT = 2  # a multiplication and an addition


@dataclass(frozen=True)
class Sizes:
    """The sizes of a BERT model; the names are those of BertConfig in transformers.

    Attributes:
        layers: num_hidden_layers.
        hidden: hidden_size.
        heads: num_attention_heads.
        intermediate: intermediate_size.
        vocabulary: vocab_size.
        positions: max_position_embeddings.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int

    @property
    def parameters(self) -> int:
        """Weights of BertForPreTraining, the decoder's counted once, as it shares them with the word embeddings."""
        norm = 2 * self.hidden
        square = self.hidden * self.hidden + self.hidden
        embeddings = (self.vocabulary + self.positions + 2) * self.hidden + norm
        feed_forward = 2 * self.hidden * self.intermediate + self.intermediate + self.hidden
        layer = 4 * square + norm + feed_forward + norm
        heads = (square + norm + self.vocabulary) + (2 * self.hidden + 2)
        return embeddings + self.layers * layer + square + heads

    @property
    def checkpoint_bytes(self) -> int:
        """Bytes of a checkpoint: weights and the optimizer's moments."""
        return self.parameters * _FLOAT32 * _COPIES

    def flops_per_sequence(self, sequence_length: int) -> float:
        """Return the floating-point operations that training takes for one sequence.

        It counts the matrix products of the encoder's layers, forward and backward, as if nothing were computed twice:
        the count for which model FLOPs utilization (MFU) is defined in https://arxiv.org/abs/2204.02311, appendix B,
        with the terms of the layers in https://arxiv.org/abs/2104.04473, section 5.1. Embeddings and the two heads are
        left out. The MFU that AWS publishes for BERT-Large is counted in the same way (27.5 % at 3,530 sequences/s on a
        trn1.32xlarge: training_data_encoder.csv in https://github.com/aws-neuron/aws-neuron-sdk, release 2.15).
        """
        projections = 4 * self.hidden * self.hidden + 2 * self.hidden * self.intermediate
        attention = 2 * sequence_length * self.hidden
        return float(_PASSES * _PER_PRODUCT * self.layers * sequence_length * (projections + attention))
