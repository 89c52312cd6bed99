"""A plan: everything that is known of a deployment before it exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from scripts.estimate import products
from scripts.estimate.costs import IMAGE_GIB, Costs, costs, per_hour, wanted
from scripts.estimate.hardware import hardware
from scripts.estimate.products import HOURS_PER_MONTH, SOURCES
from scripts.estimate.quotas import Quota, quotas
from scripts.estimate.sizes import FileSystem, Fleet, Sizes, Subnet, file_system, fleet, subnets
from scripts.estimate.workloads import INSTANCE_TYPE, Estimate, Workload, WorkloadError, estimates, node_counts

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.estimate.prices import Price, Prices


@dataclass(frozen=True)
class Run:
    """A training run on several numbers of nodes.

    Attributes:
        workload: What is trained.
        sequences: Its length.
        largest_job: Nodes of the largest queue of the deployment.
        estimates: One for each number of nodes.
    """

    workload: Workload
    sequences: int
    largest_job: int
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True)
class Plan:
    """What a deployment is, needs and costs."""

    name: str
    region: str
    zone_id: str
    fleet: Fleet
    subnets: tuple[Subnet, Subnet]
    file_system: FileSystem
    prices: Prices
    costs: Costs
    quotas: list[Quota]
    remarks: tuple[str, ...]
    run: Run | None = None


def wanted_products(settings: Settings) -> list[products.Product]:
    """Return the products whose prices a plan needs, those of a run included."""
    return [*wanted(settings), products.instance(INSTANCE_TYPE), products.GP3]


def plan(settings: Settings, prices: Prices, run: Run | None = None) -> Plan:
    """Return the plan of a deployment."""
    nodes = fleet(settings.cluster_spec)
    return Plan(
        name=settings.name,
        region=settings.region,
        zone_id=settings.zone_id,
        fleet=nodes,
        subnets=subnets(settings, nodes),
        file_system=file_system(settings.storage.file_system),
        prices=prices,
        costs=costs(settings, prices),
        quotas=quotas(settings),
        remarks=(*settings.warnings, *_remarks(settings, nodes)),
        run=run,
    )


def _remarks(settings: Settings, nodes: Fleet) -> list[str]:
    found = []
    types = [*(kind.instance_type for kind in nodes.kinds), settings.cluster.head_node.instance_type]
    types += [pool.instance_type for pool in settings.cluster.login_nodes]
    for instance_type in dict.fromkeys(types):
        if hardware(instance_type) is None:
            found.append(f"{instance_type}: its vCPUs and memory are not known here, and not in the sums and quotas")
    if settings.network.existing is not None:
        found.append(
            "the VPC exists already: what else stands in its subnets, and what its NAT gateway costs, is not seen"
        )
    if settings.cluster.overrides:
        found.append("cluster.overrides are not looked at")
    return found


def plan_run(
    settings: Settings, prices: Prices, workload: Workload, *, counts: Sequence[int] = (), tokens: int | None = None
) -> Run:
    """Estimate a training run on a deployment.

    Args:
        settings: The deployment.
        prices: Prices of its Region.
        workload: What is trained.
        counts: Numbers of nodes; empty: those worth looking at.
        tokens: Tokens to train on; None: as published.

    Raises:
        WorkloadError: The deployment has no nodes of the type that was measured, or the workload cannot run as asked.
    """
    nodes = fleet(settings.cluster_spec)
    measured_on = [kind for kind in nodes.kinds if kind.instance_type == INSTANCE_TYPE]
    if not measured_on:
        raise WorkloadError(f"{workload.name} was measured on {INSTANCE_TYPE}, which this deployment does not have")
    largest = nodes.largest_job(INSTANCE_TYPE)
    sequences = workload.length(tokens)
    instance, volume = prices.of(products.instance(INSTANCE_TYPE)), prices.of(products.GP3)
    node_hourly = None
    if instance is not None and volume is not None:
        gib = measured_on[0].root_volume_gib or IMAGE_GIB
        node_hourly = per_hour(instance) + gib * per_hour(volume)
    found = estimates(
        workload,
        sorted(set(counts)) or node_counts(workload, largest),
        sequences=sequences,
        node_hourly=node_hourly,
        other_hourly=costs(settings, prices).hourly_without_nodes,
        largest=largest,
    )
    return Run(workload, sequences, largest, tuple(found))


# --- as a document for programs ---


def document(found: Plan) -> dict[str, Any]:
    """Return the plan as JSON's types; dollars are rounded to a hundredth of a cent."""
    return {
        "name": found.name,
        "region": found.region,
        "zone_id": found.zone_id,
        "nodes": [
            {
                "queue": kind.queue,
                "compute_resource": kind.name,
                "instance_type": kind.instance_type,
                "capacity_type": kind.capacity_type,
                "reserved": kind.reserved,
                "min_count": kind.min_count,
                "max_count": kind.max_count,
                "per_node": _sizes(kind.each),
            }
            for kind in found.fleet.kinds
        ],
        "at_min_count": _sizes(found.fleet.at_min),
        "at_max_count": _sizes(found.fleet.at_max),
        "subnets": [{**asdict(subnet), "left_at_max": subnet.left_at_max} for subnet in found.subnets],
        "file_system": {
            **asdict(found.file_system),
            "throughput_mbps": _number(found.file_system.throughput_mbps),
            "throughput_mbps_per_node_at_max": _number(
                found.file_system.throughput_mbps / found.fleet.at_max.nodes if found.fleet.at_max.nodes else 0
            ),
        },
        "prices": {
            "currency": "USD",
            "hours_per_month": HOURS_PER_MONTH,
            "price_list_day": found.prices.listed_on.isoformat() if found.prices.listed_on else None,
            "remark": found.prices.remark,
            "table_sources": {key: source._asdict() for key, source in SOURCES.items()},
        },
        "costs": {
            "parts": [
                {
                    "name": cost.part.name,
                    "units": {"at_min_count": cost.part.at_min, "at_max_count": cost.part.at_max},
                    "price": _price(cost.price),
                    "at_min_count": _dollars(cost.hourly_min),
                    "at_max_count": _dollars(cost.hourly_max),
                    "remark": cost.part.remark,
                }
                for cost in found.costs.standing
            ],
            "at_min_count": _dollars(found.costs.hourly_min),
            "at_max_count": _dollars(found.costs.hourly_max),
            "not_in_the_sums": found.costs.unpriced,
            "by_use": [{"name": product.name, "price": _price(price)} for product, price in found.costs.by_use],
        },
        "quotas": [
            {key: getattr(quota, key) for key in ("service", "code", "name", "unit", "needed", "default", "to_ask_for")}
            for quota in found.quotas
        ],
        "remarks": list(found.remarks),
        "run": None if found.run is None else _run(found.run),
    }


def _run(run: Run) -> dict[str, Any]:
    workload = run.workload
    return {
        "workload": workload.name,
        "instance_type": INSTANCE_TYPE,
        "sequences": run.sequences,
        "tokens": run.sequences * workload.sequence_length,
        "measurements": [asdict(row) for row in workload.rows],
        "weak_scaling_efficiency": {"ratio": _number(workload.efficiency), "of": workload.efficiency_of},
        "remark": workload.remark,
        "largest_job_nodes": run.largest_job,
        "estimates": [
            {
                "nodes": each.nodes,
                "basis": each.basis.value,
                "sequences_per_second": _number(each.sequences_per_second),
                "batch": each.batch,
                "steps": each.steps,
                "hours": _number(each.hours),
                "dollars_of_nodes": _number(each.node_dollars),
                "dollars_of_everything": _number(each.all_dollars),
                "fits": each.fits,
            }
            for each in run.estimates
        ],
    }


def _sizes(sizes: Sizes) -> dict[str, float]:
    return {key: _number(value) or 0 for key, value in asdict(sizes).items()}


def _price(price: Price | None) -> dict[str, Any] | None:
    if price is None:
        return None
    return {"dollars": float(price.dollars), "per": price.unit, "source": price.source, "date": price.date}


def _dollars(hourly: Decimal | None) -> dict[str, float | int | None]:
    hours = {"hour": 1, "day": 24, "month": HOURS_PER_MONTH}
    return {name: None if hourly is None else _number(hourly * count) for name, count in hours.items()}


def _number(value: Decimal | float | None) -> float | int | None:
    if value is None or isinstance(value, int):
        return value
    rounded = round(float(value), 4)
    return int(rounded) if rounded.is_integer() else rounded
