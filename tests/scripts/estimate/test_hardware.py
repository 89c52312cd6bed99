"""What instances have, compared with the answers of AWS that moto packs."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from scripts.estimate.hardware import TRAINIUM_HARDWARE, hardware
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


def test_every_trainium_type_is_there() -> None:
    assert TRAINIUM_HARDWARE.keys() == TRAINIUM_TYPES.keys()


@pytest.mark.parametrize("name", TRAINIUM_TYPES)
def test_trainium(name: str, packed: dict[str, dict[str, Any]]) -> None:
    found, told = TRAINIUM_HARDWARE[name], packed[name]
    assert found.vcpus == told["VCpuInfo"]["DefaultVCpus"]
    assert found.memory_gib == told["MemoryInfo"]["SizeInMiB"] / 1024
    assert found.nvme_tb == told["InstanceStorageInfo"]["TotalSizeInGB"] / 1000
    if name not in _CHIPS_THAT_MOTO_DOES_NOT_TELL:
        [chips] = told["NeuronInfo"]["NeuronDevices"]
        assert (found.chips, found.neuron_cores) == (chips["Count"], chips["Count"] * chips["CoreInfo"]["Count"])
    devices = told["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    words = told["NetworkInfo"]["NetworkPerformance"].split()
    gbps = float(words[-2]) if devices else 0
    assert found.efa_gbps == devices * gbps


def test_common_types(packed: dict[str, dict[str, Any]]) -> None:
    common = [name for name in packed if memory_gib(name) is not None]
    assert len(common) > 100
    for name in common:
        found = hardware(name)
        assert found is not None
        assert found.vcpus == packed[name]["VCpuInfo"]["DefaultVCpus"], name
        assert found.memory_gib == packed[name]["MemoryInfo"]["SizeInMiB"] / 1024, name
