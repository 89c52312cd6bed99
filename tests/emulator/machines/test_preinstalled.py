"""Packages that count as installed on a machine, as the real scripts of the nodes ask for them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from emulator.machines.guest import preinstalled
from emulator.machines.hardware.files import DEVICES, instance_files
from tests.nodes.facts import COMPUTE_NODE
from ultracluster.domain.neuron import SYSTEMS

ARGUMENTS = [f"{name}={value}" for name, value in COMPUTE_NODE.items()]
_FORMAT = "${db:Status-Status} ${Package} ${Version}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in {
        "var/lib/dpkg/status": "Package: bash\nStatus: install ok installed\nVersion: 5.2\n",
        "var/lib/dpkg/info/bash.list": "",
        "etc/passwd": "ubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n",
        "etc/group": "ubuntu:x:1000:\n",
        "etc/kernel-release": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def test_dpkg_finds_the_versions_that_the_script_asks_for_and_no_others(root: Path) -> None:
    preinstalled.set_system("ubuntu2404", str(root))
    preinstalled.provide([], str(root))
    preinstalled.provide([each.replace("2.26.10.0", "1.0.0.0") for each in ARGUMENTS], str(root))
    preinstalled.provide(ARGUMENTS, str(root))
    once = (root / "var/lib/dpkg/status").read_text(encoding="utf-8")
    preinstalled.provide(ARGUMENTS, str(root))
    assert (root / "var/lib/dpkg/status").read_text(encoding="utf-8") == once
    listed = subprocess.run(
        ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", f"--showformat={_FORMAT}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert "installed aws-neuronx-dkms 2.26.10.0" in listed
    assert "installed bash 5.2" in listed
    assert "installed python3.12-venv 1.0-1" in listed
    assert len([line for line in listed if "aws-neuronx" in line]) == 4


def test_the_user_has_the_name_of_the_system(root: Path) -> None:
    preinstalled.set_system("alinux2023", str(root))
    user = SYSTEMS["alinux2023"].user
    assert (root / "etc/passwd").read_text(encoding="utf-8") == f"{user}:x:1000:1000::/home/ubuntu:/bin/bash\n"


def test_all_systems_of_the_settings_are_known() -> None:
    assert set(preinstalled.SYSTEMS) == set(SYSTEMS)


def test_a_type_without_a_recorded_shape_has_the_efa_devices_that_ec2_says() -> None:
    told = [path for path in instance_files("hpc7g.16xlarge", 64, 2) if path.startswith("/sys/bus/pci/devices/")]
    assert len({path.split("/")[5] for path in told}) == 1 + 2, "beside an Elastic Network Adapter"
    assert not any("neuron" in path for path in instance_files("hpc7g.16xlarge", 64, 2))


@pytest.mark.parametrize("instance_type", ["trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"])
def test_each_trn1_has_devices_and_tools_that_tell_of_them(instance_type: str) -> None:
    files = instance_files(instance_type, 128)
    devices = json.loads(files["/etc/neuron-ls.json"])
    assert len(devices) == (1 if instance_type == "trn1.2xlarge" else 16)
    assert all(
        f"{DEVICES}/neuron{each['neuron_device']}/stats/hardware/mem_ecc_uncorrected" in files for each in devices
    )
    assert "neuron_hardware_info" in json.loads(files["/etc/neuron-monitor.json"])
