"""What is known of EC2 instance types and of the zones that offer them: the table of Trn types, and EFA of all others.

Facts: EC2 DescribeInstanceTypes and DescribeInstanceTypeOfferings as packed in moto 5.2.5; a test compares them.
Interfaces and addresses per node: aws-parallelcluster 3.16.1, templates/queues_stack.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

EfaInterfaceType = Literal["efa-only", "efa"]


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A generation of Trainium chips.

    Attributes:
        name: AWS's name.
        neuron_cores: Physical NeuronCores.
        listed_cores: NeuronCores as ``neuron-ls`` counts them and jobs see them.
        bf16_tflops: Dense BF16 in TFLOPS.
        memory_gib: Memory in GiB.
        block_quota: Code of the quota of vCPUs in Capacity Blocks.
        verified_sdks: Releases of the Neuron SDK with which this project's nodes, health checks and jobs are tried, in
            rehearsals with what AWS publishes of their tools.
        last_xla_sdk: Last line of releases that AWS trains with on it by PyTorch/XLA, as jobs here do.
        native_sdk: First release with AWS's native PyTorch for it. None: there is none.
    """

    name: str
    neuron_cores: int
    listed_cores: int
    bf16_tflops: int
    memory_gib: int
    block_quota: str
    verified_sdks: tuple[str, ...]
    last_xla_sdk: str
    native_sdk: str | None


TRAINIUM = Chip(
    name="Trainium",
    neuron_cores=2,
    listed_cores=2,
    bf16_tflops=190,
    memory_gib=32,
    block_quota="L-2E30FD7D",
    verified_sdks=("2.27.1", "2.28.1"),
    last_xla_sdk="2.28",
    native_sdk=None,
)
TRAINIUM2 = Chip(
    name="Trainium2",
    neuron_cores=8,
    listed_cores=4,
    bf16_tflops=667,
    memory_gib=96,
    block_quota="L-64569A79",
    verified_sdks=(),
    last_xla_sdk="2.28",
    native_sdk="2.33.0",
)
"""Neuron documentation, about-neuron/arch/neuron-hardware, pages trainium and trainium2. DescribeInstanceTypes has
512 GiB per Trainium2 chip; the documentation's 96 GiB are used. Cores as listed: two cores of Trainium2 are one
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-ls.html). Last line with
PyTorch/XLA: `ultracluster.domain.neuron.DEFAULT_SDK`. Native PyTorch: v2.33.0, page setup/pytorch/index.html, which is
for Trn2 and Trn3 alone. Quotas: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html."""


@dataclass(frozen=True, kw_only=True)
class TrainiumType:
    """An instance type of the Trn family.

    Attributes:
        chip: What its chips are.
        chips: Number of chips, which are Neuron's devices.
        vcpus: Default number of vCPUs, the unit of EC2's Trn quotas.
        memory_gib: Memory of the host in GiB.
        nvme_gb: Local NVMe storage in GB.
        network_cards: Number of network cards; each has one EFA device where the type has EFA.
        card_gbps: Bandwidth of a network card with EFA in Gbps.
        efa: Whether the type has EFA.
        spot: Whether EC2 sells it as Spot.
        capacity_blocks: Whether EC2 sells Capacity Blocks of the type.
        zones: Availability zone ids that offered the type when the data was packed.
        first_sdk: First release of the Neuron SDK that knows it.
        usd_per_hour: Price on demand, of `ultracluster.domain.prices.SOURCE`. None: it has none; ask the Price List.
    """

    chip: Chip
    chips: int
    vcpus: int
    memory_gib: int
    nvme_gb: int
    network_cards: int
    card_gbps: int
    efa: bool
    spot: bool
    capacity_blocks: bool
    zones: tuple[str, ...]
    first_sdk: str
    usd_per_hour: str | None

    @property
    def efa_devices(self) -> int:
        """Number of EFA devices."""
        return self.network_cards if self.efa else 0

    @property
    def listed_cores(self) -> int:
        """NeuronCores of all chips, as ``neuron-ls`` counts them."""
        return self.chips * self.chip.listed_cores


ON_DEMAND_QUOTA, SPOT_QUOTA = "L-2C3B7624", "L-6B0D517C"
"""Codes of the quotas of vCPUs of all Trn types (Running On-Demand Trn instances, All Trn Spot Instance Requests)."""


TRAINIUM_TYPES: Mapping[str, TrainiumType] = {
    "trn1.2xlarge": TrainiumType(
        chip=TRAINIUM,
        chips=1,
        vcpus=8,
        memory_gib=32,
        nvme_gb=474,
        network_cards=1,
        card_gbps=0,
        efa=False,
        spot=True,
        capacity_blocks=False,
        zones=("use1-az5", "use1-az6", "use2-az3", "usw2-az1", "usw2-az4"),
        first_sdk="2.3.0",
        usd_per_hour="1.34375",
    ),
    "trn1.32xlarge": TrainiumType(
        chip=TRAINIUM,
        chips=16,
        vcpus=128,
        memory_gib=512,
        nvme_gb=7600,
        network_cards=8,
        card_gbps=100,
        efa=True,
        spot=True,
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
        first_sdk="2.3.0",
        usd_per_hour="21.5",
    ),
    "trn1n.32xlarge": TrainiumType(
        chip=TRAINIUM,
        chips=16,
        vcpus=128,
        memory_gib=512,
        nvme_gb=7600,
        network_cards=16,
        card_gbps=100,
        efa=True,
        spot=True,
        capacity_blocks=False,
        zones=("use1-az6", "use2-az3", "usw2-az4"),
        first_sdk="2.9.0",
        usd_per_hour="24.78",
    ),
    "trn2.3xlarge": TrainiumType(
        chip=TRAINIUM2,
        chips=1,
        vcpus=12,
        memory_gib=128,
        nvme_gb=470,
        network_cards=1,
        card_gbps=200,
        efa=True,
        spot=True,
        capacity_blocks=True,
        zones=("aps2-az1", "aps2-az2", "aps2-az3", "apse4-az3", "sae1-az1", "sae1-az2", "sae1-az3"),
        first_sdk="2.21.0",
        usd_per_hour=None,
    ),
    "trn2.48xlarge": TrainiumType(
        chip=TRAINIUM2,
        chips=16,
        vcpus=192,
        memory_gib=2048,
        nvme_gb=7600,
        network_cards=16,
        card_gbps=200,
        efa=True,
        spot=True,
        capacity_blocks=True,
        zones=("aps2-az1", "aps2-az2", "aps2-az3", "use2-az1", "use2-az2", "use2-az3"),
        first_sdk="2.21.0",
        usd_per_hour=None,
    ),
    "trn2u.48xlarge": TrainiumType(
        chip=TRAINIUM2,
        chips=16,
        vcpus=192,
        memory_gib=2048,
        nvme_gb=7600,
        network_cards=16,
        card_gbps=200,
        efa=True,
        spot=False,
        capacity_blocks=True,
        zones=("aps2-az1", "aps2-az2", "aps2-az3"),
        first_sdk="2.21.0",
        usd_per_hour=None,
    ),
}
"""Four trn2u.48xlarge are a Trn2 UltraServer (Neuron documentation, page trn2-arch).

First releases: the notes of 2.3.0 ("adds support for the new AWS Trainium powered Amazon EC2 Trn1 instances") and 2.9.0
("adds support for EC2 Trn1n instances"); `supported_instances` of driver, runtime and collectives in
src/helperscripts/n2-manifest.json of https://github.com/aws-neuron/aws-neuron-sdk has trn2 from 2.21.0 on. None of its
pages names trn2.3xlarge, whose chip is the same. On-demand prices of Trn2: no source that says where it is from."""

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
    **{name: (kind.network_cards, kind.efa_devices) for name, kind in TRAINIUM_TYPES.items()},
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


def cards_of(instance_type: str) -> tuple[int, int]:
    """Return the numbers of network cards and EFA devices."""
    return NETWORK_CARDS.get(instance_type, (1, 0))


def addresses_per_node(cards: tuple[int, int], *, efa: bool, interface_type: EfaInterfaceType) -> int:
    """Return how many IPv4 addresses ParallelCluster gives a node of the subnet.

    An ``efa-only`` device takes none; every other interface, one per network card, takes one. ``cards`` are network
    cards and EFA devices, as of `cards_of`.
    """
    return 1 if efa and interface_type == "efa-only" else cards[0]


def interfaces_per_node(cards: tuple[int, int], *, efa: bool, interface_type: EfaInterfaceType) -> int:
    """Return how many network interfaces, the unit of quota L-DF5E4CA3, ParallelCluster gives a node."""
    return cards[1] + 1 if efa and interface_type == "efa-only" else cards[0]


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


def architecture(instance_type: str) -> Literal["x86_64", "arm64"]:
    """Return the architecture of a type's processors, as EC2 and images call it."""
    return "arm64" if is_arm(instance_type) else "x86_64"


def zone_id_prefix(region: str) -> str | None:
    """Return what every availability zone id of a region begins with (us-west-2: usw2), or None for an odd name."""
    area, *middle, number = region.split("-")
    if not middle or re.fullmatch("(central|north|south|east|west)+", middle[-1]) is None:
        return None
    partition = "".join(part[0] for part in middle[:-1])
    directions = re.findall("central|north|south|east|west", middle[-1])
    return f"{area}{partition}{''.join(each[0] for each in directions)}{number}"
