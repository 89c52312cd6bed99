"""Everything that is known of a deployment before it exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Literal

from scripts.check.estimate import products
from scripts.check.estimate.costs import Costs, costs, wanted
from scripts.check.estimate.hardware import hardware
from scripts.check.estimate.prices import Prices, find_prices
from scripts.check.estimate.products import HOURS_PER_MONTH, SOURCES, Source, SourceName
from scripts.check.estimate.quotas import Quota, quotas
from scripts.check.estimate.sizes import (
    FileSystemSizes,
    FleetSizes,
    NodeSizes,
    Sizes,
    Subnet,
    file_system,
    fleet,
    subnets,
)
from scripts.check.estimate.training import TrainingRun, estimate_run
from scripts.check.estimate.workloads import INSTANCE_TYPE, WORKLOADS
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.report import Block, Gap, Line, Toned

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.check.estimate.prices import Mode


class PriceSources(Document):
    """Where the prices are from.

    Attributes:
        price_list_day: The day on which the Price List API answered; None: all prices are those of the table.
        remark: Why the Price List API was not asked, or that its answer is a kept one; empty when neither.
    """

    currency: Literal["USD"] = "USD"
    hours_per_month: int = HOURS_PER_MONTH
    price_list_day: date | None
    remark: str
    table_sources: Mapping[SourceName, Source] = SOURCES


class Estimate(Result):
    """What a deployment is, needs and costs."""

    deployment: DeploymentName
    region: str
    zone_id: str
    nodes: tuple[NodeSizes, ...]
    at_min_count: Sizes
    at_max_count: Sizes
    subnets: tuple[Subnet, ...]
    file_system: FileSystemSizes
    prices: PriceSources
    costs: Costs
    quotas: tuple[Quota, ...]
    remarks: tuple[str, ...]
    run: TrainingRun | None

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        from scripts.check.estimate.tables import tables

        yield Line([Toned(f"Estimate of {self.deployment}", "strong"), f", {self.region}, {self.zone_id}"])
        for each in tables(self):
            yield Gap()
            yield each
        yield from (Line(f"Note: {remark}") for remark in self.remarks)


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
        remarks=(*settings.warnings, *_remarks(settings, nodes)),
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


def _remarks(settings: Settings, nodes: FleetSizes) -> Iterator[str]:
    types = [*(kind.instance_type for kind in nodes.kinds), settings.cluster.head_node.instance_type]
    types += [pool.instance_type for pool in settings.cluster.login_nodes]
    for instance_type in dict.fromkeys(types):
        if hardware(instance_type) is None:
            yield f"{instance_type}: vCPUs and memory are not known, and are not in the sums and quotas"
    if settings.network.existing is not None:
        yield "existing VPC: what else is in its subnets, and the cost of its NAT gateway, are not included"
    if settings.cluster.overrides:
        yield "cluster.overrides are not evaluated"
