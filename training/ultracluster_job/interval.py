"""How often a run is worth a checkpoint. Standard library alone."""

from __future__ import annotations

from math import sqrt

NODE_DAYS_BETWEEN_FAILURES = 16_384 / 8 * 54 / 419
"""264. Llama 3's training of 2024 was interrupted 419 times in 54 days, without what was planned, on 16,384 GPUs, 8 a
node (https://arxiv.org/abs/2407.21783, section 3.3.4). Nothing has been published of Trn1."""

_DAY = 86_400


def seconds_between_failures(nodes: int) -> float:
    """Return how long so many nodes compute, on average, until one of them fails."""
    return NODE_DAYS_BETWEEN_FAILURES * _DAY / nodes


def seconds_between_checkpoints(nodes: int, cost: float) -> float:
    """Return the seconds of work between checkpoints at which least time is lost, by Young and Daly.

    A checkpoint stops the work for ``cost`` seconds, and a failure loses half an interval on average. What both take is
    least where the interval is the root of twice the cost times the seconds between failures: J. W. Young, 1974,
    https://doi.org/10.1145/361147.361115; J. T. Daly, 2006, https://doi.org/10.1016/j.future.2004.11.016.
    """
    return sqrt(2 * cost * seconds_between_failures(nodes))
