"""What an instance shows of its type's hardware, and the packages that a machine without a network counts as installed.

/sys of a machine is a directory of its root volume: what a driver would show there are files. Of /proc only meminfo and
a setting that ParallelCluster changes, which is no namespace's, are the instance's own.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from emulator.machines.guest import aws
from emulator.machines.hardware.files import FAKES, SHAPES, instance_files

SYSTEMS: Final[Mapping[str, tuple[str, str]]] = {
    "ubuntu2404": ('ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n', "6.14.0-1018-aws"),
    "ubuntu2204": ('ID=ubuntu\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n', "6.8.0-1035-aws"),
    "alinux2023": ('ID="amzn"\nVERSION_ID="2023"\n', "6.1.158-180.294.amzn2023.x86_64"),
}
"""What /etc/os-release and `uname -r` say, by ParallelCluster's name of the operating system."""
_NEURON: Final[Mapping[str, tuple[str, str]]] = {
    "driver": ("aws-neuronx-dkms", ""),
    "runtime": ("aws-neuronx-runtime-lib", "-faafe26f0"),
    "collectives": ("aws-neuronx-collectives", "-0c5f4d1a2"),
    "tools": ("aws-neuronx-tools", "-81a7f4e08"),
}
"""Names of Neuron's packages by argument of compute_node.sh, and what its repositories add to their versions."""
_OF_PYTHON: Final = ("python{0}-venv", "python{0}", "g++", "gcc-c++", "libxcrypt-compat")
_STATUS: Final = "/var/lib/dpkg/status"
_LISTING: Final = "/var/lib/emulator/packages"
_PROTECTED_REGULAR: Final = "fs/protected_regular"
_NEURON_TOOLS: Final = "/opt/aws/neuron/bin"
WORKERS_PER_NODE: Final = 1
"""Processes of a training program on a machine, which has no NeuronCores: all share a few processors."""
_PROFILE: Final = "/etc/profile.d/zz-emulated.sh"
"""For login shells, from which jobs have it: the training programs and submit.py read these."""


def install(instance_type: str) -> None:
    """Write what the kernel and its drivers show of an instance of a type. Each boot needs it."""
    provide([])
    vcpus, memory_mib, efa_devices = _size(instance_type)
    for path, text in instance_files(instance_type, vcpus, efa_devices).items():
        _write(path, text)
    _link_devices()
    log = SHAPES / instance_type / "dmesg.txt"
    _write("/run/kernel.log", log.read_text(encoding="utf-8") if log.exists() else "")
    _write("/run/meminfo", _meminfo(memory_mib))
    _write("/run/protected_regular", "2\n")
    _write(_PROFILE, f"export WORKERS_PER_NODE={WORKERS_PER_NODE} OMP_NUM_THREADS=1\n")
    for name, path in {"meminfo": "/proc/meminfo", "protected_regular": f"/proc/sys/{_PROTECTED_REGULAR}"}.items():
        subprocess.run(["mount", "--bind", f"/run/{name}", path], check=False)


def lift_protection(os_name: str) -> None:
    """Let root write to files of others in directories like /tmp (cookbook: sticky_bits_ubuntu20+.rb)."""
    if os_name.startswith("ubuntu"):
        key = _PROTECTED_REGULAR.replace("/", ".")
        _write(f"/etc/sysctl.d/99-chef-{key}.conf", f"{key} = 0\n")
        _write(f"/proc/sys/{_PROTECTED_REGULAR}", "0\n")


def _link_devices() -> None:
    """Let PCI devices be links and have a class, as the kernel shows them: PyTorch's Gloo looks for network devices."""
    tree = Path("/sys/devices/pci0000:00")
    for device in Path("/sys/bus/pci/devices").glob("*"):
        if not device.is_symlink():
            tree.mkdir(parents=True, exist_ok=True)
            device.rename(tree / device.name)
            device.symlink_to(f"../../../devices/{tree.name}/{device.name}")
            _write(f"{device}/class", "0x020000\n")


def set_system(os_name: str, root: str = "") -> None:
    """Let the machine be one with an operating system that ParallelCluster has a name for."""
    release, kernel = SYSTEMS[os_name]
    _write(f"{root}/etc/os-release", release)
    _write(f"{root}/etc/kernel-release", f"{kernel}\n")
    if os_name == "alinux2023":
        for path in (f"{root}/etc/passwd", f"{root}/etc/group"):
            text = Path(path).read_text(encoding="utf-8")
            Path(path).write_text(re.sub(r"^ubuntu:", "ec2-user:", text, flags=re.MULTILINE), encoding="utf-8")


def provide(arguments: Sequence[str], root: str = "") -> None:
    """Let packages count as installed that a script of the nodes asks for by its arguments, which are name=value.

    These are Neuron's, of the versions named, with the driver built for the kernel; and what the training environment's
    Python needs, of any version. A second call with the same arguments changes nothing.
    """
    values = dict(each.split("=", 1) for each in arguments if re.match(r"\w+=", each))
    versions = {name: f"{values[key]}{build}" for key, (name, build) in _NEURON.items() if key in values}
    pythons = [values["python"]] if "python" in values else ["3.10", "3.11", "3.12"]
    versions |= {name.format(python): "1.0-1" for python in pythons for name in _OF_PYTHON}
    _register(versions, root)
    if "driver" in values:
        _build_driver(values["driver"], root)


def _register(versions: Mapping[str, str], root: str) -> None:
    """Enter packages where dpkg, and the fake of rpm, look for what is installed."""
    listing = Path(root + _LISTING)
    listing.parent.mkdir(parents=True, exist_ok=True)
    others = [
        line
        for line in (listing.read_text(encoding="utf-8") if listing.exists() else "").splitlines()
        if line.split()[0] not in versions
    ]
    ours = [f"{name} {version}" for name, version in versions.items()]
    listing.write_text("".join(f"{line}\n" for line in others + ours), encoding="utf-8")
    status = Path(root + _STATUS)
    records = [
        record
        for record in status.read_text(encoding="utf-8").strip().split("\n\n")
        if record and record.partition("\n")[0].removeprefix("Package: ") not in versions
    ]
    records += [
        f"Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n"
        "Maintainer: emulator\nDescription: counts as installed on machines of the emulated AWS"
        for name, version in versions.items()
    ]
    status.write_text("\n\n".join(records) + "\n", encoding="utf-8")
    for name in versions:
        for kind in ("list", "md5sums"):
            (status.parent / "info" / f"{name}.{kind}").touch()


def _build_driver(version: str, root: str) -> None:
    kernel = Path(root + "/etc/kernel-release").read_text(encoding="utf-8").strip()
    _write(f"{root}/usr/src/aws-neuronx-{version}/version", f"{version}\n")
    _write(f"{root}/lib/modules/{kernel}/build/Makefile", "# headers\n")
    _write(f"{root}/lib/modules/{kernel}/updates/neuron.ko", f"{version}\n")
    for tool in ("neuron-ls", "neuron-monitor"):
        path = f"{root}{_NEURON_TOOLS}/{tool}"
        _write(path, (FAKES / tool).read_text(encoding="utf-8"))
        Path(path).chmod(0o755)


def _size(instance_type: str) -> tuple[int, int, int]:
    """Return the vCPUs, the memory in MiB and the EFA devices of an instance type."""
    answer = aws.query("ec2", "DescribeInstanceTypes", **{"InstanceType.1": instance_type})
    vcpus, memory = answer.findtext(".//defaultVCpus"), answer.findtext(".//sizeInMiB")
    if not vcpus or not memory:
        raise aws.AwsError("InvalidInstanceType", instance_type)
    return int(vcpus), int(memory), int(answer.findtext(".//maximumEfaInterfaces") or 0)


def _meminfo(memory_mib: int) -> str:
    """Return what /proc/meminfo says, with the instance's memory; 2% of it are the kernel's."""
    total, free = memory_mib * 1024, int(memory_mib * 1024 * 0.98)
    text = Path("/proc/meminfo").read_text(encoding="utf-8")
    for name, kib in {"MemTotal": total, "MemFree": free, "MemAvailable": free}.items():
        text = re.sub(rf"^{name}:.*", f"{name}: {kib:14} kB", text, flags=re.MULTILINE)
    return text


def _write(path: str, text: str) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
