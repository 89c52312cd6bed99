"""The cost limit: what is spent is counted from above, and no rung starts that could exceed it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.rehearse.prove.ladder import RUNGS
from scripts.rehearse.prove.money import (
    MINUTES_TO_DESTROY,
    MINUTES_TO_STOP,
    Rates,
    Span,
    minutes_left,
    rate,
    refusal,
    spent,
    to_destroy,
    until,
    with_nodes,
    worst,
)
from tests.properties import QUICK

START = datetime(2026, 1, 1, tzinfo=UTC)
AMOUNTS = st.decimals(0, 1000, places=2)
MINUTES = st.integers(0, 600)


def after(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def test_what_is_spent() -> None:
    spans = [
        Span(since=START, usd_per_hour=Decimal(60), once_usd=Decimal(5)),
        Span(since=after(30), usd_per_hour=Decimal(6)),
        Span(since=after(90), usd_per_hour=Decimal(0)),
    ]
    assert spent([], after(100)) == 0
    assert spent(spans[:1], after(10)) == 15
    assert spent(spans, after(1000)) == 5 + 30 + 6
    assert spent(spans[:1], after(-10)) == 5, "a clock that was set back takes nothing off"


def test_nodes_that_nobody_stops_count_until_they_are_assumed_to_have_ended() -> None:
    spans = (
        Span(since=START, usd_per_hour=Decimal(60)),
        Span(since=after(30), usd_per_hour=Decimal(6), assumed=True),
    )
    assert [spent(spans, after(minutes)) for minutes in (20, 30, 40)] == [20, 30, 31]
    assert [rate(spans, after(minutes)) for minutes in (20, 40)] == [60, 6]
    assert rate((), START) == 0
    assert spent(with_nodes(spans), after(40)) == 40
    assert until(spans, after(20)) == spans[:1]
    assert until(spans, after(40)) == spans
    assert with_nodes(spans[:1]) == spans[:1], "what was seen stays"


@QUICK
@given(st.builds(Rates, AMOUNTS, AMOUNTS.filter(bool), AMOUNTS), AMOUNTS, AMOUNTS, MINUTES, st.floats(0, 1))
def test_a_rung_that_starts_ends_within_the_limit(
    rates: Rates, so_far: Decimal, room: Decimal, minutes: int, part: float
) -> None:
    """Whenever it ends, its nodes may take their time to stop, and everything is destroyed after it."""
    standing = rates.standing
    limit = so_far + worst(rates, minutes) + room
    assert refusal(limit, so_far, rates, minutes) == ""
    assert (refusal(limit - room - Decimal("0.01"), so_far, rates, minutes) == "") is False
    ended = minutes * part
    spans = [
        Span(since=START, usd_per_hour=rates.hourly, once_usd=so_far + rates.by_use),
        Span(since=after(ended + MINUTES_TO_STOP), usd_per_hour=standing),
    ]
    is_stopped = spent(spans, after(ended + MINUTES_TO_STOP))
    assert spent(spans, after(ended + MINUTES_TO_STOP + MINUTES_TO_DESTROY + 60)) <= limit
    left = minutes_left(limit, is_stopped, standing)
    waited = spent(spans, after(ended + MINUTES_TO_STOP + left))
    assert waited + to_destroy(standing) <= limit + Decimal("0.01"), "nobody answers, and then it is destroyed"


def test_a_refusal_says_what_limit_would_do() -> None:
    said = refusal(Decimal(100), Decimal(10), Rates(Decimal(344), Decimal(1), Decimal(11)), 180)
    assert "--max-usd 1232" in said
    assert refusal(Decimal(1232), Decimal(10), Rates(Decimal(344), Decimal(1), Decimal(11)), 180) == ""


@pytest.mark.parametrize("rung", RUNGS, ids=lambda each: each.name)
def test_every_rung_has_a_time_limit(rung: object) -> None:
    assert getattr(rung, "minutes", 0) > 0
