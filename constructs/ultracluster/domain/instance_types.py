"""What the rules need to know of EC2 instance types and of the zones that offer them.

Facts: EC2 DescribeInstanceTypes and DescribeInstanceTypeOfferings as packed in moto 5.2.5; a test compares them.
Interfaces and addresses per node: aws-parallelcluster 3.16.1, templates/queues_stack.py.
"""

import re
from collections.abc import Mapping
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

_OTHER_EFA_TYPES = (
    (1, 1, "c5n", "9xlarge 18xlarge metal"),
    (1, 1, "c6a m6a r6a", "48xlarge metal"),
    (1, 1, "c6i c6id i4i m6i m6id r6i r6id x2idn x2iedn", "32xlarge metal"),
    (1, 1, "c7a c7i c8a m7a m7i m8a r7a r7i r8a", "48xlarge metal-48xl"),
    (1, 1, "c8i c8id m8i m8id r8i r8id", "48xlarge 96xlarge metal-48xl metal-96xl"),
    (1, 1, "c6gn i4g im4gn", "16xlarge"),
    (1, 1, "c7g c7gd c7gn m7g m7gd r7g r7gd", "16xlarge metal"),
    (1, 1, "c8g c8gd m8g m8gd r8g r8gd x8g", "24xlarge 48xlarge metal-24xl metal-48xl"),
    (1, 1, "c8gb c8gn m8gb m8gn r8gb r8gn", "16xlarge 24xlarge metal-24xl"),
    (1, 1, "c8ib c8in m8ib m8idb m8idn m8in r8ib r8idb r8idn r8in", "48xlarge metal-48xl"),
    (1, 1, "c9g c9gd i8g m9g m9gd r9g r9gd", "48xlarge metal-48xl"),
    (1, 1, "dl2q inf1 p3dn vt1", "24xlarge"),
    (1, 1, "f2 hpc6a", "48xlarge"),
    (1, 1, "g4dn", "8xlarge 12xlarge 16xlarge metal"),
    (1, 1, "g5 g6", "8xlarge 12xlarge 16xlarge 24xlarge 48xlarge"),
    (1, 1, "g6e", "8xlarge 12xlarge 16xlarge"),
    (1, 1, "g7", "8xlarge 12xlarge 24xlarge"),
    (1, 1, "g7e", "8xlarge 12xlarge"),
    (1, 1, "gr6", "8xlarge"),
    (1, 1, "hpc7g", "4xlarge 8xlarge 16xlarge"),
    (1, 1, "i3en", "12xlarge 24xlarge metal"),
    (1, 1, "i7i", "24xlarge 48xlarge metal-48xl"),
    (1, 1, "m5dn m5n r5dn r5n", "24xlarge metal"),
    (1, 1, "m5zn x2iezn", "12xlarge metal"),
    (1, 1, "m8azn x8aedz", "24xlarge metal-24xl"),
    (1, 1, "p5", "4xlarge"),
    (1, 1, "r7iz", "32xlarge metal-32xl"),
    (1, 1, "u7i-12tb", "224xlarge"),
    (1, 1, "u7i-6tb u7i-8tb", "112xlarge"),
    (1, 1, "x8i", "48xlarge 64xlarge 96xlarge metal-48xl metal-96xl"),
    (2, 1, "i7ie i8ge", "48xlarge metal-48xl"),
    (2, 2, "c6in m6idn m6in r6idn r6in", "32xlarge metal"),
    (2, 2, "c8gb c8gn m8gb m8gn r8gb r8gn", "48xlarge metal-48xl"),
    (2, 2, "c8ib c8in m8ib m8idb m8idn m8in r8ib r8idb r8idn r8in", "96xlarge metal-96xl"),
    (2, 2, "g6e g7e", "24xlarge"),
    (2, 2, "g7", "48xlarge"),
    (2, 2, "hpc6id", "32xlarge"),
    (2, 2, "hpc7a", "12xlarge 24xlarge 48xlarge 96xlarge"),
    (2, 2, "hpc8a", "96xlarge"),
    (2, 2, "u7in-16tb u7in-24tb u7in-32tb", "224xlarge"),
    (4, 4, "g6e g7e", "48xlarge"),
    (4, 4, "p4d p4de", "24xlarge"),
    (8, 8, "p6-b200", "48xlarge"),
    (16, 16, "p5en", "48xlarge"),
    (17, 16, "p6-b300", "48xlarge"),
    (32, 32, "p5 p5e", "48xlarge"),
)
"""Network cards, EFA devices, families and sizes of the types outside the Trn family that have EFA."""

NETWORK_CARDS: Mapping[str, tuple[int, int]] = {
    **{name: (kind.network_cards, kind.network_cards if kind.efa else 0) for name, kind in TRAINIUM_TYPES.items()},
    **{
        f"{family}.{size}": (cards, efa_devices)
        for cards, efa_devices, families, sizes in _OTHER_EFA_TYPES
        for family in families.split()
        for size in sizes.split()
    },
}
"""Network cards and EFA devices of the types that have EFA, and of all Trn types. Others have one card."""

_GIB_PER_VCPU = {"c": 2, "m": 4, "r": 8}
_SIZE_VCPUS = {"large": 2, "xlarge": 4}
BURSTABLE_GIB = {"nano": 0.5, "micro": 1, "small": 2, "medium": 4, "large": 8, "xlarge": 16, "2xlarge": 32}
_COMMON_TYPE = re.compile(r"(?:[cmr][567]i?|[cmr][56]a|[cmr]7a|[cmr][678]g|t3a?)\.(?P<size>\w+)")
_ARM_TYPE = re.compile(r"(?:a1|[a-z]+\d+g[a-z-]*)\.")


def has_efa(instance_type: str) -> bool:
    """Return whether a node of this type can have EFA."""
    return efa_devices(instance_type) > 0


def network_cards(instance_type: str) -> int:
    """Return the number of network cards."""
    return NETWORK_CARDS.get(instance_type, (1, 0))[0]


def efa_devices(instance_type: str) -> int:
    """Return the number of EFA devices."""
    return NETWORK_CARDS.get(instance_type, (1, 0))[1]


def addresses_per_node(instance_type: str, *, efa: bool, interface_type: EfaInterfaceType) -> int:
    """Return how many IPv4 addresses ParallelCluster gives a node of the subnet.

    An ``efa-only`` device takes none; every other interface, one per network card, takes one.
    """
    return 1 if efa and interface_type == "efa-only" else network_cards(instance_type)


def interfaces_per_node(instance_type: str, *, efa: bool, interface_type: EfaInterfaceType) -> int:
    """Return how many network interfaces, the unit of quota L-DF5E4CA3, ParallelCluster gives a node."""
    if efa and interface_type == "efa-only":
        return efa_devices(instance_type) + 1
    return network_cards(instance_type)


def memory_gib(instance_type: str) -> float | None:
    """Return the memory of a common type (c, m, r and t families), or None when it is not one of them."""
    match = _COMMON_TYPE.fullmatch(instance_type)
    if match is None:
        return None
    if instance_type.startswith("t"):
        return BURSTABLE_GIB.get(match["size"])
    vcpus = vcpus_of_size(match["size"])
    return None if vcpus is None else vcpus * _GIB_PER_VCPU[instance_type[0]]


def vcpus_of_size(size: str) -> int | None:
    """Return the vCPUs of a size such as 4xlarge of the c, m and r families, or None when it is no such size."""
    multiple = re.fullmatch(r"(\d+)xlarge", size)
    return 4 * int(multiple[1]) if multiple else _SIZE_VCPUS.get(size)


def is_arm(instance_type: str) -> bool:
    """Return whether the type has an Arm (Graviton) processor. All nodes of a cluster have one architecture."""
    return _ARM_TYPE.match(instance_type) is not None


def zone_id_prefix(region: str) -> str | None:
    """Return what every availability zone id of a region begins with (us-west-2: usw2), or None for an odd name."""
    area, *middle, number = region.split("-")
    if not middle or re.fullmatch("(central|north|south|east|west)+", middle[-1]) is None:
        return None
    partition = "".join(part[0] for part in middle[:-1])
    directions = re.findall("central|north|south|east|west", middle[-1])
    return f"{area}{partition}{''.join(each[0] for each in directions)}{number}"
