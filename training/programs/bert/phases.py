"""The two phases of BERT pre-training as AWS publishes them for trn1.32xlarge, and their learning rate.

Values: the scripts run_dp_bert_large_hf_pretrain_bf16_s128.sh, ..._s128_lamb.sh, ..._s512_phase2.sh and
..._s512_lamb_phase2.sh, and dp_bert_large_hf_pretrain_hdf5.py (warm-up of phase 1, weight decay, norm of gradients), in
https://github.com/aws-neuron/aws-neuron-samples/tree/master/torch-neuronx/training/dp_bert_hf_pretrain. The scripts
give the global batch as 32 workers x micro-batch x accumulation on one node.
"""

from __future__ import annotations

from dataclasses import dataclass

from ultracluster_job import seconds_between_checkpoints

WEIGHT_DECAY = 0.01
MAX_GRADIENT_NORM = 1.0
PUBLISHED_SPEED = {1: 3_500, 2: 530}
"""Sequences/s of one trn1.32xlarge by phase, about: BERT-Large as with bf16-stochastic, training_data_encoder.csv in
https://github.com/aws-neuron/aws-neuron-sdk/tree/master/about-neuron/benchmarks/trn1 (phase 1), and nlp_data.csv in
https://github.com/aws-neuron/aws-neuron-sdk/tree/v2.6.0/general/benchmarks/trn1 (phase 2)."""

_MOST_SECONDS = 1_800  # people, Spot and preemption interrupt small fleets, too, and it costs 0.2 %
_BYTES_A_SECOND = 1e9  # from the devices of rank 0 into host memory, for which all wait: assumed


@dataclass(frozen=True)
class Recipe:
    """How one phase is trained with one optimizer: the defaults of the options with these names."""

    sequence_length: int
    max_predictions: int
    micro_batch: int
    global_batch: int
    learning_rate: float
    warmup_steps: int
    steps: int


RECIPES = {
    (1, "adamw"): Recipe(128, 20, 16, 16_384, 4e-4, 2_000, 28_125),
    (1, "lamb"): Recipe(128, 20, 16, 65_536, 6e-3, 2_000, 7_032),
    (2, "adamw"): Recipe(512, 80, 2, 32_768, 2.8e-4, 781, 1_563),
    (2, "lamb"): Recipe(512, 80, 2, 32_768, 4e-3, 781, 1_563),
}


def best_seconds_between_checkpoints(nodes: int, checkpoint_bytes: int) -> float:
    """Return the seconds of work between checkpoints at which so many nodes lose least time."""
    return seconds_between_checkpoints(nodes, checkpoint_bytes / _BYTES_A_SECOND)


def checkpoint_interval(*, phase: int, sequences: int, nodes: int, steps: int, checkpoint_bytes: int) -> int:
    """Return the optimizer steps between checkpoints at which least time is lost, half an hour's at most.

    That is at the published speed of a node. It is more time where many nodes share a batch for one: AWS measured 44 %
    of 16 times a node's speed at 16,384 sequences a step. It is 1 at least, and at most all steps. ``sequences`` are
    those of an optimizer step, over all nodes.
    """
    seconds = min(_MOST_SECONDS, best_seconds_between_checkpoints(nodes, checkpoint_bytes))
    return max(1, min(steps, int(seconds * PUBLISHED_SPEED[phase] * nodes / sequences)))


def learning_rate(step: int, *, peak: float, warmup_steps: int, steps: int) -> float:
    """Return the learning rate of an optimizer step: up in a straight line to the peak, then down to 0 at the end.

    Both optimizers are published with this schedule, get_linear_schedule_with_warmup of transformers
    (https://huggingface.co/docs/transformers/main_classes/optimizer_schedules). The rate of its first step is 0.
    ``step`` is the number of optimizer steps that are done.
    """
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * max(0, steps - step) / max(1, steps - warmup_steps)
