"""Which of AWS's quotas a deployment needs, and how much of each.

Codes and defaults: Service Quotas; Amazon VPC user guide, "Amazon VPC quotas"; Amazon EC2 user guide, "Amazon EC2
service quotas"; LustreGuide, "Quotas". An account may have more, and other things in it may use some of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripts.planning.costs import IMAGE_GIB
from scripts.planning.hardware import hardware
from scripts.planning.sizes import fleet, others

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.planning.sizes import Nodes
    from ultracluster.domain.cluster import CapacityType

_STANDARD_FAMILIES = tuple("acdhimrtz")
_LUSTRE_STORAGE = {"SCRATCH_2": "L-AD2FC696", "PERSISTENT_1": "L-C8640C82", "PERSISTENT_2": "L-8F1B9C74"}


@dataclass(frozen=True)
class Quota:
    """A quota, and what a deployment needs of it at MaxCount.

    Attributes:
        service: Service code of Service Quotas.
        code: Quota code; empty where Service Quotas has none.
        name: AWS's name of it.
        unit: What is counted.
        needed: By this deployment alone.
        default: What a new account has; None: it differs, and may be 0.
    """

    service: str
    code: str
    name: str
    unit: str
    needed: int
    default: int | None

    @property
    def to_ask_for(self) -> bool:
        """Whether a new account does not have that much."""
        return self.default is None or self.needed > self.default


def quotas(settings: Settings) -> list[Quota]:
    """Return the quotas that a deployment needs something of."""
    network, storage = settings.network, settings.storage.file_system
    on_demand = _kinds(settings, "ONDEMAND")
    spot = _kinds(settings, "SPOT")
    blocks = _kinds(settings, "CAPACITY_BLOCK")
    public, private = others(settings, public=True), others(settings, public=False)
    at_max = fleet(settings.cluster_spec).at_max
    lustre = storage.deployment_type.replace("SCRATCH_2", "Scratch").replace("PERSISTENT", "Persistent")
    made = network.existing is None
    found = [
        Quota("ec2", "L-2C3B7624", "Running On-Demand Trn instances", "vCPUs", _trainium_vcpus(on_demand), None),
        Quota("ec2", "L-6B0D517C", "All Trn Spot Instance Requests", "vCPUs", _trainium_vcpus(spot), None),
        Quota("ec2", "", "Capacity Blocks, instances of all together", "instances", _nodes(blocks), 256),
        Quota(
            "ec2",
            "L-1216C47A",
            "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
            "vCPUs",
            _standard_vcpus(on_demand) + _head_and_login_vcpus(settings),
            5,
        ),
        Quota(
            "ec2",
            "L-34B43A08",
            "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
            "vCPUs",
            _standard_vcpus(spot),
            5,
        ),
        Quota(
            "vpc",
            "L-DF5E4CA3",
            "Network interfaces per Region",
            "interfaces",
            at_max.interfaces + public.interfaces + private.interfaces,
            5000,
        ),
        Quota("ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", "addresses", public.nat_addresses, 5),
        Quota("vpc", "L-5F53652F", "Elastic IP addresses per public NAT gateway", "addresses", public.nat_addresses, 2),
        Quota("vpc", "L-FE5A380F", "NAT gateways per Availability Zone", "gateways", int(made), 5),
        Quota("vpc", "L-F678F1CE", "VPCs per Region", "VPCs", int(made), 5),
        Quota(
            "fsx",
            _LUSTRE_STORAGE[storage.deployment_type],
            f"Lustre {lustre} storage capacity",
            "GiB",
            storage.capacity_gib,
            100_800,
        ),
        Quota(
            "ebs",
            "L-7A658B76",
            "Storage for General Purpose SSD (gp3) volumes, in TiB",
            "TiB",
            -(-_root_volumes_gib(settings) // 1024),
            50,
        ),
    ]
    return [quota for quota in found if quota.needed]


def _kinds(settings: Settings, capacity_type: CapacityType) -> list[Nodes]:
    return [kind for kind in fleet(settings.cluster_spec).kinds if kind.capacity_type == capacity_type]


def _nodes(kinds: list[Nodes]) -> int:
    return sum(kind.max_count for kind in kinds)


def _trainium_vcpus(kinds: list[Nodes]) -> int:
    return sum(kind.each.vcpus * kind.max_count for kind in kinds if kind.each.chips)


def _standard_vcpus(kinds: list[Nodes]) -> int:
    return sum(_vcpus_if_standard(kind.instance_type) * kind.max_count for kind in kinds)


def _head_and_login_vcpus(settings: Settings) -> int:
    cluster = settings.cluster
    logins = sum(_vcpus_if_standard(pool.instance_type) * pool.count for pool in cluster.login_nodes)
    return _vcpus_if_standard(cluster.head_node.instance_type) + logins


def _vcpus_if_standard(instance_type: str) -> int:
    found = hardware(instance_type)
    return found.vcpus if found and not found.chips and instance_type.startswith(_STANDARD_FAMILIES) else 0


def _root_volumes_gib(settings: Settings) -> int:
    cluster = settings.cluster
    return (
        sum(kind.max_count * (kind.root_volume_gib or IMAGE_GIB) for kind in fleet(settings.cluster_spec).kinds)
        + (cluster.head_node.root_volume_gib or IMAGE_GIB)
        + sum(pool.count * IMAGE_GIB for pool in cluster.login_nodes)
    )
