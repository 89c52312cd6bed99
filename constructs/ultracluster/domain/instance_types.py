"""What the rules need to know of EC2 instance types and of the zones that offer them.

Facts: EC2 DescribeInstanceTypes and DescribeInstanceTypeOfferings as packed in moto 5.2.5; a test compares them.
Interfaces and addresses per node: aws-parallelcluster 3.16.1, templates/queues_stack.py.
"""

import re
from dataclasses import dataclass
from typing import Literal

EfaInterfaceType = Literal["efa-only", "efa"]


@dataclass(frozen=True)
class TrainiumType:
    """An instance type of the Trn family.

    Attributes:
        vcpus: Default number of vCPUs, the unit of EC2's Trn quotas.
        network_cards: Number of network cards; each has one EFA device where the type has EFA.
        efa: Whether the type has EFA.
        capacity_blocks: Whether EC2 sells Capacity Blocks of the type.
        zones: Availability zone ids that offered the type when the data was packed.
    """

    vcpus: int
    network_cards: int
    efa: bool
    capacity_blocks: bool
    zones: tuple[str, ...]


TRAINIUM_TYPES = {
    "trn1.2xlarge": TrainiumType(
        vcpus=8,
        network_cards=1,
        efa=False,
        capacity_blocks=False,
        zones=("use1-az5", "use1-az6", "use2-az3", "usw2-az1", "usw2-az4"),
    ),
    "trn1.32xlarge": TrainiumType(
        vcpus=128,
        network_cards=8,
        efa=True,
        capacity_blocks=True,
        zones=(
            "aps1-az2",
            "apse2-az1",
            "apse2-az2",
            "apse4-az1",
            "use1-az4",
            "use1-az5",
            "use1-az6",
            "use2-az3",
            "usw2-az1",
            "usw2-az4",
        ),
    ),
    "trn1n.32xlarge": TrainiumType(
        vcpus=128,
        network_cards=16,
        efa=True,
        capacity_blocks=False,
        zones=("use1-az6", "use2-az3", "usw2-az4"),
    ),
    "trn2.3xlarge": TrainiumType(
        vcpus=12,
        network_cards=1,
        efa=True,
        capacity_blocks=True,
        zones=("aps2-az1", "aps2-az2", "aps2-az3", "apse4-az3", "sae1-az1", "sae1-az2", "sae1-az3"),
    ),
    "trn2.48xlarge": TrainiumType(
        vcpus=192,
        network_cards=16,
        efa=True,
        capacity_blocks=True,
        zones=("aps2-az1", "aps2-az2", "aps2-az3", "use2-az1", "use2-az2", "use2-az3"),
    ),
    "trn2u.48xlarge": TrainiumType(
        vcpus=192,
        network_cards=16,
        efa=True,
        capacity_blocks=True,
        zones=("aps2-az1", "aps2-az2", "aps2-az3"),
    ),
}

_GIB_PER_VCPU = {"c": 2, "m": 4, "r": 8}
_SIZE_VCPUS = {"large": 2, "xlarge": 4}
_BURSTABLE_GIB = {"nano": 0.5, "micro": 1, "small": 2, "medium": 4, "large": 8, "xlarge": 16, "2xlarge": 32}
_COMMON_TYPE = re.compile(r"(?:[cmr][567]i?|[cmr][56]a|[cmr]7a|t3a?)\.(?P<size>\w+)")
_ARM_TYPE = re.compile(r"(?:a1|[a-z]+\d+g[a-z-]*)\.")


def has_efa(instance_type: str) -> bool:
    """Return whether a node of this type can have EFA; only Trn types are known to."""
    return instance_type in TRAINIUM_TYPES and TRAINIUM_TYPES[instance_type].efa


def network_cards(instance_type: str) -> int:
    """Return the number of network cards; types outside the Trn family are taken to have one."""
    return TRAINIUM_TYPES[instance_type].network_cards if instance_type in TRAINIUM_TYPES else 1


def addresses_per_node(instance_type: str, *, efa: bool, interface_type: EfaInterfaceType) -> int:
    """Return how many IPv4 addresses ParallelCluster gives a node of the subnet.

    An ``efa-only`` device takes none; every other interface, one per network card, takes one.
    """
    return 1 if efa and interface_type == "efa-only" else network_cards(instance_type)


def interfaces_per_node(instance_type: str, *, efa: bool, interface_type: EfaInterfaceType) -> int:
    """Return how many network interfaces, the unit of quota L-DF5E4CA3, ParallelCluster gives a node."""
    cards = network_cards(instance_type)
    return cards + 1 if efa and interface_type == "efa-only" else cards


def memory_gib(instance_type: str) -> float | None:
    """Return the memory of a common x86 type (c, m, r and t families), or None when it is not one of them."""
    match = _COMMON_TYPE.fullmatch(instance_type)
    if match is None:
        return None
    size = match["size"]
    if instance_type.startswith("t"):
        return _BURSTABLE_GIB.get(size)
    multiple = re.fullmatch(r"(\d+)xlarge", size)
    vcpus = 4 * int(multiple[1]) if multiple else _SIZE_VCPUS.get(size)
    return None if vcpus is None else vcpus * _GIB_PER_VCPU[instance_type[0]]


def is_arm(instance_type: str) -> bool:
    """Return whether the type has an Arm (Graviton) processor, which cannot share a cluster with Trn nodes."""
    return _ARM_TYPE.match(instance_type) is not None


def zone_id_prefix(region: str) -> str | None:
    """Return what every availability zone id of a region begins with (us-west-2: usw2), or None for an odd name."""
    area, *middle, number = region.split("-")
    if not middle or re.fullmatch("(central|north|south|east|west)+", middle[-1]) is None:
        return None
    partition = "".join(part[0] for part in middle[:-1])
    directions = re.findall("central|north|south|east|west", middle[-1])
    return f"{area}{partition}{''.join(each[0] for each in directions)}{number}"
