"""What a deployment costs, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pydantic import Field

from scripts.document import Document
from scripts.estimate import products
from scripts.estimate.figures import Dollars
from scripts.estimate.prices import Price
from scripts.estimate.products import HOURS_PER_MONTH, Product
from scripts.estimate.sizes import file_system, fleet, others
from ultracluster.domain import metrics

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.estimate.prices import Prices

IMAGE_GIB = 45
"""Root volume where the settings leave it to the image: that of ParallelCluster 3.16.1's own."""

ALARMS = 5
"""Alarms of the head node, besides one that is composed of them (aws-parallelcluster 3.16.1, its cluster template)."""

METRICS_OF_DETAILED_MONITORING = 7
"""Metrics of an instance that detailed monitoring makes chargeable (https://aws.amazon.com/cloudwatch/pricing/)."""


@dataclass(frozen=True)
class Part:
    """Something that costs as long as it exists.

    Attributes:
        name: What it is.
        product: What is paid for.
        at_min: Units at MinCount.
        at_max: Units at MaxCount.
        of_nodes: Whether it belongs to compute nodes, and comes and goes with them.
        prepaid: Whether it was paid at once beforehand, so that no running price applies.
        remark: What a reader must know of the price; empty for nothing.
    """

    name: str
    product: Product
    at_min: int
    at_max: int
    of_nodes: bool = False
    prepaid: bool = False
    remark: str = ""


class Units(Document):
    """How many units of a product a part has."""

    at_min_count: int
    at_max_count: int


class Amounts(Document):
    """What something costs in US dollars; None: the price is not known."""

    hour: Dollars | None
    day: Dollars | None
    month: Dollars | None

    @staticmethod
    def of(hourly: Decimal | None) -> Amounts:
        """Return the amounts of a cost per hour."""
        if hourly is None:
            return Amounts(hour=None, day=None, month=None)
        return Amounts(hour=hourly, day=hourly * 24, month=hourly * HOURS_PER_MONTH)


class PartCost(Document):
    """A part with its price.

    Attributes:
        name: What it is.
        units: How many units of its product there are.
        price: Per unit; None: not known, or paid beforehand.
        at_min_count: What it costs at MinCount.
        at_max_count: What it costs at MaxCount.
        remark: What a reader must know of the price; empty for nothing.
        part: What it is the cost of.
    """

    name: str
    units: Units
    price: Price | None
    at_min_count: Amounts
    at_max_count: Amounts
    remark: str
    part: Part = Field(exclude=True)


class UsePrice(Document):
    """The price of what is paid by use, in amounts that the settings do not determine."""

    name: str
    price: Price | None


class Costs(Document):
    """What a deployment costs.

    Attributes:
        parts: What costs as long as it exists.
        at_min_count: Sum at MinCount, of parts whose price is known.
        at_max_count: Sum at MaxCount, likewise.
        not_in_the_sums: Names of parts whose price is not known or was paid beforehand.
        by_use: Products that are paid by the GB, with their prices.
    """

    parts: tuple[PartCost, ...]
    at_min_count: Amounts
    at_max_count: Amounts
    not_in_the_sums: tuple[str, ...]
    by_use: tuple[UsePrice, ...]

    @property
    def hourly_without_nodes(self) -> Decimal:
        """Dollars per hour of everything but compute nodes, of parts whose price is known."""
        return _sum(each.at_max_count for each in self.parts if not each.part.of_nodes)


def per_hour(price: Price) -> Decimal:
    """Return the dollars per hour of one unit."""
    return price.dollars if price.unit == "hour" else price.dollars / HOURS_PER_MONTH


def costs(settings: Settings, prices: Prices) -> Costs:
    """Return what a deployment costs."""
    priced = tuple(_cost(part, None if part.prepaid else prices.of(part.product)) for part in parts(settings))
    return Costs(
        parts=priced,
        at_min_count=Amounts.of(_sum(each.at_min_count for each in priced)),
        at_max_count=Amounts.of(_sum(each.at_max_count for each in priced)),
        not_in_the_sums=tuple(each.name for each in priced if each.at_max_count.hour is None),
        by_use=tuple(UsePrice(name=each.name, price=prices.of(each)) for each in paid_by_use(settings)),
    )


def wanted(settings: Settings) -> list[Product]:
    """Return the products whose prices an estimate needs."""
    return [*(part.product for part in parts(settings)), *paid_by_use(settings)]


def _cost(part: Part, price: Price | None) -> PartCost:
    def hourly(units: int) -> Decimal | None:
        if units == 0:
            return Decimal(0)
        return None if price is None else units * per_hour(price)

    return PartCost(
        name=part.name,
        units=Units(at_min_count=part.at_min, at_max_count=part.at_max),
        price=price,
        at_min_count=Amounts.of(hourly(part.at_min)),
        at_max_count=Amounts.of(hourly(part.at_max)),
        remark=part.remark,
        part=part,
    )


def _sum(amounts: Iterable[Amounts]) -> Decimal:
    return sum((each.hour or Decimal(0) for each in amounts), Decimal(0))


# --- what there is to pay for ---


def parts(settings: Settings) -> list[Part]:
    """Return everything that costs as long as it exists."""
    return [
        *_nodes(settings),
        *_head_and_login_nodes(settings),
        *_file_system(settings),
        *_network(settings),
        *_monitoring_of_the_cluster(settings),
        *_monitoring(settings),
    ]


def paid_by_use(settings: Settings) -> list[Product]:
    """Return what is paid by the GB, whose amounts the settings do not determine."""
    network, head_node = settings.network, settings.cluster.head_node
    return [
        *([products.NAT_DATA] if network.existing is None else []),
        products.LOG_INGESTION,
        *([products.FLOW_LOG_INGESTION] if network.existing is None and network.flow_log_retention_days else []),
        products.LOG_STORAGE,
        *([products.LUSTRE_BACKUP] if settings.storage.file_system.backup_retention_days else []),
        *([products.EBS_SNAPSHOT] if head_node.snapshots else []),
        *([products.EFS_STORAGE, products.EFS_READ, products.EFS_WRITE] if head_node.shared_storage == "efs" else []),
    ]


def _nodes(settings: Settings) -> Iterator[Part]:
    for kind in fleet(settings.cluster_spec).kinds:
        block, spot = kind.capacity_type == "CAPACITY_BLOCK", kind.capacity_type == "SPOT"
        remark = ""
        if block:
            remark = "a Capacity Block is paid when it is bought; its fee is not in the sums"
        elif spot:
            remark = "Spot: at most the on-demand price, which is shown"
        elif kind.reserved:
            remark = "a capacity reservation costs the same while it exists, used or not, at MinCount too"
        yield Part(
            name=f"{kind.label}, {kind.instance_type}",
            product=products.instance(kind.instance_type),
            at_min=kind.min_count,
            at_max=kind.max_count,
            of_nodes=True,
            prepaid=block,
            remark=remark,
        )
        gib = kind.root_volume_gib or IMAGE_GIB
        yield Part(
            name=f"{kind.label}, root volumes of {gib} GiB",
            product=products.GP3,
            at_min=kind.min_count * gib,
            at_max=kind.max_count * gib,
            of_nodes=True,
        )


def _head_and_login_nodes(settings: Settings) -> Iterator[Part]:
    head = settings.cluster.head_node
    gib = head.root_volume_gib or IMAGE_GIB
    yield _always(f"head node, {head.instance_type}", products.instance(head.instance_type), 1)
    yield _always(f"head node, root volume of {gib} GiB", products.GP3, gib)
    for pool in settings.cluster.login_nodes:
        instance = products.instance(pool.instance_type)
        yield _always(f"login nodes {pool.name}, {pool.instance_type}", instance, pool.count)
        yield _always(f"login nodes {pool.name}, root volumes of {IMAGE_GIB} GiB", products.GP3, pool.count * IMAGE_GIB)
        yield _always(f"login nodes {pool.name}, load balancer", products.LOAD_BALANCER, 1)


def _file_system(settings: Settings) -> Iterator[Part]:
    spec = settings.storage.file_system
    paid_iops = file_system(spec, nodes=0).paid_metadata_iops
    yield _always(
        f"file system, {spec.deployment_type}",
        products.lustre_storage(spec),
        spec.capacity_gib,
        remark="retained: continues to cost when its stack is destroyed" if settings.storage.retain else "",
    )
    if paid_iops:
        yield _always("file system, metadata IOPS above the default", products.LUSTRE_METADATA, paid_iops)


def _network(settings: Settings) -> Iterator[Part]:
    standing = others(settings, public=True)
    if settings.network.existing is None:
        yield _always("NAT gateway", products.NAT_GATEWAY, 1)
        if endpoints := len(settings.network.endpoint_services):
            yield _always("interface endpoints", products.INTERFACE_ENDPOINT, endpoints)
    public = standing.head_nodes + standing.login_nodes + standing.load_balancers + standing.nat_addresses
    if public:
        yield _always("public IPv4 addresses", products.PUBLIC_ADDRESS, public)


def _monitoring_of_the_cluster(settings: Settings) -> Iterator[Part]:
    monitoring = settings.cluster.monitoring
    yield _always("private DNS zone", products.HOSTED_ZONE, 1)
    if monitoring.dashboard:
        yield _always("dashboard", products.DASHBOARD, 1)
    if monitoring.alarms:
        yield _always("alarms", products.ALARM, ALARMS)
        yield _always("composite alarm", products.COMPOSITE_ALARM, 1)
    if monitoring.detailed_monitoring:
        sizes = fleet(settings.cluster_spec)
        yield Part(
            name="metrics of detailed monitoring",
            product=products.METRIC,
            at_min=(sizes.at_min.nodes + 1) * METRICS_OF_DETAILED_MONITORING,
            at_max=(sizes.at_max.nodes + 1) * METRICS_OF_DETAILED_MONITORING,
        )


def _monitoring(settings: Settings) -> Iterator[Part]:
    queues = len(settings.cluster.queues)
    alarms = 1 if settings.network.existing else 2  # of the file system and, if it is ours, the NAT gateway
    if settings.monitoring.node_metrics:
        alarms += 4 + queues  # of the head node's metrics, of nodes held idle, and of each queue
        sizes = fleet(settings.cluster_spec)
        least, most = sizes.at_min.nodes, sizes.at_max.nodes
        of_node = len(metrics.OF_COMPUTE_NODES)
        yield Part(
            name="metrics of compute nodes",
            product=products.METRIC,
            at_min=least * of_node,
            at_max=most * of_node,
            of_nodes=True,
            remark="at most; more than 10,000 cost less each, by the hour in which they are sent",
        )
        requests = "requests of compute nodes that send metrics"
        yield Part(requests, products.METRIC_REQUESTS, at_min=least, at_max=most, of_nodes=True)
        of_queues = 1 + queues * of_node + (queues + 1) * len(metrics.OF_HEAD_NODE)  # 1: of nodes held idle
        yield _always("metrics of queues and head node", products.METRIC, of_queues)
        yield _always("requests of the head node that send metrics", products.METRIC_REQUESTS, 1)
    yield _always("alarms of nodes, file system and NAT gateway", products.ALARM, alarms)
    yield _always("key of alarm notifications", products.KMS_KEY, 1)
    if settings.monitoring.dashboard:
        yield _always("dashboard of nodes, file system and NAT gateway", products.DASHBOARD, 1)


def _always(name: str, product: Product, units: int, remark: str = "") -> Part:
    return Part(name, product, at_min=units, at_max=units, remark=remark)
