"""What nodes get of the AWS Neuron SDK: exact versions by release, and what goes together for training on Trn1.

Versions of packages, and the Pythons of their wheels, are those of src/helperscripts/n2-manifest.json in
https://github.com/aws-neuron/aws-neuron-sdk (tag v2.28.1). The repositories add a build to most of them: apt has
``2.30.51.0-faafe26f0`` of the runtime 2.30.51.0, dnf ``2.30.51.0_<build>-1``, pip ``2.23.6484.0+3b612583`` of the
compiler 2.23.6484.0; the driver has none. ``=VERSION*`` of apt, ``-VERSION*`` of dnf and ``==VERSION`` of pip match.
"""

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_SDK = "2.28.1"
"""The last line of releases that AWS keeps training with PyTorch/XLA on, with its fix of the driver for kernel 6.18.

"Starting with Neuron SDK release 2.29 (PyTorch 2.10), the use of NxD Core training APIs and the PyTorch/XLA package for
training will no longer be supported": https://awsdocs-neuron.readthedocs-hosted.com/en/latest/, page
about-neuron/announcements/neuron2.x/announce-eos-nxdt-nxd-core-training.html, of February 2026. 2.29 came with
PyTorch 2.9, and in May the page announce-no-support-pytorch-xla-training.html named another release: "Starting with
Neuron Release 2.30.0, PyTorch/XLA is no longer supported for training workloads on Trainium". On 2.29 they contradict
each other; 2.28 trains by both. The native PyTorch of 2.33 is for Trn2 and Trn3 alone (v2.33.0,
setup/pytorch/index.html)."""
DEFAULT_PYTORCH = "2.9"


_FIRST_DRIVER_WITHOUT_OLD_RUNTIMES = "2.29"
"""The driver 2.29 of Neuron 2.31 needs the runtime 2.33 or newer, or nothing starts (``nrt_init``); older drivers take
older runtimes (https://awsdocs-neuron.readthedocs-hosted.com/en/v2.31.0/release-notes/components/runtime.html)."""


@dataclass(frozen=True, kw_only=True)
class System:
    """What an operating system brings.

    Attributes:
        python: Python of the training environment; the system has packages of it.
        glibc: Version of the C library.
        user: The user that people log in as (aws-parallelcluster 3.16.1, constants.py).
    """

    python: str
    glibc: tuple[int, int]
    user: str


@dataclass(frozen=True, kw_only=True)
class PyTorch:
    """PyTorch wheels that go together.

    Attributes:
        torch: Version of ``torch``.
        torch_xla: Version of ``torch-xla``.
        torch_neuronx: Version of ``torch-neuronx``.
        pythons: Pythons that all of them have wheels for.
        glibc: Oldest C library that they load with.
    """

    torch: str
    torch_xla: str
    torch_neuronx: str
    pythons: tuple[str, ...]
    glibc: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release of the SDK. Its driver, runtime and collectives are tested with each other, not with another's.

    Attributes:
        driver: Version of ``aws-neuronx-dkms``.
        runtime: Version of ``aws-neuronx-runtime-lib``.
        collectives: Version of ``aws-neuronx-collectives``.
        tools: Version of ``aws-neuronx-tools``.
        compiler: Version of the wheel ``neuronx-cc``.
        libneuronxla: Version of the wheel ``libneuronxla``, of which ``torch-neuronx`` by itself may bring a newer one
            (https://github.com/aws-neuron/aws-neuron-sdk/issues/1012).
        kernels: First two numbers of the kernels that AWS tested driver and runtime with on Trn1, by operating system.
        pytorch: PyTorch wheels by PyTorch's minor version.
        broken_kernel: First two numbers of the first kernel that the driver is known not to work with; None: not known.
    """

    driver: str
    runtime: str
    collectives: str
    tools: str
    compiler: str
    libneuronxla: str
    kernels: Mapping[str, tuple[str, ...]]
    pytorch: Mapping[str, PyTorch]
    broken_kernel: str | None = None

    def packages(self, os: str, driver: str | None = None) -> dict[str, str]:
        """Return the arguments about the system's packages for nodes and images.

        Args:
            os: An operating system of `SYSTEMS`.
            driver: Another driver; of it is not known which kernels break it. None: that of the release.
        """
        arguments = {
            "driver": driver or self.driver,
            "runtime": self.runtime,
            "collectives": self.collectives,
            "tools": self.tools,
            "kernels": ",".join(self.kernels[os]),
        }
        if driver is None and self.broken_kernel is not None:
            arguments["broken_kernel"] = self.broken_kernel
        return arguments

    def driver_range(self) -> tuple[str, str]:
        """Return from which driver on another one may stand beside this runtime, and the first that may not."""
        return self.driver, _FIRST_DRIVER_WITHOUT_OLD_RUNTIMES


SYSTEMS: Mapping[str, System] = {
    "ubuntu2404": System(python="3.12", glibc=(2, 39), user="ubuntu"),
    "ubuntu2204": System(python="3.10", glibc=(2, 35), user="ubuntu"),
    "alinux2023": System(python="3.12", glibc=(2, 34), user="ec2-user"),
}
"""The systems that AWS installs the SDK on, by ParallelCluster's name. Of the others that ParallelCluster has, Rocky
Linux 9 was dropped and RHEL never was one (https://awsdocs-neuron.readthedocs-hosted.com/en/latest/, page
archive/setup/setup-rocky-linux-9.html). Python of Amazon Linux: v2.30.0, page
frameworks/torch/torch-neuronx/setup/pytorch-install-prev-al2023.html."""


def _pytorch(build: str) -> dict[str, PyTorch]:
    """Return the PyTorch wheels of a release; ``build`` is its own part of the version of ``torch-neuronx``.

    Sources: https://awsdocs-neuron.readthedocs-hosted.com/en/v2.28.1/, page release-notes/components/pytorch.html for
    torch-xla 2.8.1, without which BERT is slower; page deploy/environments/dlami.html of /en/latest/ for the glibc of
    2.9; platform tags and Pythons of the torch-xla wheels on PyPI for the rest.
    """
    pythons = ("3.10", "3.11", "3.12")
    return {
        "2.7": PyTorch(
            torch="2.7.0",
            torch_xla="2.7.0",
            torch_neuronx=f"2.7.0.{build}",
            pythons=("3.10", "3.11"),
            glibc=(2, 28),
        ),
        "2.8": PyTorch(
            torch="2.8.0",
            torch_xla="2.8.1",
            torch_neuronx=f"2.8.0.{build}",
            pythons=pythons,
            glibc=(2, 28),
        ),
        "2.9": PyTorch(
            torch="2.9.0",
            torch_xla="2.9.0",
            torch_neuronx=f"2.9.0.{build}",
            pythons=pythons,
            glibc=(2, 35),
        ),
    }


RELEASES: Mapping[str, Release] = {
    "2.27.1": Release(
        driver="2.25.4.0",
        runtime="2.29.40.0",
        collectives="2.29.41.0",
        tools="2.27.33.0",
        compiler="2.22.12471.0",
        libneuronxla="2.2.14584.0",
        kernels={"ubuntu2404": ("6.14",), "ubuntu2204": ("6.8",), "alinux2023": ("6.12",)},
        pytorch=_pytorch("2.11.19912"),
        broken_kernel="6.18",
    ),
    "2.28.1": Release(
        driver="2.26.10.0",
        runtime="2.30.51.0",
        collectives="2.30.59.0",
        tools="2.28.23.0",
        compiler="2.23.6484.0",
        libneuronxla="2.2.15515.0",
        kernels={"ubuntu2404": ("6.14",), "ubuntu2204": ("6.8",), "alinux2023": ("6.1", "6.12")},
        pytorch=_pytorch("2.12.22436"),
    ),
}
"""Kernels: https://awsdocs-neuron.readthedocs-hosted.com/, pages en/v2.27.0/release-notes/2.27.0/runtime.html and
en/v2.28.1/release-notes/components/runtime.html, "Compatibility Support Table". 2.27.1 and 2.28.1 have the tables of
2.27.0 and 2.28.0. "Compatibility fixes for Linux kernel 6.18" came with the driver 2.26.10.0, of 2.28.1: the latter
page. Whether 2.26.10.0 works with newer kernels than that is not known."""
PYTORCHS = sorted({version for release in RELEASES.values() for version in release.pytorch})
"""Of all releases; not each runs on each system: see `blocker`."""


def as_numbers(version: str) -> tuple[int, ...]:
    """Return a version so that it can be compared."""
    return tuple(map(int, version.split(".")))


def blocker(pytorch: PyTorch, os: str) -> str | None:
    """Return why PyTorch wheels do not run on an operating system, or None if they do."""
    system = SYSTEMS[os]
    if system.python not in pytorch.pythons:
        return f"PyTorch {pytorch.torch} has no wheels for Python {system.python}, which {os} has"
    if system.glibc < pytorch.glibc:
        needed, has = (".".join(map(str, version)) for version in (pytorch.glibc, system.glibc))
        return f"PyTorch {pytorch.torch} needs glibc {needed}, and {os} has {has}"
    return None
