"""What a change costs: the sums of `make estimate` before and after, by the dated table of prices."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from scripts.estimate.costs import Costs, costs, wanted
from scripts.estimate.figures import NONE, dollars
from scripts.estimate.prices import find_prices
from scripts.estimate.products import HOURS_PER_MONTH, SOURCES
from scripts.plan.markdown import Block, escaped, table

if TYPE_CHECKING:
    from config.settings import Settings


def costs_block(before: Settings | None, after: Settings | None) -> Block:
    """Return the costs per hour and month at MinCount and MaxCount as a table.

    Args:
        before: The settings as they are; None: there are none yet.
        after: The settings as they are to be; None: there are none any more.
    """
    known = [None if settings is None else _costs(settings) for settings in (before, after)]
    at_min = [None if each is None else each.at_min_count.hour for each in known]
    at_max = [None if each is None else each.at_max_count.hour for each in known]
    rows = [
        _row("an hour at MinCount", 1, *at_min),
        _row("a month at MinCount", HOURS_PER_MONTH, *at_min),
        _row("an hour at MaxCount", 1, *at_max),
        _row("a month at MaxCount", HOURS_PER_MONTH, *at_max),
    ]
    dates = sorted(source.date for source in SOURCES.values())
    notes = [
        f"On demand, by the table of prices ({dates[0]} to {dates[-1]}); a month is {HOURS_PER_MONTH} hours. What is "
        "paid by use is in no sum."
    ]
    if unpriced := sorted({name for each in known if each for name in each.not_in_the_sums}):
        notes.append(f"Not in the sums: {escaped('; '.join(unpriced))}.")
    return Block([*table(("US dollars", "before", "after", "difference"), rows), "", " ".join(notes)])


def _costs(settings: Settings) -> Costs:
    return costs(settings, find_prices(settings.region, wanted(settings), "table"))


def _row(label: str, hours: int, before: Decimal | None, after: Decimal | None) -> list[str]:
    shown = [NONE if hourly is None else dollars(hourly * hours) for hourly in (before, after)]
    return [label, *shown, _difference(((after or 0) - (before or Decimal(0))) * hours)]


def _difference(amount: Decimal) -> str:
    return "none" if amount == 0 else f"{'+' if amount > 0 else '-'}{dollars(abs(amount))}"
