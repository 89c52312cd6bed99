"""What resources cost as they are now, and when they were created, by what their services say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from scripts.account import backups, databases, file_systems
from scripts.account.deployment import Deployment
from scripts.account.resource_kinds import Paid, kind_of
from scripts.check.estimate import products
from scripts.check.estimate.prices import Prices
from scripts.check.estimate.products import HOURS_PER_MONTH, Product
from scripts.check.estimate.sizes import file_system
from scripts.watch.inventory import clusters as of_clusters
from scripts.watch.inventory.model import Costs, Key, permitted
from ultracluster.domain.lustre import LustreSpec

_GB, _GIB = 10**9, 2**30
_RATES = {
    "AWS::CloudWatch::Alarm": products.ALARM,
    "AWS::CloudWatch::CompositeAlarm": products.COMPOSITE_ALARM,
    "AWS::CloudWatch::Dashboard": products.DASHBOARD,
    "AWS::EC2::EIP": products.PUBLIC_ADDRESS,
    "AWS::EC2::NatGateway": products.NAT_GATEWAY,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": products.LOAD_BALANCER,
    "AWS::KMS::Key": products.KMS_KEY,
    "AWS::Route53::HostedZone": products.HOSTED_ZONE,
    "AWS::SecretsManager::Secret": products.SECRET,
}
"""Prices of those of one rate. CloudFormation tells when they were created."""


class Facts(NamedTuple):
    """Facts of a resource."""

    monthly: Decimal | None
    """Dollars per month as it is now; None: paid by use, or the price is not known."""
    since: datetime | None = None
    """When it was created; None: its service does not tell."""


def facts(clusters: Sequence[Deployment], keys: Collection[Key], denied: list[str]) -> dict[Key, Facts]:
    """Return what resources of a deployment's clusters cost; what is not in it is free, or could not be listed."""
    prices = Prices(clusters[0].settings.region)
    known = {key: Facts(None) for key in keys if kind_of(key[0]).paid is Paid.USE}
    known |= {key: Facts(per_month(prices, _RATES[key[0]])) for key in keys if kind_of(key[0]).paid is Paid.RATE}
    kinds = {kind for kind, _ in keys}
    for kind, ask in _SIZES.items():
        if kind in kinds:
            known |= {(kind, name): each for name, each in permitted(ask(clusters, prices), denied)}
    return {key: known[key] for key in keys if key in known}


def per_month(prices: Prices, product: Product, units: Decimal = Decimal(1)) -> Decimal | None:
    """Return what so many units of a product cost in dollars per month; None: the price is not known."""
    price = prices.of(product)
    if price is None:
        return None
    return price.dollars * units * (HOURS_PER_MONTH if price.unit == "hour" else 1)


def _sum(parts: Iterable[Decimal | None] | None) -> Decimal | None:
    """Return the sum of what parts cost; None: a price is not known."""
    known = [None] if parts is None else list(parts)
    return None if None in known else sum(filter(None, known), Decimal(0))


def costs(deployment: Deployment, keys: Collection[Key]) -> Costs:
    """Return what resources cost, of any cluster; where a permission is missing, it is not known."""
    unknown = {key: None for key in keys if kind_of(key[0]).paid is Paid.SIZE}
    return unknown | {key: each.monthly for key, each in facts(of_clusters.known(deployment, []), keys, []).items()}


def _instances(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    """Yield instances, with the public addresses that EC2 has given them: those are no resources."""
    for each in clusters:
        for node in each.nodes():
            parts: list[Decimal | None] = []
            if node["State"]["Name"] in ("pending", "running"):
                owners = [each.get("Association", {}).get("IpOwnerId") for each in node.get("NetworkInterfaces", ())]
                given = Decimal(owners.count("amazon"))
                parts = [
                    per_month(prices, products.instance(node["InstanceType"])),
                    per_month(prices, products.PUBLIC_ADDRESS, given) if given else Decimal(0),
                ]
            yield node["InstanceId"], Facts(_sum(parts), node["LaunchTime"])


def _volumes(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    for each in clusters[0].account.list("ec2", "describe_volumes"):
        monthly = per_month(prices, products.GP3, Decimal(each["Size"])) if each["VolumeType"] == "gp3" else None
        yield each["VolumeId"], Facts(monthly, each["CreateTime"])


def _snapshots(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    """Yield snapshots: the last one of a volume with what it costs at most, for it shares its blocks with older ones.

    The others are paid by what has changed.
    """
    for each in backups.of_head_nodes(clusters[0]):
        is_last = each.final_of == clusters[0].settings.name
        monthly = per_month(prices, products.EBS_SNAPSHOT, Decimal(each.bytes) / _GIB) if is_last else None
        yield each.id, Facts(monthly, each.started)


def _endpoints(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    for each in clusters[0].account.list("ec2", "describe_vpc_endpoints"):
        free = each["VpcEndpointType"] == "Gateway"
        monthly = Decimal(0) if free else per_month(prices, products.INTERFACE_ENDPOINT)
        yield each["VpcEndpointId"], Facts(monthly, each.get("CreationTimestamp"))


def _file_systems(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    for each in file_systems.of_fsx(clusters[0].account):
        kind, gib = each.deployment_type, Decimal(each.capacity_gib)
        if each.type == "LUSTRE":
            spec = LustreSpec.model_construct(  # its own values, which the settings' rules may reject
                deployment_type=kind,
                throughput_mbps_per_tib=each.mbps_per_tib,
                capacity_gib=each.capacity_gib,
                metadata_iops=each.metadata_iops,
            )
            iops = Decimal(file_system(spec, nodes=0).paid_metadata_iops)
            parts = (
                per_month(prices, products.lustre_storage(spec), gib),
                per_month(prices, products.LUSTRE_METADATA, iops) if iops else Decimal(0),
            )
            yield each.id, Facts(_sum(parts), each.created)
        elif each.type == "OPENZFS":
            parts = (
                per_month(prices, products.openzfs_storage(kind), gib),
                per_month(prices, products.openzfs_throughput(kind), Decimal(each.mbps)),
            )
            yield each.id, Facts(_sum(parts), each.created)


def _elastic_file_systems(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    for each in file_systems.of_efs(clusters[0].account):
        yield each.id, Facts(per_month(prices, products.EFS_STORAGE, Decimal(each.used_bytes) / _GB), each.created)


def _databases(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    """Yield databases; what is known are prices of MySQL in one zone on gp3."""
    for each in databases.of_rds(clusters[0].account):
        parts = None
        if (each.engine, each.storage_type, each.is_multi_az) == ("mysql", "gp3", False):
            parts = (
                per_month(prices, products.database(each.instance_class)),
                per_month(prices, products.DATABASE_STORAGE, Decimal(each.storage_gib or 0)),
            )
        yield each.id, Facts(_sum(parts), each.created)


def _recovery_points(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    for each in backups.of_homes(clusters[0]):
        yield each.id, Facts(per_month(prices, products.EFS_BACKUP, Decimal(each.bytes) / _GB), each.started)


def _log_groups(clusters: Sequence[Deployment], prices: Prices) -> Iterator[tuple[str, Facts]]:
    settings = clusters[0].settings
    name, cluster = settings.name, settings.of_generation(1).cluster_spec.name  # the names of others start with it
    prefixes = (
        f"{name}-",
        f"/aws/fsx/lustre/{name}-",
        "/aws/lambda/pcluster-",
        f"/aws/lambda/{name}-",
        f"/aws/parallelcluster/{cluster}-",
        f"/ultracluster/{cluster}",
    )
    for prefix in prefixes:
        for each in clusters[0].account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix):
            monthly = per_month(prices, products.LOG_STORAGE, Decimal(each.get("storedBytes", 0)) / _GB)
            yield each["logGroupName"], Facts(monthly, datetime.fromtimestamp(each["creationTime"] / 1000, UTC))


_SIZES: dict[str, Callable[[Sequence[Deployment], Prices], Iterator[tuple[str, Facts]]]] = {
    "AWS::EC2::Instance": _instances,
    "AWS::EC2::VPCEndpoint": _endpoints,
    "AWS::EC2::Snapshot": _snapshots,
    "AWS::EC2::Volume": _volumes,
    "AWS::Backup::RecoveryPoint": _recovery_points,
    "AWS::EFS::FileSystem": _elastic_file_systems,
    "AWS::FSx::FileSystem": _file_systems,
    "AWS::RDS::DBInstance": _databases,
    "AWS::Logs::LogGroup": _log_groups,
}
