"""What is paid for, and a dated table of its prices for when AWS's Price List cannot be asked.

A product knows how the Price List names it. The table holds for the three Regions where Trn1 is sold on demand, whose
prices are the same; elsewhere it has none. Prices of instances are in `ultracluster.domain.prices`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from ultracluster.domain import prices
from ultracluster.domain.lustre import THROUGHPUTS, LustreSpec

HOURS_PER_MONTH: Final = 730
"""Hours of a month, as in AWS's Pricing Calculator."""


@dataclass(frozen=True)
class Product:
    """Something with a price.

    Attributes:
        unit: What one price buys: ``hour``, ``month``, ``GB-month``, ``MBps-month``, ``IOPS-month`` or
            ``GB``.
        service: Service code of the Price List; empty for what is not looked up.
        usage_type: The Price List's usage type, without the Region in front.
        filters: Attributes of the product that narrow the search in the Price List.
        stated: Price that the settings say, where neither the Price List nor the table has one.
    """

    name: str
    unit: str
    service: str = ""
    usage_type: str = ""
    filters: Mapping[str, str] = field(default_factory=dict, hash=False)
    stated: Decimal | None = None


def instance(instance_type: str, stated: Decimal | None = None) -> Product:
    """Return an hour of a Linux instance, on demand, with the price that settings say of it."""
    filters = {
        "instanceType": instance_type,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "tenancy": "Shared",
        "capacitystatus": "Used",
    }
    return Product(instance_type, "hour", "AmazonEC2", f"BoxUsage:{instance_type}", filters, stated)


_LUSTRE = {"operation": "CreateFileSystem:Lustre"}


def lustre_storage(spec: LustreSpec) -> Product:
    """Return a month of one GB of the file system."""
    if spec.throughput_mbps_per_tib is None:
        return Product("FSx SCRATCH_2", "GB-month", "AmazonFSx", "Storage", _LUSTRE)
    tier = spec.throughput_mbps_per_tib
    return Product(f"FSx {spec.deployment_type} {tier}", "GB-month", "AmazonFSx", f"Storage.SSD.{tier}", _LUSTRE)


_MYSQL = {"databaseEngine": "MySQL", "deploymentOption": "Single-AZ"}


def database(instance_class: str) -> Product:
    """Return an hour of an RDS for MySQL instance in one zone."""
    return Product(instance_class, "hour", "AmazonRDS", f"InstanceUsage:{instance_class}", _MYSQL)


DATABASE_STORAGE = Product("RDS gp3", "GB-month", "AmazonRDS", "RDS:GP3-Storage", _MYSQL)
SECRET = Product("Secrets Manager secret", "month")
LUSTRE_METADATA = Product("FSx metadata", "IOPS-month", "AmazonFSx", "MetadataIOPS", _LUSTRE)
LUSTRE_BACKUP = Product("FSx backup", "GB-month", "AmazonFSx", "BackupUsage", _LUSTRE)
GP3 = Product("EBS gp3", "GB-month", "AmazonEC2", "EBS:VolumeUsage.gp3", {"volumeApiName": "gp3"})
EBS_SNAPSHOT = Product(
    "EBS snapshots", "GB-month", "AmazonEC2", "EBS:SnapshotUsage", {"productFamily": "Storage Snapshot"}
)


def ebs(volume_type: str) -> Product:
    """Return a GiB of a volume of EBS, whose price is not looked up: it depends on operations, too."""
    return Product(f"EBS {volume_type}", "GB-month")


EFS_BACKUP = Product("EFS backup", "GB-month")
_OPENZFS = {"operation": "CreateFileSystem:OpenZFS"}
OPENZFS_BACKUP = Product("FSx OpenZFS backup", "GB-month", "AmazonFSx", "BackupUsage", _OPENZFS)


def openzfs_storage(deployment_type: str) -> Product:
    """Return a month of one GB of OpenZFS on SSD; the table has no price of one with a standby server."""
    return Product(f"FSx OpenZFS {_twofold(deployment_type)}storage", "GB-month")


def openzfs_throughput(deployment_type: str) -> Product:
    """Return a month of one MB/s of OpenZFS."""
    return Product(f"FSx OpenZFS {_twofold(deployment_type)}MB/s", "MBps-month")


def _twofold(deployment_type: str) -> str:
    return "HA " if "_HA_" in deployment_type else ""


EFS_STORAGE = Product("EFS storage", "GB-month")
EFS_READ = Product("EFS reads", "GB")
EFS_WRITE = Product("EFS writes", "GB")
"""Of a file system of elastic throughput, which ParallelCluster makes for /home."""
_NAT = {"productFamily": "NAT Gateway"}
NAT_GATEWAY = Product("NAT gateway", "hour", "AmazonEC2", "NatGateway-Hours", _NAT)
NAT_DATA = Product("NAT gateway data", "GB", "AmazonEC2", "NatGateway-Bytes", _NAT)
PUBLIC_ADDRESS = Product("public IPv4 address", "hour", "AmazonVPC", "PublicIPv4:InUseAddress")
INTERFACE_ENDPOINT = Product(
    "interface endpoint", "hour", "AmazonVPC", "VpcEndpoint-Hours", {"productFamily": "VpcEndpoint"}
)
LOAD_BALANCER = Product(
    "Network Load Balancer", "hour", "AWSELB", "LoadBalancerUsage", {"productFamily": "Load Balancer-Network"}
)
LOG_INGESTION = Product("CloudWatch logs", "GB", "AmazonCloudWatch", "DataProcessing-Bytes")
FLOW_LOG_INGESTION = Product("flow logs", "GB", "AmazonCloudWatch", "VendedLog-Bytes")
LOG_STORAGE = Product("stored logs", "GB-month", "AmazonCloudWatch", "TimedStorage-ByteHrs")
METRIC = Product("CloudWatch metric", "month")
ALARM = Product("CloudWatch alarm", "month")
COMPOSITE_ALARM = Product("CloudWatch composite alarm", "month")
DASHBOARD = Product("CloudWatch dashboard", "month")
METRIC_REQUESTS = Product("CloudWatch request a minute", "hour")
"""An hour of PutMetricData once a minute: 60 requests."""
KMS_KEY = Product("KMS key", "month")
HOSTED_ZONE = Product("Route 53 hosted zone", "month")


@dataclass(frozen=True)
class Source:
    """Where a price of the table is from, and the day on which it was valid."""

    date: str
    text: str


SourceName = Literal["ec2", "fsx", "vpc", "rds", "other"]
SOURCES: Final[Mapping[SourceName, Source]] = {
    "ec2": Source(prices.DATE, prices.SOURCE),
    "fsx": Source(
        "2026-07-14",
        "AWS Price List API, AmazonFSx, us-west-2 (SCRATCH_2, PERSISTENT_1); the rest as commonly reported, to be "
        "compared with https://aws.amazon.com/fsx/lustre/pricing/ (PERSISTENT_2, metadata IOPS, backups) "
        "and https://aws.amazon.com/fsx/openzfs/pricing/ (OpenZFS)",
    ),
    "vpc": Source(
        "2026-11-21",
        "as commonly reported, to be compared with https://aws.amazon.com/vpc/pricing/ and "
        "https://aws.amazon.com/privatelink/pricing/",
    ),
    "rds": Source(
        "2026-06-30",
        "as reported by infratally.com and usage.ai, to be compared with https://aws.amazon.com/rds/mysql/pricing/ and "
        "https://aws.amazon.com/secrets-manager/pricing/",
    ),
    "other": Source(
        "2026-11-21",
        "as commonly reported, to be compared with https://aws.amazon.com/ebs/pricing/, "
        "https://aws.amazon.com/efs/pricing/, "
        "https://aws.amazon.com/elasticloadbalancing/pricing/, https://aws.amazon.com/cloudwatch/pricing/, "
        "https://aws.amazon.com/kms/pricing/ and https://aws.amazon.com/route53/pricing/",
    ),
}

_TABLE: Final[Mapping[SourceName, Mapping[str, str]]] = {
    "fsx": {
        "FSx SCRATCH_2": "0.14",
        "FSx PERSISTENT_1 50": "0.14",
        "FSx PERSISTENT_1 100": "0.19",
        "FSx PERSISTENT_1 200": "0.29",
        "FSx PERSISTENT_2 125": "0.145",
        "FSx PERSISTENT_2 250": "0.21",
        "FSx PERSISTENT_2 500": "0.34",
        "FSx PERSISTENT_2 1000": "0.6",
        LUSTRE_METADATA.name: "0.055",
        LUSTRE_BACKUP.name: "0.05",
        openzfs_storage("SINGLE_AZ_1").name: "0.09",
        openzfs_throughput("SINGLE_AZ_1").name: "0.26",
        OPENZFS_BACKUP.name: "0.05",
    },
    "vpc": {
        NAT_GATEWAY.name: "0.045",
        NAT_DATA.name: "0.045",
        PUBLIC_ADDRESS.name: "0.005",
        INTERFACE_ENDPOINT.name: "0.01",
    },
    "rds": {
        "db.t4g.micro": "0.016",
        "db.t4g.small": "0.032",
        "db.t4g.medium": "0.065",
        DATABASE_STORAGE.name: "0.115",
        SECRET.name: "0.4",
    },
    "other": {
        GP3.name: "0.08",
        EBS_SNAPSHOT.name: "0.05",
        EFS_BACKUP.name: "0.05",
        EFS_STORAGE.name: "0.3",
        EFS_READ.name: "0.03",
        EFS_WRITE.name: "0.06",
        LOAD_BALANCER.name: "0.0225",
        LOG_INGESTION.name: "0.5",
        FLOW_LOG_INGESTION.name: "0.5",
        LOG_STORAGE.name: "0.03",
        METRIC.name: "0.3",
        ALARM.name: "0.1",
        COMPOSITE_ALARM.name: "0.5",
        DASHBOARD.name: "3",
        METRIC_REQUESTS.name: "0.0006",
        KMS_KEY.name: "1",
        HOSTED_ZONE.name: "0.5",
    },
}


def table_dates() -> str:
    """Return the days of the prices of the table: the first and the last."""
    days = sorted(source.date for source in SOURCES.values())
    return f"{days[0]} to {days[-1]}"


def comparable() -> list[Product]:
    """Return what the table has a price of, and the Price List may have one of, too."""
    tiers = [(kind, tier) for kind, some in THROUGHPUTS.items() for tier in some or (None,)]
    specs = [LustreSpec.model_construct(deployment_type=kind, throughput_mbps_per_tib=tier) for kind, tier in tiers]
    named = [each for each in globals().values() if isinstance(each, Product)]
    classes = [name for name in _TABLE["rds"] if name.startswith("db.")]
    instances = [*map(instance, prices.examples()), *map(database, classes)]
    known = [*named, *map(lustre_storage, specs), *instances]
    return [each for each in known if each.service and table_price(each)]


def table_price(product: Product) -> tuple[Decimal, Source] | None:
    """Return the price of a product in dollars per unit, or None when the table has none."""
    for source, listed in _TABLE.items():
        if product.name in listed:
            return Decimal(listed[product.name]), SOURCES[source]
    in_table = prices.usd_per_hour(product.name)
    return None if in_table is None else (in_table, SOURCES["ec2"])
