"""How large a deployment is: nodes and what is in them, addresses of its subnets, the file system."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass
from decimal import Decimal
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from pydantic import Field, computed_field

from scripts.check.estimate.hardware import Hardware, hardware, stated
from scripts.core.document import Document
from scripts.core.figures import Number
from ultracluster.domain import addresses
from ultracluster.domain.cluster import CapacityType
from ultracluster.domain.instance_types import addresses_per_node, interfaces_per_node
from ultracluster.domain.lustre import included_metadata_iops

if TYPE_CHECKING:
    from config.settings import Settings
    from ultracluster.domain.cluster import ClusterSpec, ComputeResourceSpec
    from ultracluster.domain.lustre import LustreSpec

GIB_PER_FILE_SERVER = 1200
"""Storage of FSx for Lustre per network interface, as the settings' rules count it."""

SCRATCH_MBPS_PER_TIB = 200
"""Baseline of SCRATCH_2 (LustreGuide, "Performance characteristics of SSD and HDD storage classes")."""


class Sizes(Hardware):
    """What some nodes have together; one node is a sum of one.

    Types whose hardware is not known here count as nodes, interfaces and addresses only.
    """

    nodes: int = 0
    interfaces: int = 0
    addresses: int = 0

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(**{name: getattr(self, name) + getattr(other, name) for name in Sizes.model_fields})

    def __mul__(self, times: int) -> Sizes:
        return Sizes(**{name: getattr(self, name) * times for name in Sizes.model_fields})


class NodeSizes(Document):
    """A compute resource.

    Attributes:
        reserved: Whether the nodes are launched into a reservation.
        per_node: What one node has.
        root_volume_gib: Root volume of each node; None: the size of the image.
        is_known: Whether it is known what one node has.
        usd_per_hour: Price on demand that the settings say; None: they do not.
    """

    queue: str
    compute_resource: str
    instance_type: str
    capacity_type: CapacityType
    reserved: bool
    min_count: int
    max_count: int
    per_node: Sizes
    root_volume_gib: int | None = Field(exclude=True)
    is_known: bool = Field(exclude=True)
    usd_per_hour: Decimal | None = Field(exclude=True)

    @property
    def label(self) -> str:
        """Queue and compute resource."""
        return f"{self.queue}/{self.compute_resource}"


@dataclass(frozen=True)
class FleetSizes:
    """All compute nodes."""

    kinds: tuple[NodeSizes, ...]

    @property
    def at_min(self) -> Sizes:
        """What runs all the time."""
        return sum((kind.per_node * kind.min_count for kind in self.kinds), Sizes())

    @property
    def at_max(self) -> Sizes:
        """What runs when every compute resource is at its MaxCount."""
        return sum((kind.per_node * kind.max_count for kind in self.kinds), Sizes())

    def largest_job(self, instance_type: str) -> int:
        """Return how many nodes of a type one job can have: a job runs in one queue."""
        counts = Counter[str]()
        for kind in self.kinds:
            if kind.instance_type == instance_type:
                counts[kind.queue] += kind.max_count
        return max(counts.values(), default=0)


def fleet(spec: ClusterSpec) -> FleetSizes:
    """Return the compute nodes of a cluster."""
    return FleetSizes(
        tuple(
            NodeSizes(
                queue=queue.name,
                compute_resource=resource.name,
                instance_type=resource.instance_type,
                capacity_type=queue.capacity_type,
                reserved=resource.reserved,
                min_count=resource.min_count,
                max_count=resource.max_count,
                per_node=_one_node(spec, resource),
                root_volume_gib=queue.root_volume_gib,
                is_known=resource.type_facts is not None or hardware(resource.instance_type) is not None,
                usd_per_hour=None if resource.type_facts is None else resource.type_facts.price,
            )
            for queue in spec.queues
            for resource in queue.compute_resources
        )
    )


def _one_node(spec: ClusterSpec, resource: ComputeResourceSpec) -> Sizes:
    has = (
        hardware(resource.instance_type) if resource.type_facts is None else stated(resource.type_facts)
    ) or Hardware()
    cards, efa, interface_type = resource.cards, resource.has_efa, spec.efa_interface_type
    return Sizes(
        **dict(has) | {"efa_gbps": has.efa_gbps if efa else 0},
        nodes=1,
        interfaces=interfaces_per_node(cards, efa=efa, interface_type=interface_type),
        addresses=addresses_per_node(cards, efa=efa, interface_type=interface_type),
    )


class Subnet(Document):
    """A subnet and the addresses that the deployment takes of it."""

    name: str
    cidr: str
    usable: int
    at_min: int
    at_max: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def left_at_max(self) -> int:
        """Addresses that are free when every compute resource is at its MaxCount."""
        return self.usable - self.at_max


@dataclass(frozen=True)
class Others:
    """What is in one of the subnets besides compute nodes; each has an interface, and a NAT gateway one for all."""

    head_nodes: int
    login_nodes: int
    load_balancers: int
    file_servers: int = 0
    endpoints: int = 0
    mount_targets: int = 0
    nat_addresses: int = 0

    @property
    def addresses(self) -> int:
        """Addresses of all."""
        return sum(astuple(self))

    @property
    def interfaces(self) -> int:
        """Interfaces of all."""
        return self.addresses - max(0, self.nat_addresses - 1)


def others(settings: Settings, *, public: bool) -> Others:
    """Return what the deployment puts into the public or the private subnet besides compute nodes."""
    head_node, network = settings.cluster.head_node, settings.network
    pools = [pool for pool in settings.cluster.login_nodes if pool.public == public]
    return Others(
        head_nodes=int(head_node.public == public),
        login_nodes=sum(pool.count for pool in pools),
        load_balancers=len(pools),
        file_servers=0 if public else -(-settings.storage.file_system.capacity_gib // GIB_PER_FILE_SERVER),
        endpoints=0 if public else len(settings.endpoint_services),
        mount_targets=int(not public and head_node.shared_storage == "efs"),
        nat_addresses=network.nat_addresses if public and network.existing is None else 0,
    )


def subnets(settings: Settings, nodes: FleetSizes) -> tuple[Subnet, Subnet]:
    """Return the public and the private subnet; compute nodes are in the private one."""
    network = settings.network

    def subnet(name: str, cidr: str, at_min: int, at_max: int) -> Subnet:
        standing = others(settings, public=name == "public").addresses
        usable = addresses.usable(IPv4Network(cidr))
        return Subnet(name=name, cidr=cidr, usable=usable, at_min=standing + at_min, at_max=standing + at_max)

    return (
        subnet("public", network.public_subnet_cidr, 0, 0),
        subnet("private", network.private_subnet_cidr, nodes.at_min.addresses, nodes.at_max.addresses),
    )


class FileSystemSizes(Document):
    """The file system.

    Attributes:
        throughput_mbps: Baseline in MB/s, of all file servers.
        throughput_mbps_per_node_at_max: The same for each compute node at MaxCount; 0 without nodes.
        metadata_iops: Metadata operations per second; None: the type has no such setting.
        paid_metadata_iops: Those above what comes with the capacity.
    """

    deployment_type: str
    capacity_gib: int
    throughput_mbps: Number
    throughput_mbps_per_node_at_max: Number
    metadata_iops: int | None
    paid_metadata_iops: int


def file_system(spec: LustreSpec, nodes: int) -> FileSystemSizes:
    """Return size and speed of a file system that a number of compute nodes shares.

    FSx counts 1,000 GiB as its TiB: "For a 2.4-TiB file system, provisioning 50 MB/s/TiB of PerUnitStorageThroughput
    yields 120 MB/s" (API reference, CreateFileSystemLustreConfiguration).
    """
    throughput = spec.capacity_gib * (spec.throughput_mbps_per_tib or SCRATCH_MBPS_PER_TIB) / 1000
    included = included_metadata_iops(spec.capacity_gib) if spec.deployment_type == "PERSISTENT_2" else None
    iops = spec.metadata_iops or included
    return FileSystemSizes(
        deployment_type=spec.deployment_type,
        capacity_gib=spec.capacity_gib,
        throughput_mbps=throughput,
        throughput_mbps_per_node_at_max=throughput / nodes if nodes else 0,
        metadata_iops=iops,
        paid_metadata_iops=max(0, (iops or 0) - (included or 0)),
    )
