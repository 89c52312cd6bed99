"""What is paid for, and a dated table of its prices for when AWS's Price List cannot be asked.

A product knows how the Price List names it. The table holds for the three Regions where Trn1 is sold on demand, whose
prices are the same; elsewhere it has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from scripts.estimate.hardware import hardware
from ultracluster.domain.lustre import LustreSpec

HOURS_PER_MONTH: Final = 730
"""Hours of a month, as in AWS's Pricing Calculator."""

TABLE_REGIONS: Final = ("us-east-1", "us-east-2", "us-west-2")


@dataclass(frozen=True)
class Product:
    """Something with a price.

    Attributes:
        unit: What one price buys: ``hour``, ``month``, ``GB-month``, ``MBps-month``, ``IOPS-month`` or
            ``GB``.
        service: Service code of the Price List; empty for what is not looked up.
        usage_type: The Price List's usage type, without the Region in front.
        filters: Attributes of the product that narrow the search in the Price List.
    """

    name: str
    unit: str
    service: str = ""
    usage_type: str = ""
    filters: Mapping[str, str] = field(default_factory=dict, hash=False)


def instance(instance_type: str) -> Product:
    """Return an hour of a Linux instance, on demand."""
    filters = {
        "instanceType": instance_type,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "tenancy": "Shared",
        "capacitystatus": "Used",
    }
    return Product(instance_type, "hour", "AmazonEC2", f"BoxUsage:{instance_type}", filters)


_LUSTRE = {"operation": "CreateFileSystem:Lustre"}


def lustre_storage(spec: LustreSpec) -> Product:
    """Return a month of one GB of the file system."""
    if spec.throughput_mbps_per_tib is None:
        return Product("FSx SCRATCH_2", "GB-month", "AmazonFSx", "Storage", _LUSTRE)
    tier = spec.throughput_mbps_per_tib
    return Product(f"FSx {spec.deployment_type} {tier}", "GB-month", "AmazonFSx", f"Storage.SSD.{tier}", _LUSTRE)


LUSTRE_METADATA = Product("FSx metadata", "IOPS-month", "AmazonFSx", "MetadataIOPS", _LUSTRE)
LUSTRE_BACKUP = Product("FSx backup", "GB-month", "AmazonFSx", "BackupUsage", _LUSTRE)
GP3 = Product("EBS gp3", "GB-month", "AmazonEC2", "EBS:VolumeUsage.gp3", {"volumeApiName": "gp3"})
EBS_SNAPSHOT = Product(
    "EBS snapshots", "GB-month", "AmazonEC2", "EBS:SnapshotUsage", {"productFamily": "Storage Snapshot"}
)
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


SourceName = Literal["ec2", "fsx", "vpc", "other"]
SOURCES: Final[Mapping[SourceName, Source]] = {
    "ec2": Source(
        "2026-01-19",
        "AWS Price List API, us-east-1, as kept in github.com/aws/karpenter-provider-aws "
        "(pkg/providers/pricing/zz_generated.pricing_aws.go); us-east-2 and us-west-2 the same by "
        "github.com/skypilot-org/skypilot-catalog (catalogs/v8/aws/vms.csv)",
    ),
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
    "other": Source(
        "2026-11-21",
        "as commonly reported, to be compared with https://aws.amazon.com/ebs/pricing/, "
        "https://aws.amazon.com/efs/pricing/, "
        "https://aws.amazon.com/elasticloadbalancing/pricing/, https://aws.amazon.com/cloudwatch/pricing/, "
        "https://aws.amazon.com/kms/pricing/ and https://aws.amazon.com/route53/pricing/",
    ),
}

_TABLE: Final[Mapping[SourceName, Mapping[str, str]]] = {
    "ec2": {"trn1.2xlarge": "1.34375", "trn1.32xlarge": "21.5", "trn1n.32xlarge": "24.78"},
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
_DOLLARS_PER_VCPU = {
    **{"c5": "0.0425", "c5a": "0.0385", "c6i": "0.0425", "c6a": "0.03825", "c7i": "0.044625", "c7a": "0.05132"},
    **{"m5": "0.048", "m5a": "0.043", "m6i": "0.048", "m6a": "0.0432", "m7i": "0.0504", "m7a": "0.05796"},
    **{"r5": "0.063", "r5a": "0.0565", "r6i": "0.063", "r6a": "0.0567", "r7i": "0.06615", "r7a": "0.076075"},
}
_DOLLARS_PER_GIB = {"t3": "0.0104", "t3a": "0.0094"}
"""Hourly prices of families whose types differ in size alone, per vCPU or per GiB of memory."""


def table_price(product: Product) -> tuple[Decimal, Source] | None:
    """Return the price of a product in dollars per unit, or None when the table has none."""
    for source, prices in _TABLE.items():
        if product.name in prices:
            return Decimal(prices[product.name]), SOURCES[source]
    family = product.name.partition(".")[0]
    size = hardware(product.name)
    if size is None:
        return None
    if family in _DOLLARS_PER_VCPU:
        return Decimal(_DOLLARS_PER_VCPU[family]) * size.vcpus, SOURCES["ec2"]
    if family in _DOLLARS_PER_GIB:
        return Decimal(_DOLLARS_PER_GIB[family]) * Decimal(str(size.memory_gib)), SOURCES["ec2"]
    return None
