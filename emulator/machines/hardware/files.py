"""What a healthy node shows in its file system of the instance that it is, by path: for the health checks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

SHAPES = Path(__file__).parent / "shapes"
FAKES = Path(__file__).parent / "fakes"
DEVICES = "/sys/devices/virtual/neuron_device"
_TOOLS = ("neuron-ls", "neuron-monitor")
NODE_FACTS = "/var/lib/ultracluster/node.env"
COUNTERS = ("sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected")
EFA_COUNTERS = ("rx_bytes", "tx_bytes", "recv_bytes", "send_bytes", "rdma_read_bytes", "retrans_bytes")


def hardware_files(instance_type: str) -> dict[str, str]:
    """Return sysfs: the driver, each Neuron device with its error counters, each EFA device, which has sent before."""
    devices = json.loads(_said_by("neuron-ls", instance_type))
    adapters = (SHAPES / instance_type / "lspci.txt").read_text(encoding="utf-8").count("Elastic Fabric Adapter")
    files = {"/sys/module/neuron/version": "2.26.5.0\n"}
    for device in devices:
        for counter in COUNTERS:
            files[f"{DEVICES}/neuron{device['neuron_device']}/stats/hardware/{counter}"] = "0\n"
    return files | _efa_files(adapters)


def _efa_files(adapters: int) -> dict[str, str]:
    files = {}
    for index in range(adapters):
        files[f"/sys/class/infiniband/rdmap{index}s26/device/vendor"] = "0x1d0f\n"
        files[f"/sys/class/infiniband/rdmap{index}s26/device/device"] = "0xefa1\n"
        for counter in EFA_COUNTERS:
            files[f"/sys/class/infiniband/rdmap{index}s26/ports/1/hw_counters/{counter}"] = "1000\n"
    return files


def instance_files(instance_type: str, vcpus: int, efa_devices: int = 0) -> dict[str, str]:
    """Return what an instance shows before a driver of Neuron is loaded, and what fakes of its tools print.

    Args:
        instance_type: One without a recorded shape has no Neuron devices.
        vcpus: How many it has.
        efa_devices: How many it has, by EC2; a recorded shape tells by itself.
    """
    files = {"/etc/nproc": f"{vcpus}\n"}
    is_recorded = (SHAPES / instance_type).exists()
    for path, text in (hardware_files(instance_type) if is_recorded else _efa_files(efa_devices)).items():
        if device := re.fullmatch(r"/sys/class/infiniband/rdmap(\d+)s26/device/(\w+)", path):
            files[f"/sys/bus/pci/devices/0000:{int(device[1]):02x}:1a.0/{device[2]}"] = text
        if not path.startswith("/sys/module/"):
            files[path] = text
    ena = "/sys/bus/pci/devices/0000:00:05.0"  # an Elastic Network Adapter
    files |= {f"{ena}/vendor": "0x1d0f\n", f"{ena}/device": "0xec20\n"}
    if not is_recorded:
        return files
    return files | {f"/etc/{tool}.json": _said_by(tool, instance_type) for tool in _TOOLS}


def _said_by(tool: str, instance_type: str) -> str:
    """Return what a tool of Neuron prints: of a trn1n what of a trn1, from which it differs by its network alone."""
    shape = SHAPES / instance_type.replace("trn1n.", "trn1.")
    return (shape / f"{tool}.json").read_text(encoding="utf-8")


def neuron_monitor_report(instance_type: str) -> dict[str, Any]:
    """Return what neuron-monitor prints of an instance that is used."""
    return dict(json.loads(_said_by("neuron-monitor", instance_type)))


def node_facts(instance_type: str, mount_dir: str = "/fsx", scratch_dir: str = "/scratch", **more: str) -> str:
    """Return what compute_node.sh keeps of its arguments, for a node of the queue trn1."""
    facts = {"queue": "trn1", "cluster": "test", "mount_dir": mount_dir, "scratch_dir": scratch_dir}
    return "".join(f"{name}={value}\n" for name, value in {**facts, **more, "instance_type": instance_type}.items())
