"""Which of AWS's quotas a deployment needs, and how much of each.

An account may have more, and other things in it may use some of it. Codes, defaults and what counts:

- EC2: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html. Capacity reservations count as
  on-demand instances, used or not (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-on-demand-instances.html).
  Capacity Blocks do not; all of an organization's together have 256 instances at most on a day
  (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html).
- VPC and Elastic IP addresses: https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html. The quota of
  network interfaces per Region holds for each Availability Zone by itself.
- FSx for Lustre: https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html. Throughput has a quota for
  Intelligent-Tiering only, none for the SSD file systems made here.
- EFS: https://docs.aws.amazon.com/general/latest/gr/elasticfilesystem.html
- FSx for OpenZFS: https://docs.aws.amazon.com/fsx/latest/OpenZFSGuide/limits.html. Some Regions have more storage.
- RDS: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/CHAP_Limits.html
- EBS: https://docs.aws.amazon.com/general/latest/gr/ebs-service.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field, computed_field
from pydantic.dataclasses import dataclass

from scripts.check.estimate.costs import image_gib
from scripts.check.estimate.hardware import hardware
from scripts.check.estimate.sizes import fleet, others
from ultracluster.domain import instance_types
from ultracluster.domain.cluster import CapacityType
from ultracluster.domain.storage import MADE_GIB

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.check.estimate.sizes import NodeSizes

LUSTRE_STORAGE = {"SCRATCH_2": "L-AD2FC696", "PERSISTENT_1": "L-C8640C82", "PERSISTENT_2": "L-8F1B9C74"}
"""Quota codes of the storage of all file systems of a deployment type, in GiB."""

LUSTRE_FILE_SYSTEMS = {"SCRATCH_2": "L-C48231E5", "PERSISTENT_1": "L-9AFA1F09", "PERSISTENT_2": "L-FD6F2F22"}
"""Quota codes of the number of file systems of a deployment type."""

_GIB_PER_TIB = 1024

TRAINIUM, TRN1, TRN2 = re.compile("trn"), re.compile("trn1"), re.compile("trn2")
STANDARD = re.compile(r"([acdhmrtz]|i[ms]?)\d")
"""What matches the beginning of the instance types that count for quotas: Standard is A, C, D, H, I, M, R, T and Z."""

_ON_DEMAND_STANDARD = "L-1216C47A"
_VCPUS: tuple[tuple[str, str, int | None, CapacityType, re.Pattern[str]], ...] = (
    (instance_types.ON_DEMAND_QUOTA, "Running On-Demand Trn instances", None, "ONDEMAND", TRAINIUM),
    (instance_types.SPOT_QUOTA, "All Trn Spot Instance Requests", None, "SPOT", TRAINIUM),
    (instance_types.TRAINIUM.block_quota, "Concurrent Trn1 Capacity Blocks per account", 0, "CAPACITY_BLOCK", TRN1),
    (instance_types.TRAINIUM2.block_quota, "Concurrent Trn2 Capacity Blocks per account", 0, "CAPACITY_BLOCK", TRN2),
    (_ON_DEMAND_STANDARD, "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5, "ONDEMAND", STANDARD),
    ("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5, "SPOT", STANDARD),
)
"""Quotas of vCPUs: code, AWS's name, what a new account has, and which nodes count."""


class Share(NamedTuple):
    """What the nodes of a compute resource take of a quota: how many there are at most, and units of each."""

    nodes: int
    each: float


@dataclass(frozen=True)
class Quota:
    """A quota, and what a deployment needs of it at MaxCount.

    Attributes:
        service: Service code of Service Quotas.
        code: Quota code; empty where Service Quotas has none.
        name: AWS's name for it.
        unit: What is counted.
        default: What a new account has; None: it differs, and may be 0.
        shares: What compute nodes need of it.
        fixed: What everything else of this deployment needs of it.
    """

    service: str
    code: str
    name: str
    unit: str
    default: int | None
    shares: tuple[Share, ...] = Field(default=(), exclude=True)
    fixed: float = Field(default=0, exclude=True)

    @property
    def amount(self) -> float:
        """What this deployment alone needs."""
        return self.fixed + sum(share.nodes * share.each for share in self.shares)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def needed(self) -> int:
        """The same in whole units, as quotas are."""
        return math.ceil(self.amount)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def to_ask_for(self) -> bool:
        """Whether a new account does not have that much."""
        return self.default is None or self.needed > self.default

    @property
    def nodes(self) -> int:
        """Compute nodes that need some of it."""
        return sum(share.nodes for share in self.shares)

    def nodes_within(self, limit: float) -> int:
        """Return how many of the compute nodes fit into a limit, beside everything else of this deployment."""
        left = limit - self.fixed
        nodes = 0
        for share in self.shares:
            fit = max(0, min(share.nodes, int(left // share.each)))
            nodes += fit
            left -= fit * share.each
        return nodes


def quotas(settings: Settings) -> list[Quota]:
    """Return the quotas that a deployment needs something of."""
    candidates = [*_of_instances(settings), *_of_network(settings), *_of_storage(settings), *_of_team(settings)]
    return [quota for quota in candidates if quota.needed]


def _of_instances(settings: Settings) -> Iterator[Quota]:
    kinds = fleet(settings.cluster_spec).kinds
    for code, name, default, capacity_type, counts in _VCPUS:
        shares = _shares(
            (kind for kind in kinds if kind.capacity_type == capacity_type and counts.match(kind.instance_type)),
            lambda kind: kind.per_node.vcpus,
        )
        fixed = _head_and_login_vcpus(settings) if code == _ON_DEMAND_STANDARD else 0
        yield Quota("ec2", code, name, "vCPUs", default, shares, fixed)
    blocks = _shares(
        (kind for kind in kinds if kind.capacity_type == "CAPACITY_BLOCK"), lambda kind: kind.per_node.nodes
    )
    yield Quota("ec2", "", "Capacity Blocks, instances of all together", "instances", 256, blocks)


def _head_and_login_vcpus(settings: Settings) -> int:
    cluster = settings.cluster
    types = [cluster.head_node.instance_type]
    types += [pool.instance_type for pool in cluster.login_nodes for _ in range(pool.count)]
    known = [hardware(each) for each in types if STANDARD.match(each)]
    return sum(each.vcpus for each in known if each)


def _of_network(settings: Settings) -> Iterator[Quota]:
    public, private = others(settings, public=True), others(settings, public=False)
    shares = _shares(fleet(settings.cluster_spec).kinds, lambda kind: kind.per_node.interfaces)
    fixed, nat_addresses = public.interfaces + private.interfaces, public.nat_addresses
    made = int(settings.network.existing is None)
    yield Quota("vpc", "L-DF5E4CA3", "Network interfaces per Region", "interfaces", 5000, shares, fixed)
    yield Quota("ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", "addresses", 5, fixed=nat_addresses)
    name = "Elastic IP addresses per public NAT gateway"
    yield Quota("vpc", "L-5F53652F", name, "addresses", 2, fixed=nat_addresses)
    yield Quota("vpc", "L-FE5A380F", "NAT gateways per Availability Zone", "gateways", 5, fixed=made)
    yield Quota("vpc", "L-F678F1CE", "VPCs per Region", "VPCs", 5, fixed=made)


def _of_storage(settings: Settings) -> Iterator[Quota]:
    storage, cluster = settings.storage.file_system, settings.cluster
    kind = storage.deployment_type
    lustre = f"Lustre {kind.replace('SCRATCH_2', 'Scratch').replace('PERSISTENT', 'Persistent')}"
    name, gib = f"{lustre} storage capacity", storage.capacity_gib
    yield Quota("fsx", LUSTRE_STORAGE[kind], name, "GiB", 100_800, fixed=gib)
    yield Quota("fsx", LUSTRE_FILE_SYSTEMS[kind], f"{lustre} file systems", "file systems", 100, fixed=1)
    of_image = image_gib(settings)
    shares = _shares(fleet(settings.cluster_spec).kinds, lambda kind: (kind.root_volume_gib or of_image) / _GIB_PER_TIB)
    logins = sum(pool.count for pool in cluster.login_nodes)
    others_gib = (cluster.head_node.root_volume_gib or of_image) + of_image * logins
    others_gib += sum(
        each.ebs.size_gib or MADE_GIB
        for each in cluster.shared_storage
        if each.ebs is not None and each.ebs.volume_id is None and each.ebs.type == "gp3"
    )
    name = "Storage for General Purpose SSD (gp3) volumes, in TiB"
    yield Quota("ebs", "L-7A658B76", name, "TiB", 50, shares, others_gib / _GIB_PER_TIB)


def _of_team(settings: Settings) -> Iterator[Quota]:
    homes, accounting = settings.homes, settings.accounting
    if homes is not None and homes.is_made:
        if homes.type == "efs":
            yield Quota("elasticfilesystem", "L-848C634D", "File systems per account", "file systems", 1000, fixed=1)
        else:
            spec = homes.openzfs
            yield Quota("fsx", "L-59D0763F", "OpenZFS file systems", "file systems", 100, fixed=1)
            yield Quota("fsx", "L-88479C21", "OpenZFS SSD storage capacity", "GiB", 65_536, fixed=spec.capacity_gib)
            name = "OpenZFS throughput capacity"
            yield Quota("fsx", "L-4EDE4065", name, "MB/s", 10_240, fixed=spec.throughput_mbps)
    if accounting is not None and accounting.existing is None:
        yield Quota("rds", "L-7B6409FD", "DB instances", "instances", 40, fixed=1)


def _shares(kinds: Iterable[NodeSizes], of_one: Callable[[NodeSizes], float]) -> tuple[Share, ...]:
    return tuple(Share(kind.max_count, of_one(kind)) for kind in kinds if of_one(kind))
