"""What resources cost as they are now, and when they were created, by what their services tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

from scripts.deployment import Deployment
from scripts.estimate import products
from scripts.estimate.prices import Prices
from scripts.estimate.products import HOURS_PER_MONTH, Product
from scripts.inventory import clusters as of_clusters
from scripts.inventory.model import Costs, Key, permitted
from ultracluster.domain.lustre import LustreSpec

_INSTANCE = "AWS::EC2::Instance"
_GB = 10**9
_IDS_PER_CALL = 200


@dataclass(frozen=True)
class Facts:
    """Facts of a resource.

    Attributes:
        monthly: Dollars per month as it is now; None: paid by use, or the price is not known.
        since: When it was created; None: its service does not tell.
    """

    monthly: Decimal | None
    since: datetime | None = None


_FIXED = {
    "AWS::CloudWatch::Alarm": products.ALARM,
    "AWS::CloudWatch::CompositeAlarm": products.COMPOSITE_ALARM,
    "AWS::CloudWatch::Dashboard": products.DASHBOARD,
    "AWS::EC2::EIP": products.PUBLIC_ADDRESS,
    "AWS::EC2::NatGateway": products.NAT_GATEWAY,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": products.LOAD_BALANCER,
    "AWS::KMS::Key": products.KMS_KEY,
    "AWS::Route53::HostedZone": products.HOSTED_ZONE,
}
"""Types of one price each. CloudFormation tells when they were created."""

_BY_USE = (
    "AWS::DynamoDB::Table",
    "AWS::EC2::Snapshot",
    "AWS::EFS::FileSystem",
    "AWS::Lambda::Function",
    "AWS::S3::Bucket",
    "AWS::SNS::Topic",
)


def facts(
    deployment: Deployment, clusters: Sequence[Deployment], keys: Collection[Key]
) -> Iterator[Callable[[], Iterator[tuple[Key, Facts]]]]:
    """Yield functions that ask what resources cost, each of them one service.

    Prices are of the table, without a call. Needs ec2:DescribeInstances (500 in each call), :DescribeVolumes (200) and
    :DescribeVpcEndpoints, fsx:DescribeFileSystems, logs:DescribeLogGroups (50, of the prefixes that we use).
    """
    prices = Prices(deployment.settings.region)
    ids = {kind: [name for each, name in keys if each == kind] for kind, _ in keys}
    yield partial(_without_asking, prices, keys)
    for each in clusters:
        yield partial(_instances, each, prices, ids.get(_INSTANCE, []))
    for kind, ask in _ASKED.items():
        if kind in ids:
            yield partial(ask, deployment, prices, ids[kind])


def per_month(prices: Prices, product: Product, units: Decimal = Decimal(1)) -> Decimal | None:
    """Return what so many units of a product cost in dollars per month; None: the price is not known."""
    price = prices.of(product)
    if price is None:
        return None
    return price.dollars * units * (HOURS_PER_MONTH if price.unit == "hour" else 1)


def costs(deployment: Deployment, keys: Collection[Key]) -> Costs:
    """Return what resources cost, of any cluster; where a permission is missing, it is not known.

    Needs what `facts` and `clusters.known` need.
    """
    by_key = {key: None if key[0] in _ASKED or key[0] == _INSTANCE else Decimal(0) for key in keys}
    if keys:
        for ask in facts(deployment, of_clusters.known(deployment, []), keys):
            by_key.update({key: each.monthly for key, each in permitted(ask, [])})
    return by_key


def _without_asking(prices: Prices, keys: Collection[Key]) -> Iterator[tuple[Key, Facts]]:
    for kind, name in keys:
        if kind in _FIXED:
            yield (kind, name), Facts(per_month(prices, _FIXED[kind]))
        elif kind in _BY_USE:
            yield (kind, name), Facts(None)


def _batches(ids: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(ids), _IDS_PER_CALL):
        yield ids[first : first + _IDS_PER_CALL]


def _instances(deployment: Deployment, prices: Prices, ids: list[str]) -> Iterator[tuple[Key, Facts]]:
    wanted = set(ids)
    for each in deployment.nodes():
        if each["InstanceId"] in wanted:
            runs = each["State"]["Name"] in ("pending", "running")
            monthly = per_month(prices, products.instance(each["InstanceType"])) if runs else Decimal(0)
            yield (_INSTANCE, each["InstanceId"]), Facts(monthly, each["LaunchTime"])


def _volumes(deployment: Deployment, prices: Prices, ids: list[str]) -> Iterator[tuple[Key, Facts]]:
    """Yield the volumes that exist; by a filter, so that one that was just deleted is no error."""
    for batch in _batches(ids):
        wanted = [{"Name": "volume-id", "Values": batch}]
        for each in deployment.account.list("ec2", "describe_volumes", Filters=wanted):
            gib = Decimal(each["Size"])
            monthly = per_month(prices, products.GP3, gib) if each["VolumeType"] == "gp3" else None
            yield ("AWS::EC2::Volume", each["VolumeId"]), Facts(monthly, each["CreateTime"])


def _endpoints(deployment: Deployment, prices: Prices, ids: list[str]) -> Iterator[tuple[Key, Facts]]:
    """Yield endpoints; those of the gateway type are free."""
    for each in deployment.account.list("ec2", "describe_vpc_endpoints"):
        if each["VpcEndpointId"] in ids:
            free = each["VpcEndpointType"] == "Gateway"
            monthly = Decimal(0) if free else per_month(prices, products.INTERFACE_ENDPOINT)
            yield ("AWS::EC2::VPCEndpoint", each["VpcEndpointId"]), Facts(monthly, each.get("CreationTimestamp"))


def _file_systems(deployment: Deployment, prices: Prices, ids: list[str]) -> Iterator[tuple[Key, Facts]]:
    for each in deployment.account.list("fsx", "describe_file_systems"):
        if each["FileSystemId"] in ids:
            lustre = each["LustreConfiguration"]
            spec = LustreSpec(  # its own values: they may differ from the settings
                deployment_type=lustre["DeploymentType"],
                throughput_mbps_per_tib=lustre.get("PerUnitStorageThroughput"),
            )
            monthly = per_month(prices, products.lustre_storage(spec), Decimal(each["StorageCapacity"]))
            yield ("AWS::FSx::FileSystem", each["FileSystemId"]), Facts(monthly, each.get("CreationTime"))


def _log_groups(deployment: Deployment, prices: Prices, ids: list[str]) -> Iterator[tuple[Key, Facts]]:
    name = deployment.settings.name
    cluster = deployment.settings.of_generation(1).cluster_spec.name  # the names of others start with it
    prefixes = (
        f"{name}-",
        f"/aws/fsx/lustre/{name}-",
        "/aws/lambda/pcluster-",
        f"/aws/lambda/{name}-",
        f"/aws/parallelcluster/{cluster}-",
        f"/ultracluster/{cluster}",
    )
    for prefix in prefixes:
        for each in deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix):
            if each["logGroupName"] in ids:
                stored = Decimal(each.get("storedBytes", 0)) / _GB
                since = datetime.fromtimestamp(each["creationTime"] / 1000, UTC)
                monthly = per_month(prices, products.LOG_STORAGE, stored)
                yield ("AWS::Logs::LogGroup", each["logGroupName"]), Facts(monthly, since)


_ASKED: dict[str, Callable[[Deployment, Prices, list[str]], Iterator[tuple[Key, Facts]]]] = {
    "AWS::EC2::VPCEndpoint": _endpoints,
    "AWS::EC2::Volume": _volumes,
    "AWS::FSx::FileSystem": _file_systems,
    "AWS::Logs::LogGroup": _log_groups,
}
