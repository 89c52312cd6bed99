"""What a deployment costs, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from pydantic import Field, computed_field

from scripts.check.estimate import products
from scripts.check.estimate.prices import Price
from scripts.check.estimate.products import HOURS_PER_MONTH, Product
from scripts.check.estimate.sizes import file_system, fleet, others
from scripts.core.document import Document
from scripts.core.figures import Dollars
from ultracluster.domain import metrics
from ultracluster.domain.parallelcluster_versions import VERSIONS
from ultracluster.domain.storage import MADE_GIB

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.check.estimate.prices import Prices

ALARMS = 5
"""Alarms of the head node, besides one that is composed of them (aws-parallelcluster 3.16.1, its cluster template)."""

METRICS_OF_DETAILED_MONITORING = 7
"""Metrics of an instance that detailed monitoring makes chargeable (https://aws.amazon.com/cloudwatch/pricing/)."""

_REMARKS = {
    "CAPACITY_BLOCK": "a Capacity Block is paid when it is bought; its fee is not in the sums",
    "SPOT": "Spot: at most the on-demand price, which is shown",
}
_RESERVED = "a capacity reservation costs the same while it exists, used or not, at MinCount too"


def image_gib(settings: Settings) -> int:
    """Return the root volume where the settings leave it to the image: that of ParallelCluster's own."""
    return VERSIONS[settings.cluster.parallelcluster_version].root_volume_gib


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


class Part(Document):
    """Something that costs as long as it exists.

    Attributes:
        name: What it is.
        units: How many units of its product there are.
        price: Per unit; None: not known, or paid beforehand.
        remark: What a reader must know of the price; empty for nothing.
        product: What is paid for.
        of_nodes: Whether it belongs to compute nodes, and comes and goes with them.
        prepaid: Whether it was paid at once beforehand, so that no running price applies.
    """

    name: str
    units: Units
    price: Price | None = None
    remark: str = ""
    product: Product = Field(exclude=True)
    of_nodes: bool = Field(default=False, exclude=True)
    prepaid: bool = Field(default=False, exclude=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def at_min_count(self) -> Amounts:
        """What it costs at MinCount."""
        return self._amounts(self.units.at_min_count)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def at_max_count(self) -> Amounts:
        """What it costs at MaxCount."""
        return self._amounts(self.units.at_max_count)

    def _amounts(self, units: int) -> Amounts:
        if units and self.price is None:
            return Amounts.of(None)
        return Amounts.of(units * per_hour(self.price) if self.price else Decimal(0))


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

    parts: tuple[Part, ...]
    at_min_count: Amounts
    at_max_count: Amounts
    not_in_the_sums: tuple[str, ...]
    by_use: tuple[UsePrice, ...]

    @property
    def hourly_without_nodes(self) -> Decimal:
        """Dollars per hour of everything but compute nodes, of parts whose price is known."""
        return _sum(each.at_max_count for each in self.parts if not each.of_nodes)


def per_hour(price: Price) -> Decimal:
    """Return the dollars per hour of one unit."""
    return price.dollars if price.unit == "hour" else price.dollars / HOURS_PER_MONTH


def costs(settings: Settings, prices: Prices) -> Costs:
    """Return what a deployment costs."""
    priced = tuple(
        part if part.prepaid else part.model_copy(update={"price": prices.of(part.product)}) for part in parts(settings)
    )
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


def _sum(amounts: Iterable[Amounts]) -> Decimal:
    return sum((each.hour or Decimal(0) for each in amounts), Decimal(0))


# --- what there is to pay for ---


def parts(settings: Settings) -> list[Part]:
    """Return everything that costs as long as it exists."""
    return [
        *_nodes(settings),
        *_head_and_login_nodes(settings),
        *_volumes(settings),
        *_file_system(settings),
        *_homes(settings),
        *_accounting(settings),
        *_network(settings),
        *_monitoring_of_the_cluster(settings),
        *_monitoring(settings),
    ]


def paid_by_use(settings: Settings) -> list[Product]:
    """Return what is paid by the GB, whose amounts the settings do not determine."""
    network, head_node = settings.network, settings.cluster.head_node
    is_on_efs = head_node.shared_storage == "efs" or (settings.homes is not None and settings.homes.type == "efs")
    return [
        *([products.NAT_DATA] if network.existing is None else []),
        products.LOG_INGESTION,
        *([products.FLOW_LOG_INGESTION] if network.existing is None and network.flow_log_retention_days else []),
        products.LOG_STORAGE,
        *([products.LUSTRE_BACKUP] if settings.storage.file_system.backup_retention_days else []),
        *([products.EBS_SNAPSHOT] if head_node.snapshots else []),
        *([products.EFS_STORAGE, products.EFS_READ, products.EFS_WRITE] if is_on_efs else []),
        *_backups_of_homes(settings),
    ]


def _backups_of_homes(settings: Settings) -> Iterator[Product]:
    homes = settings.homes
    if homes is not None and homes.is_made:
        if homes.type == "efs":
            yield products.EFS_BACKUP
        elif homes.openzfs.backup_retention_days:
            yield products.OPENZFS_BACKUP


def _nodes(settings: Settings) -> Iterator[Part]:
    for kind in fleet(settings.cluster_spec).kinds:
        remark = _REMARKS.get(kind.capacity_type, _RESERVED if kind.reserved else "")
        name, product = f"{kind.label}, {kind.instance_type}", products.instance(kind.instance_type, kind.usd_per_hour)
        instance = _of_nodes(name, product, kind.min_count, kind.max_count, remark)
        yield instance.model_copy(update={"prepaid": kind.capacity_type == "CAPACITY_BLOCK"})
        gib = kind.root_volume_gib or image_gib(settings)
        name = f"{kind.label}, root volumes of {gib} GiB"
        yield _of_nodes(name, products.GP3, kind.min_count * gib, kind.max_count * gib)


def _head_and_login_nodes(settings: Settings) -> Iterator[Part]:
    head, of_image = settings.cluster.head_node, image_gib(settings)
    gib = head.root_volume_gib or of_image
    yield _always(f"head node, {head.instance_type}", products.instance(head.instance_type), 1)
    yield _always(f"head node, root volume of {gib} GiB", products.GP3, gib)
    for pool in settings.cluster.login_nodes:
        instance = products.instance(pool.instance_type)
        yield _always(f"login nodes {pool.name}, {pool.instance_type}", instance, pool.count)
        yield _always(f"login nodes {pool.name}, root volumes of {of_image} GiB", products.GP3, pool.count * of_image)
        yield _always(f"login nodes {pool.name}, load balancer", products.LOAD_BALANCER, 1)


def _volumes(settings: Settings) -> Iterator[Part]:
    """Yield the EBS volumes that are made as shared storage."""
    for each in settings.cluster.shared_storage:
        volume = each.ebs
        if volume is not None and volume.volume_id is None:
            gib = volume.size_gib or MADE_GIB
            product = products.GP3 if volume.type == "gp3" else products.ebs(volume.type)
            more = volume.iops is not None or volume.throughput_mibps is not None
            remark = "without its iops and throughput" if more else ""
            yield _always(f"shared storage {each.name}, EBS volume of {gib} GiB", product, gib, remark=remark)


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


def _homes(settings: Settings) -> Iterator[Part]:
    """Yield what OpenZFS costs as long as it exists; EFS is paid by use."""
    homes = settings.homes
    if homes is None or not homes.is_made or homes.type == "efs":
        return
    spec = homes.openzfs
    remark = "retained: continues to cost when its stack is destroyed" if homes.retain else ""
    storage = products.openzfs_storage(spec.deployment_type)
    yield _always(f"homes, OpenZFS {spec.deployment_type}", storage, spec.capacity_gib, remark)
    yield _always("homes, throughput", products.openzfs_throughput(spec.deployment_type), spec.throughput_mbps)


def _accounting(settings: Settings) -> Iterator[Part]:
    if settings.accounting is None or settings.accounting.existing is not None:
        return
    spec = settings.accounting.database
    remark = "retained: continues to cost when its stack is destroyed" if spec.retain else ""
    instance = products.database(spec.instance_class)
    yield _always(f"accounting database, {spec.instance_class}", instance, 1, remark)
    name = f"accounting database, storage of {spec.storage_gib} GiB"
    yield _always(name, products.DATABASE_STORAGE, spec.storage_gib, f"it grows by itself; {remark}".strip("; "))
    yield _always("password of the accounting database", products.SECRET, 1)


def _network(settings: Settings) -> Iterator[Part]:
    standing = others(settings, public=True)
    if settings.network.existing is None:
        yield _always("NAT gateway", products.NAT_GATEWAY, 1)
        if endpoints := len(settings.endpoint_services):
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
        least, most = ((each.nodes + 1) * METRICS_OF_DETAILED_MONITORING for each in (sizes.at_min, sizes.at_max))
        units = Units(at_min_count=least, at_max_count=most)
        yield Part(name="metrics of detailed monitoring", product=products.METRIC, units=units)


def _monitoring(settings: Settings) -> Iterator[Part]:
    queues = len(settings.cluster.queues)
    alarms = 1 if settings.network.existing else 2  # of the file system and, if it is ours, the NAT gateway
    if settings.monitoring.node_metrics:
        alarms += 4 + queues  # of the head node's metrics, of nodes held idle, and of each queue
        sizes = fleet(settings.cluster_spec)
        least, most = sizes.at_min.nodes, sizes.at_max.nodes
        of_node = len(metrics.OF_COMPUTE_NODES)
        remark = "at most; more than 10,000 cost less each, by the hour in which they are sent"
        yield _of_nodes("metrics of compute nodes", products.METRIC, least * of_node, most * of_node, remark)
        yield _of_nodes("requests of compute nodes that send metrics", products.METRIC_REQUESTS, least, most)
        # 2: of nodes held idle, and of idle nodes
        of_queues = 2 + queues * of_node + (queues + 1) * len(metrics.OF_HEAD_NODE)
        if settings.budget:
            of_queues += len(metrics.OF_BUDGET)
            is_idle_known = settings.budget.max_idle_minutes is not None and settings.cluster.slurm.idle_minutes >= 0
            alarms += 1 + (settings.budget.max_usd_per_hour is not None) + is_idle_known
        yield _always("metrics of queues and head node", products.METRIC, of_queues)
        yield _always("requests of the head node that send metrics", products.METRIC_REQUESTS, 1)
    yield _always("alarms of nodes, file system and NAT gateway", products.ALARM, alarms)
    yield _always("key of alarm notifications", products.KMS_KEY, 1)
    if settings.monitoring.dashboard:
        yield _always("dashboard of nodes, file system and NAT gateway", products.DASHBOARD, 1)


def _always(name: str, product: Product, units: int, remark: str = "") -> Part:
    return Part(name=name, product=product, units=Units(at_min_count=units, at_max_count=units), remark=remark)


def _of_nodes(name: str, product: Product, at_min: int, at_max: int, remark: str = "") -> Part:
    units = Units(at_min_count=at_min, at_max_count=at_max)
    return Part(name=name, product=product, units=units, remark=remark, of_nodes=True)
