"""What one instance of a type has, and some of them together."""

from __future__ import annotations

import re

from scripts.core.document import Document
from scripts.core.figures import Number
from ultracluster.domain.instance_types import TRAINIUM_TYPES, TrainiumType, memory_gib
from ultracluster.domain.type_facts import TypeFactsSpec


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


def _trainium(kind: TrainiumType) -> Hardware:
    return Hardware(
        vcpus=kind.vcpus,
        memory_gib=kind.memory_gib,
        chips=kind.chips,
        neuron_cores=kind.chips * kind.chip.neuron_cores,
        bf16_pflops=kind.chips * kind.chip.bf16_tflops / 1000,
        accelerator_memory_gib=kind.chips * kind.chip.memory_gib,
        efa_gbps=kind.efa_devices * kind.card_gbps,
        nvme_tb=kind.nvme_gb / 1000,
    )


TRAINIUM_HARDWARE = {name: _trainium(kind) for name, kind in TRAINIUM_TYPES.items()}


def stated(facts: TypeFactsSpec) -> Hardware:
    """Return what an instance has of a type that the settings describe; of its chips they say no more than cores."""
    return Hardware(
        vcpus=facts.vcpus, memory_gib=facts.memory_gib, chips=facts.neuron_devices, neuron_cores=facts.neuron_cores
    )


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
