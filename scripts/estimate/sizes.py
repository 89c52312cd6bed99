"""How large a deployment is: nodes and what is in them, addresses of its subnets, the file system."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from scripts.estimate.hardware import hardware
from ultracluster.domain import addresses
from ultracluster.domain.instance_types import addresses_per_node, interfaces_per_node
from ultracluster.domain.lustre import included_metadata_iops

if TYPE_CHECKING:
    from config.settings import Settings
    from ultracluster.domain.cluster import CapacityType, ClusterSpec, ComputeResourceSpec
    from ultracluster.domain.lustre import LustreSpec

GIB_PER_FILE_SERVER = 1200
"""Storage of FSx for Lustre to a network interface, as the settings' rules count it."""

SCRATCH_MBPS_PER_TIB = 200
"""Baseline of SCRATCH_2 (LustreGuide, "Performance characteristics of SSD and HDD storage classes")."""


@dataclass(frozen=True)
class Sizes:
    """What some nodes have together; one node is a sum of one.

    Types whose hardware is not known here count as nodes, interfaces and addresses only.
    """

    nodes: int = 0
    chips: int = 0
    neuron_cores: int = 0
    bf16_pflops: float = 0
    vcpus: int = 0
    memory_gib: float = 0
    accelerator_memory_gib: int = 0
    efa_gbps: int = 0
    nvme_tb: float = 0
    interfaces: int = 0
    addresses: int = 0

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Sizes)))

    def __mul__(self, times: int) -> Sizes:
        return Sizes(*(getattr(self, each.name) * times for each in fields(Sizes)))


@dataclass(frozen=True)
class Nodes:
    """A compute resource.

    Attributes:
        queue: Name of its queue.
        name: Its own name.
        instance_type: EC2 instance type.
        capacity_type: How the capacity is bought.
        reserved: Whether the nodes are launched into a reservation.
        min_count: Nodes that always run.
        max_count: Nodes at most.
        root_volume_gib: Root volume of each node; None: the size of the image.
        each: What one node has.
    """

    queue: str
    name: str
    instance_type: str
    capacity_type: CapacityType
    reserved: bool
    min_count: int
    max_count: int
    root_volume_gib: int | None
    each: Sizes

    @property
    def label(self) -> str:
        """Queue and compute resource."""
        return f"{self.queue}/{self.name}"


@dataclass(frozen=True)
class Fleet:
    """All compute nodes."""

    kinds: tuple[Nodes, ...]

    @property
    def at_min(self) -> Sizes:
        """What runs all the time."""
        return sum((kind.each * kind.min_count for kind in self.kinds), Sizes())

    @property
    def at_max(self) -> Sizes:
        """What runs when every compute resource is at its MaxCount."""
        return sum((kind.each * kind.max_count for kind in self.kinds), Sizes())

    def largest_job(self, instance_type: str) -> int:
        """Return how many nodes of a type one job can have: a job runs in one queue."""
        counts: dict[str, int] = {}
        for kind in self.kinds:
            if kind.instance_type == instance_type:
                counts[kind.queue] = counts.get(kind.queue, 0) + kind.max_count
        return max(counts.values(), default=0)


def fleet(spec: ClusterSpec) -> Fleet:
    """Return the compute nodes of a cluster."""
    return Fleet(
        tuple(
            Nodes(
                queue=queue.name,
                name=resource.name,
                instance_type=resource.instance_type,
                capacity_type=queue.capacity_type,
                reserved=resource.reserved,
                min_count=resource.min_count,
                max_count=resource.max_count,
                root_volume_gib=queue.root_volume_gib,
                each=_one_node(spec, resource),
            )
            for queue in spec.queues
            for resource in queue.compute_resources
        )
    )


def _one_node(spec: ClusterSpec, resource: ComputeResourceSpec) -> Sizes:
    has = hardware(resource.instance_type)
    efa, interface_type = resource.has_efa, spec.efa_interface_type
    network = {
        "interfaces": interfaces_per_node(resource.instance_type, efa=efa, interface_type=interface_type),
        "addresses": addresses_per_node(resource.instance_type, efa=efa, interface_type=interface_type),
    }
    if has is None:
        return Sizes(nodes=1, **network)
    return Sizes(
        nodes=1,
        chips=has.chips,
        neuron_cores=has.neuron_cores,
        bf16_pflops=has.bf16_pflops,
        vcpus=has.vcpus,
        memory_gib=has.memory_gib,
        accelerator_memory_gib=has.accelerator_memory_gib,
        efa_gbps=has.efa_gbps if efa else 0,
        nvme_tb=has.nvme_tb,
        **network,
    )


@dataclass(frozen=True)
class Subnet:
    """A subnet and the addresses that the deployment takes of it."""

    name: str
    cidr: str
    usable: int
    at_min: int
    at_max: int

    @property
    def left_at_max(self) -> int:
        """Addresses that are free when every compute resource is at its MaxCount."""
        return self.usable - self.at_max


@dataclass(frozen=True)
class Others:
    """What stands in one of the subnets besides compute nodes, in addresses (and interfaces, but for NAT addresses)."""

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
        return self.interfaces + max(0, self.nat_addresses - 1)

    @property
    def interfaces(self) -> int:
        """Interfaces of all; a NAT gateway has one for all of its addresses."""
        return (
            self.head_nodes
            + self.login_nodes
            + self.load_balancers
            + self.file_servers
            + self.endpoints
            + self.mount_targets
            + min(1, self.nat_addresses)
        )


def others(settings: Settings, *, public: bool) -> Others:
    """Return what the deployment puts into the public or the private subnet besides compute nodes."""
    pools = [pool for pool in settings.cluster.login_nodes if pool.public == public]
    network = settings.network
    standing = {
        "head_nodes": int(settings.cluster.head_node.public == public),
        "login_nodes": sum(pool.count for pool in pools),
        "load_balancers": len(pools),
    }
    if public:
        return Others(**standing, nat_addresses=0 if network.existing else network.nat_addresses)
    file_servers = -(-settings.storage.file_system.capacity_gib // GIB_PER_FILE_SERVER)
    return Others(
        **standing,
        file_servers=file_servers,
        endpoints=len(network.endpoint_services),
        mount_targets=int(settings.cluster.head_node.shared_storage == "efs"),
    )


def subnets(settings: Settings, nodes: Fleet) -> tuple[Subnet, Subnet]:
    """Return the public and the private subnet."""
    found = []
    for public, cidr in ((True, settings.network.public_subnet_cidr), (False, settings.network.private_subnet_cidr)):
        block = addresses.parse(cidr)
        if block is None:  # pragma: no cover: the settings' rules do not let it pass
            raise ValueError(cidr)
        standing = others(settings, public=public).addresses
        at_min, at_max = (0, 0) if public else (nodes.at_min.addresses, nodes.at_max.addresses)
        name = "public" if public else "private"
        found.append(Subnet(name, cidr, addresses.usable(block), standing + at_min, standing + at_max))
    return found[0], found[1]


@dataclass(frozen=True)
class FileSystem:
    """The file system.

    Attributes:
        deployment_type: FSx for Lustre's type.
        capacity_gib: Storage in GiB.
        throughput_mbps: Baseline in MB/s, of all file servers.
        metadata_iops: Metadata operations per second; None: the type has no such setting.
        paid_metadata_iops: Those above what comes with the capacity.
    """

    deployment_type: str
    capacity_gib: int
    throughput_mbps: float
    metadata_iops: int | None
    paid_metadata_iops: int


def file_system(spec: LustreSpec) -> FileSystem:
    """Return size and speed of a file system.

    FSx counts 1,000 GiB as its TiB: "For a 2.4-TiB file system, provisioning 50 MB/s/TiB of PerUnitStorageThroughput
    yields 120 MB/s" (API reference, CreateFileSystemLustreConfiguration).
    """
    per_tib = spec.throughput_mbps_per_tib or SCRATCH_MBPS_PER_TIB
    included = included_metadata_iops(spec.capacity_gib) if spec.deployment_type == "PERSISTENT_2" else None
    iops = spec.metadata_iops or included
    return FileSystem(
        deployment_type=spec.deployment_type,
        capacity_gib=spec.capacity_gib,
        throughput_mbps=spec.capacity_gib * per_tib / 1000,
        metadata_iops=iops,
        paid_metadata_iops=max(0, (iops or 0) - (included or 0)),
    )
