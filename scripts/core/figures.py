"""Figures as JSON has them, without the noise of floating point, and as people read them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Annotated

from pydantic import PlainSerializer


def _rounded(value: Decimal | float) -> float:
    return round(float(value), 4)


Number = Annotated[float, PlainSerializer(_rounded, return_type=float)]
Dollars = Annotated[Decimal, PlainSerializer(_rounded, return_type=float)]
"""An amount; in JSON to a hundredth of a cent."""

NONE = "-"
_CENTS_BELOW = 1000
_SMALLEST = Decimal("0.01")
_HOURS_PER_DAY = 24
_MINUTES_PER_HOUR = 60


def usd(amount: Decimal | None) -> str:
    """Return an amount in a table of dollars, with cents, and from a thousand on without."""
    if amount is None:
        return "not known"
    if 0 < amount < _SMALLEST:
        return f"<{_SMALLEST}"
    return f"{amount:,.2f}" if amount < _CENTS_BELOW else f"{amount:,.0f}"


def dollars(amount: Decimal | float) -> str:
    """Return an amount in a sentence, to the cent below 100."""
    return f"${amount:,.2f}" if amount < 100 else f"${amount:,.0f}"  # noqa: PLR2004


def duration(length: timedelta | float) -> str:
    """Return a time span (a number: seconds) in its two largest units: ``3 d 4 h``, ``12 min 5 s``, ``8 s``."""
    seconds = max(round(length.total_seconds() if isinstance(length, timedelta) else length), 0)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    for (large, size), (small, part) in pairwise(units):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {large} {rest} {small}" if rest else f"{seconds // size} {large}"
    return f"{seconds} s"


def number(value: float) -> str:
    """Return a number with thousands apart, and without digits that mean nothing."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}".rstrip("0").rstrip(".")


def counted(value: float, unit: str) -> str:
    """Return a number with its unit, which is in the plural: ``1 address``, ``2 addresses``, ``1 GiB``."""
    if value == 1:
        unit = unit.removesuffix("es" if unit.endswith("sses") else "s")
    return f"{number(value)} {unit}"


def hours(value: float) -> str:
    """Return a time in minutes, from one hour on in hours, from two days on in days."""
    if value < 1:
        return f"{value * _MINUTES_PER_HOUR:.1f} min"
    if value < 2 * _HOURS_PER_DAY:
        return f"{value:.1f} h"
    return f"{value / _HOURS_PER_DAY:,.1f} days"
