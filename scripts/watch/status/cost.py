"""What a deployment costs an hour, with the nodes that run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from scripts.check.estimate.costs import costs, wanted
from scripts.check.estimate.prices import Prices, kept_prices
from scripts.check.estimate.products import SOURCES, instance
from scripts.core.figures import counted
from scripts.watch.status.model import Cost

if TYPE_CHECKING:
    from config.settings import Settings


def cost_now(settings: Settings, running: Mapping[tuple[str, str], int], today: date) -> Cost:
    """Return what a deployment costs, by prices that are at hand: no API is called.

    Running compute nodes are given by queue and compute resource; `today` decides whether a kept answer of the Price
    List is too old.
    """
    now = _with_nodes(settings, running)
    prices = kept_prices(settings.region, wanted(now), today) or Prices(settings.region)
    parts = costs(now, prices).parts
    head_node = prices.of(instance(settings.cluster.head_node.instance_type))
    of_nodes, of_rest = (
        sum((each.at_min_count.hour or Decimal(0) for each in parts if each.of_nodes is of_nodes), Decimal(0))
        for of_nodes in (True, False)
    )
    return Cost(
        hourly_usd=float(of_nodes + of_rest),
        nodes_usd=float(of_nodes),
        standing_usd=float(of_rest),
        unpriced=(*(each.name for each in parts if each.at_min_count.hour is None), *_unknown(settings, running)),
        source=f"{head_node.source} of {head_node.date}" if head_node else f"table of {SOURCES['ec2'].date}",
    )


def _unknown(settings: Settings, running: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yield running nodes that the settings do not have, or no longer have."""
    known = {(queue.name, each.name) for queue in settings.cluster.queues for each in queue.compute_resources}
    for (queue, resource), count in running.items():
        if count and (queue, resource) not in known:
            yield f"{counted(count, 'nodes')} of {queue}/{resource}"


def _with_nodes(settings: Settings, running: Mapping[tuple[str, str], int]) -> Settings:
    """Return settings whose compute resources always run as many nodes as run now."""
    queues = [
        queue.model_copy(
            update={
                "compute_resources": [
                    each.model_copy(update={"min_count": running.get((queue.name, each.name), 0)})
                    for each in queue.compute_resources
                ]
            }
        )
        for queue in settings.cluster.queues
    ]
    cluster = settings.cluster.model_copy(update={"queues": queues})
    return settings.model_copy(update={"cluster": cluster})
