"""What a training step must compute, and what the hardware could compute meanwhile."""

from __future__ import annotations

# Dense BF16 of a NeuronCore v2, FLOP/s: a Trainium chip has 190e12 and two cores.
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium.html
NEURON_CORE_V2_PEAK = 95e12

_PASSES = 3  # forward once, backward twice as much
_PER_PRODUCT = 2  # a multiplication and an addition


def flops_per_sequence(*, layers: int, hidden: int, intermediate: int, sequence_length: int) -> float:
    """Return the floating-point operations that training a BERT encoder takes for one sequence.

    It counts the matrix products of the encoder's layers, forward and backward, as if nothing were computed twice: the
    count for which model FLOPs utilization (MFU) is defined in https://arxiv.org/abs/2204.02311, appendix B, with the
    terms of the layers in https://arxiv.org/abs/2104.04473, section 5.1. Embeddings and the two heads are left out. The
    MFU that AWS publishes for BERT-Large comes about in the same way (27.5 % at 3,530 sequences/s on a trn1.32xlarge:
    training_data_encoder.csv in https://github.com/aws-neuron/aws-neuron-sdk, release 2.15).
    """
    projections = 4 * hidden * hidden + 2 * hidden * intermediate
    attention = 2 * sequence_length * hidden
    return float(_PASSES * _PER_PRODUCT * layers * sequence_length * (projections + attention))
