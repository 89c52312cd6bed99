"""What instances have, compared with the answers of AWS that moto packs."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from scripts.check.estimate.hardware import TRAINIUM_HARDWARE, hardware
from ultracluster.domain.instance_types import TRAINIUM_TYPES, memory_gib

_CHIPS_THAT_MOTO_DOES_NOT_TELL = {"trn2u.48xlarge"}


@pytest.fixture(scope="module")
def packed() -> dict[str, dict[str, Any]]:
    spec = find_spec("moto")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "ec2/resources/instance_types.json.gz"
    types: dict[str, dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))
    return types


@pytest.mark.parametrize("name", TRAINIUM_TYPES)
def test_trainium(name: str, packed: dict[str, dict[str, Any]]) -> None:
    ours, packed_type = TRAINIUM_HARDWARE[name], packed[name]
    assert ours.vcpus == packed_type["VCpuInfo"]["DefaultVCpus"]
    assert ours.memory_gib == packed_type["MemoryInfo"]["SizeInMiB"] / 1024
    assert ours.nvme_tb == packed_type["InstanceStorageInfo"]["TotalSizeInGB"] / 1000
    if name not in _CHIPS_THAT_MOTO_DOES_NOT_TELL:
        [chips] = packed_type["NeuronInfo"]["NeuronDevices"]
        assert (ours.chips, ours.neuron_cores) == (chips["Count"], chips["Count"] * chips["CoreInfo"]["Count"])
    devices = packed_type["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    words = packed_type["NetworkInfo"]["NetworkPerformance"].split()
    gbps = float(words[-2]) if devices else 0
    assert ours.efa_gbps == devices * gbps


def test_common_types(packed: dict[str, dict[str, Any]]) -> None:
    common = [name for name in packed if memory_gib(name) is not None]
    assert len(common) > 100
    for name in common:
        ours = hardware(name)
        assert ours is not None
        assert ours.vcpus == packed[name]["VCpuInfo"]["DefaultVCpus"], name
        assert ours.memory_gib == packed[name]["MemoryInfo"]["SizeInMiB"] / 1024, name
