"""Everything that is known of a deployment before it exists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from scripts.check.estimate import products
from scripts.check.estimate.costs import costs, wanted
from scripts.check.estimate.hardware import hardware
from scripts.check.estimate.prices import Prices, find_prices
from scripts.check.estimate.quotas import quotas
from scripts.check.estimate.sizes import (
    FleetSizes,
    NodeSizes,
    file_system,
    fleet,
    subnets,
)
from scripts.check.estimate.tables import Estimate, PriceSources
from scripts.check.estimate.training import TrainingRun, estimate_run
from scripts.check.estimate.workloads import INSTANCE_TYPE, WORKLOADS

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.check.estimate.prices import Mode


_NOT_IN_SUMS = "its nodes are not in the sums"


def wanted_products(settings: Settings) -> list[products.Product]:
    """Return the products whose prices an estimate needs, those of a training run included."""
    return [*wanted(settings), products.instance(INSTANCE_TYPE), products.GP3]


def estimate(deployment_name: str, settings: Settings, prices: Prices, run: TrainingRun | None = None) -> Estimate:
    """Return the estimate of a deployment."""
    nodes = fleet(settings.cluster_spec)
    return Estimate(
        deployment=deployment_name,
        region=settings.region,
        zone_id=settings.zone_id,
        nodes=nodes.kinds,
        at_min_count=nodes.at_min,
        at_max_count=nodes.at_max,
        subnets=subnets(settings, nodes),
        file_system=file_system(settings.storage.file_system, nodes.at_max.nodes),
        prices=PriceSources(price_list_day=prices.listed_on, remark=prices.remark),
        costs=costs(settings, prices),
        quotas=tuple(quotas(settings)),
        remarks=(*settings.warnings, *_remarks(settings, nodes, prices)),
        run=run,
    )


def estimate_deployment(
    deployment_name: str,
    settings: Settings,
    mode: Mode,
    workload: str | None,
    *,
    counts: Sequence[int],
    tokens: int | None,
) -> Estimate:
    """Return the estimate of a deployment with current prices, and of training one of `WORKLOADS` if named.

    Raises:
        UnusableError: The workload cannot be trained so, or the Price List was asked for and did not answer.
    """
    prices = find_prices(settings.region, wanted_products(settings), mode)
    run = estimate_run(settings, prices, WORKLOADS[workload], counts=counts, tokens=tokens) if workload else None
    return estimate(deployment_name, settings, prices, run)


def _remarks(settings: Settings, nodes: FleetSizes, prices: Prices) -> Iterator[str]:
    types = [settings.cluster.head_node.instance_type, *(pool.instance_type for pool in settings.cluster.login_nodes)]
    unknown = [kind.instance_type for kind in nodes.kinds if not kind.is_known]
    not_counted = "vCPUs and memory are not known, and are not in the sums and quotas"
    for instance_type in dict.fromkeys(unknown):
        yield f"{instance_type}: {not_counted}; type_facts of its compute resource can say them"
    for instance_type in dict.fromkeys(types):
        if hardware(instance_type) is None and instance_type not in unknown:
            yield f"{instance_type}: {not_counted}"
    for instance_type in dict.fromkeys(kind.instance_type for kind in nodes.kinds if _lacks_price(kind, prices)):
        if prices.listed_on is not None:
            yield f"{instance_type}: neither AWS's Price List nor the dated table has a price of it; {_NOT_IN_SUMS}"
        else:
            yield f"{instance_type}: the dated table has no price of it; {_NOT_IN_SUMS}, and --prices api asks AWS"
    if settings.network.existing is not None:
        yield "existing VPC: what else is in its subnets, and the cost of its NAT gateway, are not included"
    if any(resource.alternative_types for queue in settings.cluster.queues for resource in queue.compute_resources):
        yield "nodes are priced and counted as their instance_type; their alternative_types may cost more"
    if settings.cluster.overrides:
        yield "cluster.overrides are not evaluated"


def _lacks_price(kind: NodeSizes, prices: Prices) -> bool:
    product = products.instance(kind.instance_type, kind.usd_per_hour)
    return kind.capacity_type != "CAPACITY_BLOCK" and prices.of(product) is None
