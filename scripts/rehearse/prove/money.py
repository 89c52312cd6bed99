"""What a walk has cost at most, what its next rung may cost, and whether the limit has room for that.

All sums are upper bounds by list prices: from its start on a rung costs as if all its nodes ran, until EC2 says that
they are gone, or, if nobody asks it any more, until the head node has ended them; what is billed by started hours, such
as a NAT gateway, is counted with an hour more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pydantic import Field

from scripts.check.estimate import products
from scripts.check.estimate.costs import paid_by_use, wanted
from scripts.check.estimate.prices import find_prices
from scripts.core.document import Document
from scripts.core.errors import UnusableError
from scripts.core.figures import Dollars, dollars, duration
from scripts.watch.status.cost import cost_now

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.rehearse.prove.ladder import Rung

MINUTES_TO_STOP: Final = 30
"""After a rung's time limit: the command that ran has ended, EC2 has terminated all nodes, and evidence is kept."""
MINUTES_TO_DESTROY: Final = 120
MINUTES_TO_ANSWER: Final = 5
"""Without so many a question is none: nobody could answer it."""
_STARTED_HOUR: Final = 60
"""Minutes: https://aws.amazon.com/vpc/pricing/ bills partial NAT gateway-hours as full ones."""
_OTHER_GB: Final = 2
"""GB of logs, backups and the like in a rung."""


@dataclass(frozen=True)
class Rates:
    """What a rung costs: dollars an hour for its nodes and for the rest, and once for what is paid by use."""

    nodes: Decimal
    standing: Decimal
    by_use: Decimal
    source: str = ""
    """Where the prices are from, and of which day."""

    @property
    def hourly(self) -> Decimal:
        """Dollars an hour of all of it."""
        return self.nodes + self.standing


class Span(Document):
    """From when on which costs are counted, until the next one."""

    since: datetime = Field(description="Its beginning.")
    usd_per_hour: Dollars = Field(description="What an hour costs at most.")
    once_usd: Dollars = Field(default=Decimal(0), description="What is counted once: what is paid by the GB.")
    assumed: bool = Field(
        default=False,
        description="Whether nobody asked EC2 then: the head node cancels all jobs, and idle nodes end.",
    )


def until(spans: Iterable[Span], now: datetime) -> tuple[Span, ...]:
    """Return spans without ends of nodes that are still to come."""
    return tuple(each for each in spans if not (each.assumed and each.since > now))


def with_nodes(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return spans without an end of nodes that was assumed last, and has not come: they still run."""
    return (*spans[:-1], *(each for each in spans[-1:] if not each.assumed))


def spent(spans: Iterable[Span], now: datetime) -> Decimal:
    """Return what has been spent at most, until now."""
    past = until(spans, now)
    total = sum((each.once_usd for each in past), Decimal(0))
    ends = [*past, Span(since=now, usd_per_hour=Decimal(0))]
    for span, after in pairwise(ends):
        total += span.usd_per_hour * _hours(max((after.since - span.since).total_seconds(), 0) / 60)
    return total


def rate(spans: Iterable[Span], now: datetime) -> Decimal:
    """Return what an hour costs at most now."""
    past = until(spans, now)
    return past[-1].usd_per_hour if past else Decimal(0)


def to_destroy(standing: Decimal) -> Decimal:
    """Return what is kept for the end: deleting everything, and hours that were started."""
    return standing * _hours(MINUTES_TO_DESTROY + _STARTED_HOUR)


def worst(rates: Rates, minutes: float) -> Decimal:
    """Return what a rung costs if it takes all its time, and everything is destroyed after it."""
    return rates.hourly * _hours(minutes + MINUTES_TO_STOP) + rates.by_use + to_destroy(rates.standing)


def minutes_left(limit: Decimal, so_far: Decimal, standing: Decimal) -> float:
    """Return how long a deployment without nodes may stand until it must be destroyed to stay within the limit."""
    return max(float((limit - so_far - to_destroy(standing)) / standing * 60), 0.0)


def rates_of(settings: Settings, rung: Rung, nodes: dict[tuple[str, str], int]) -> Rates:
    """Return what a rung costs with nodes by queue and compute resource.

    The prices are those of AWS's Price List if it answers, or did within a week, else those of the table.

    Raises:
        UnusableError: Something has no known price, so that no limit can be kept.
    """
    stated = settings.cluster.stated_prices
    prices = find_prices(
        settings.region,
        [*wanted(settings), *(products.instance(each, stated.get(each)) for each in _types(settings))],
        "auto",
    )
    cost = cost_now(settings, nodes, datetime.now(UTC).date())
    by_use = {each.name: prices.of(each) for each in paid_by_use(settings)}
    unknown = [*cost.unpriced, *(name for name, price in by_use.items() if price is None)]
    if unknown:
        raise UnusableError(f"no price is known of {', '.join(unknown)}: no limit can be kept")
    gb = {products.NAT_DATA.name: rung.gb}
    once = sum((price.dollars * gb.get(name, _OTHER_GB) for name, price in by_use.items() if price), Decimal(0))
    return Rates(_decimal(cost.nodes_usd), _decimal(cost.standing_usd), once, cost.source)


def refusal(limit: Decimal, so_far: Decimal, rates: Rates, minutes: float) -> str:
    """Return why the limit has no room for a rung; empty: it has."""
    most = worst(rates, minutes)
    if so_far + most <= limit:
        return ""
    return (
        f"it may cost {dollars(most)} with the destruction after it, {dollars(so_far)} is spent, and the limit is "
        f"{dollars(limit)}: {needed(so_far + most)}"
    )


def needed(least: Decimal) -> str:
    """Return which limit has room."""
    return f"it needs --max-usd {least.to_integral_value(rounding='ROUND_CEILING')}"


def announcement(rates: Rates, minutes: int, so_far: Decimal, limit: Decimal) -> str:
    """Return what a rung may cost, for the question before it."""
    return (
        f"At most {duration(minutes * 60)}, {dollars(rates.hourly)} an hour, and {dollars(worst(rates, minutes))} with "
        f"the destruction after it. Spent until now: {dollars(so_far)} of {dollars(limit)}, at most. By the "
        f"{rates.source}."
    )


def _types(settings: Settings) -> list[str]:
    return [each.instance_type for queue in settings.cluster.queues for each in queue.compute_resources]


def _hours(minutes: float) -> Decimal:
    return Decimal(minutes) / 60


def _decimal(value: float) -> Decimal:
    return Decimal(str(value))
