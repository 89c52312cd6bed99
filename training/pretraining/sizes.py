"""The sizes of a BERT model, and what follows from them without building it."""

from __future__ import annotations

from dataclasses import dataclass

_FLOAT32 = 4
_COPIES = 3  # weights and two moments, all in float32 (optimizer.py)


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
