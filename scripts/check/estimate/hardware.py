"""What one instance of a type has.

Chips, their cores, memory and dense BF16: Neuron documentation, about-neuron/arch/neuron-hardware, pages trainium and
trainium2. The rest: EC2 DescribeInstanceTypes as packed in moto 5.2.5, which a test compares. It has 512 GiB per
Trainium2 chip, the Neuron documentation 96 GiB; the latter is used.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scripts.core.document import Document
from scripts.core.figures import Number
from ultracluster.domain.instance_types import TRAINIUM_TYPES, memory_gib


class Hardware(Document):
    """What an instance has, or some of them together.

    Attributes:
        vcpus: Default number of vCPUs, the unit of EC2's quotas.
        memory_gib: Memory of the host in GiB.
        chips: Trainium chips.
        neuron_cores: Physical NeuronCores of all chips.
        bf16_pflops: Dense BF16 of all chips in PFLOPS.
        accelerator_memory_gib: Memory of all chips in GiB.
        efa_gbps: Bandwidth of all EFA devices in Gbps.
        nvme_tb: Local NVMe storage in TB.
    """

    vcpus: int = 0
    memory_gib: Number = 0
    chips: int = 0
    neuron_cores: int = 0
    bf16_pflops: Number = 0
    accelerator_memory_gib: int = 0
    efa_gbps: int = 0
    nvme_tb: Number = 0


class _Chip(NamedTuple):
    neuron_cores: int
    bf16_tflops: int
    memory_gib: int
    efa_gbps_per_card: int


_TRAINIUM = _Chip(neuron_cores=2, bf16_tflops=190, memory_gib=32, efa_gbps_per_card=100)
_TRAINIUM2 = _Chip(neuron_cores=8, bf16_tflops=667, memory_gib=96, efa_gbps_per_card=200)


def _trainium(name: str, chip: _Chip, *, chips: int, memory_gib: int, nvme_gb: int) -> Hardware:
    kind = TRAINIUM_TYPES[name]
    return Hardware(
        vcpus=kind.vcpus,
        memory_gib=memory_gib,
        chips=chips,
        neuron_cores=chips * chip.neuron_cores,
        bf16_pflops=chips * chip.bf16_tflops / 1000,
        accelerator_memory_gib=chips * chip.memory_gib,
        efa_gbps=kind.network_cards * chip.efa_gbps_per_card if kind.efa else 0,
        nvme_tb=nvme_gb / 1000,
    )


TRAINIUM_HARDWARE = {
    "trn1.2xlarge": _trainium("trn1.2xlarge", _TRAINIUM, chips=1, memory_gib=32, nvme_gb=474),
    "trn1.32xlarge": _trainium("trn1.32xlarge", _TRAINIUM, chips=16, memory_gib=512, nvme_gb=7600),
    "trn1n.32xlarge": _trainium("trn1n.32xlarge", _TRAINIUM, chips=16, memory_gib=512, nvme_gb=7600),
    "trn2.3xlarge": _trainium("trn2.3xlarge", _TRAINIUM2, chips=1, memory_gib=128, nvme_gb=470),
    "trn2.48xlarge": _trainium("trn2.48xlarge", _TRAINIUM2, chips=16, memory_gib=2048, nvme_gb=7600),
    "trn2u.48xlarge": _trainium("trn2u.48xlarge", _TRAINIUM2, chips=16, memory_gib=2048, nvme_gb=7600),
}

_BURSTABLE_VCPUS = {"xlarge": 4, "2xlarge": 8}


def hardware(instance_type: str) -> Hardware | None:
    """Return what an instance has, or None for a type that is neither Trainium nor a common x86 one."""
    if instance_type in TRAINIUM_HARDWARE:
        return TRAINIUM_HARDWARE[instance_type]
    memory = memory_gib(instance_type)
    if memory is None:
        return None
    size = instance_type.partition(".")[2]
    if instance_type.startswith("t"):
        return Hardware(vcpus=_BURSTABLE_VCPUS.get(size, 2), memory_gib=memory)
    multiple = re.fullmatch(r"(\d*)xlarge", size)
    return Hardware(vcpus=4 * int(multiple[1] or 1) if multiple else 2, memory_gib=memory)
