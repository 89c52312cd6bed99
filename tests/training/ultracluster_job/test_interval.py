"""The interval of checkpoints by Young and Daly."""

from __future__ import annotations

import pytest

from ultracluster_job import seconds_between_checkpoints, seconds_between_failures


def lost(interval: float, nodes: int, cost: float) -> float:
    """Return the share of time that checkpoints and failures take."""
    return cost / interval + interval / 2 / seconds_between_failures(nodes)


@pytest.mark.parametrize("nodes", [1, 16, 1_875])
@pytest.mark.parametrize("cost", [0.1, 4.0, 60.0])
def test_no_other_interval_loses_less(nodes: int, cost: float) -> None:
    best = seconds_between_checkpoints(nodes, cost)
    assert all(lost(best, nodes, cost) < lost(best * other, nodes, cost) for other in (0.5, 0.9, 1.1, 2.0))


def test_failures_are_those_of_the_published_run() -> None:
    assert 54 * 86_400 / seconds_between_failures(16_384 // 8) == pytest.approx(419)
