"""Fewer points than a run has steps, such that the picture stays the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from scripts.report.runs import Point


class Sample(NamedTuple):
    """Neighbouring points as one.

    Attributes:
        x: Of the first of them.
        low: Their lowest value.
        mean: Their mean.
        high: Their highest value.
    """

    x: float
    low: float
    mean: float
    high: float


def samples(points: Sequence[Point], width: float) -> list[Sample]:
    """Return one sample for each stretch of ``width`` that has points.

    No extreme is lost: each sample holds the lowest and the highest of its points.
    """
    return [_sample(list(stretch)) for _, stretch in groupby(points, key=lambda point: int(point[0] / width))]


def _sample(points: Sequence[Point]) -> Sample:
    values = [value for _, value in points]
    return Sample(points[0][0], min(values), fmean(values), max(values))
