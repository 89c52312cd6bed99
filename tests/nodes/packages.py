"""Packages of fakes: what apt, dnf and pip install on machines under test, of the real names and versions."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emulator.machines.hardware.files import FAKES
from ultracluster.domain.neuron import DEFAULT_SDK, RELEASES, SYSTEMS

HERE = Path(__file__).parent

APT, DNF, PIP = (f"{kind}.repos.neuron.amazonaws.com" for kind in ("apt", "yum", "pip"))
ARCHIVE = "archive.test"
"""Host of the operating system's own packages, and of pip's public index."""

NEEDED_OF_NEURON = ("nki", "0.2.0")
"""A package that Neuron's packages need, without saying which version, and that their index has."""
NEURON_NAMES = ("torch_neuronx", "neuronx_cc", "libneuronxla", NEEDED_OF_NEURON[0])
IMPOSTOR = "99.0"
"""The version under which the public index has somebody else's packages of the names of Neuron's."""

KERNELS = {
    "ubuntu2404": "6.14.0-1018-aws",
    "ubuntu2204": "6.8.0-1035-aws",
    "alinux2023": "6.1.158-180.294.amzn2023.x86_64",
}
"""What `uname -r` says."""
PYTHON = "3.11"
"""Python of the root directory, which is Debian's; the scripts are told which one to take."""
SYSTEM_PYTHON = SYSTEMS["ubuntu2404"].python
"""The one that nodes are told, of which there is no more than a package here."""

_POST_INSTALLATION = """\
if [ -e /hold ]; then touch /held; sleep 60; fi
dkms autoinstall --kernelver "$(uname -r)" || true
"""
"""The real package, too, skips the driver where it cannot be built, and succeeds. "hold" lets a test kill it."""


@dataclass(frozen=True)
class Package:
    """A package of apt or dnf.

    Attributes:
        name: Its name.
        version: Its version.
        build: What the repositories add to the version.
        release: Second part of the version, for dnf.
        needs: Name of another package.
        provides: What else it stands for, for dnf.
        files: Text of files by path; what is in a bin directory is executable.
        script: Runs after the installation.
    """

    name: str
    version: str = "1.0"
    build: str = ""
    release: str = "1"
    needs: str = ""
    provides: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    script: str = ""


def neuron_packages(sdk: str) -> list[Package]:
    """Return Neuron's packages of a release."""
    release = RELEASES[sdk]
    sources = {f"/usr/src/aws-neuronx-{release.driver}/version": f"{release.driver}\n"}
    return [
        Package(
            "aws-neuronx-dkms", release.driver, release="dkms", needs="dkms", files=sources, script=_POST_INSTALLATION
        ),
        Package("aws-neuronx-runtime-lib", release.runtime, "faafe26f0"),
        Package("aws-neuronx-collectives", release.collectives, "0c5f4d1a2"),
        Package(
            "aws-neuronx-tools", release.tools, "81a7f4e08", files={"/opt/aws/neuron/bin/neuron-ls": _text("neuron-ls")}
        ),
    ]


def ubuntu_packages() -> list[Package]:
    """Return what the scripts need of Ubuntu and a root directory of Debian does not have."""
    headers = [
        Package(f"linux-headers-{kernel}", files=_headers(kernel))
        for os_name, kernel in KERNELS.items()
        if os_name.startswith("ubuntu")
    ]
    return [_dkms(), *(Package(name) for name in ("g++", "linux-aws", f"python{SYSTEM_PYTHON}-venv")), *headers]


def amazon_packages() -> list[Package]:
    """Return what the scripts and the other packages need of Amazon Linux."""
    kernel = KERNELS["alinux2023"]
    version, release = kernel.split("-")
    provides = f"kernel-devel-uname-r = {kernel}"
    return [
        _dkms(),
        Package("kernel-devel", version, release=release, provides=provides, files=_headers(kernel)),
        Package("bash", provides="/bin/sh"),
        *(Package(name) for name in ("gcc-c++", "libxcrypt-compat", f"python{PYTHON}", f"python{SYSTEM_PYTHON}")),
    ]


def _dkms() -> Package:
    return Package("dkms", files={"/usr/sbin/dkms": _text("dkms")})


def _headers(kernel: str) -> dict[str, str]:
    return {f"/lib/modules/{kernel}/build/Makefile": "# headers\n"}


def fake_path(command: str) -> Path:
    """Return the file of a command's fake."""
    own = HERE / "fakes" / command
    return own if own.exists() else FAKES / command


def _text(fake: str) -> str:
    return fake_path(fake).read_text(encoding="utf-8")


def write_deb(directory: Path, package: Package) -> None:
    """Write the directory of a package of apt below another."""
    version = f"{package.version}-{package.build}" if package.build else package.version
    control = {
        "Package": package.name,
        "Version": version,
        "Architecture": "amd64",
        "Maintainer": "test",
        "Description": "fake",
        "Depends": package.needs,
    }
    text = "".join(f"{key}: {value}\n" for key, value in control.items() if value)
    content = directory / f"{package.name}_{version}"
    _write_files(content, {"/DEBIAN/control": text, **package.files})
    if package.script:
        _write_files(content, {"/DEBIAN/postinst": f"#!/bin/sh\n{package.script}"}, mode=0o755)


def write_spec(directory: Path, name: str, packages: Iterable[Package]) -> None:
    """Write one source of several packages of dnf, whose files are in "files" beside it."""
    spec = (
        "%define _unpackaged_files_terminate_build 0\n"
        "Name: fakes\nVersion: 1\nRelease: 1\nSummary: fakes\nLicense: none\nBuildArch: noarch\n"
        "AutoReqProv: no\n%description\n%install\nmkdir -p %{buildroot}\ncp -r /build/rpms/files/. %{buildroot}\n"
    )
    for package in packages:
        _write_files(directory / "files", package.files)
        header = {
            "Version": f"{package.version}_{package.build}" if package.build else package.version,
            "Release": package.release,
            "Summary": "fake",
            "AutoReqProv": "no",
            "Requires": package.needs,
            "Provides": package.provides,
        }
        spec += f"%package -n {package.name}\n"
        spec += "".join(f"{key}: {value}\n" for key, value in header.items() if value)
        spec += f"%description -n {package.name}\n%files -n {package.name}\n"
        spec += "".join(f"{path}\n" for path in package.files)
        spec += f"%post -n {package.name}\n{package.script}\n" if package.script else ""
    (directory / f"{name}.spec").write_text(spec, encoding="utf-8")


def _write_files(directory: Path, files: Mapping[str, str], mode: int | None = None) -> None:
    for path, text in files.items():
        target = directory / path.removeprefix("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode or (0o755 if "bin/" in path else 0o644))


def write_wheels(sites: Path) -> dict[str, str]:
    """Write Python packages and their indexes, and return what stands in for the files of requirements, by name."""
    release = RELEASES[DEFAULT_SDK]
    pytorch = release.pytorch["2.9"]
    neuron, public = sites / PIP, sites / ARCHIVE / "simple"
    needs = ("torch==2.9.*", "torch-xla==2.9.*", "libneuronxla<2.3", f"{NEEDED_OF_NEURON[0]}>=0.1", "islpy")
    _write_wheel(neuron, "torch_neuronx", f"{pytorch.torch_neuronx}+0f1dac25", *needs)
    _write_wheel(neuron, "neuronx_cc", f"{release.compiler}+3b612583", "numpy<2")
    _write_wheel(neuron, "libneuronxla", f"{release.libneuronxla}+50c26cbd")
    _write_wheel(neuron, "libneuronxla", "2.2.99999.0+50c26cbd")
    _write_wheel(neuron, *NEEDED_OF_NEURON)
    _write_wheel(neuron, "torch_xla", "2.1.6")
    for name in NEURON_NAMES:
        _write_wheel(public, name, IMPOSTOR)
    _write_wheel(public, "islpy", "2025.2.5")
    _write_wheel(public, "numpy", "2.5.2")
    of_pytorch = {
        f"torch=={pytorch.torch}": _write_wheel(public, "torch", pytorch.torch),
        f"torch-xla=={pytorch.torch_xla}": _write_wheel(public, "torch_xla", pytorch.torch_xla),
    }
    of_training = {
        "numpy==1.26.4": _write_wheel(public, "numpy", "1.26.4"),
        "h5py==3.16.0": _write_wheel(public, "h5py", "3.16.0", "numpy"),
        "transformers==4.57.6": _write_wheel(public, "transformers", "4.57.6"),
        "tensorboard==2.21.0": _write_wheel(public, "tensorboard", "2.21.0"),
    }
    return {
        "requirements-training.txt": _requirements(of_training),
        f"requirements-pytorch-{pytorch.torch}.txt": _requirements(of_pytorch),
    }


def _requirements(hashes: Mapping[str, str]) -> str:
    return "".join(f"{requirement} --hash=sha256:{digest}\n" for requirement, digest in hashes.items())


def _write_wheel(index: Path, name: str, version: str, *needs: str) -> str:
    """Write a package with one empty module, name it in its index, and return its SHA-256."""
    directory = index / name.replace("_", "-")
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    requirements = "".join(f"Requires-Dist: {need}\n" for need in needs)
    files = {
        f"{name}.py": "",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in files)
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    write_index(directory)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def write_index(directory: Path) -> None:
    """Name the wheels in a directory, which is that of one package, as an index of Python packages does."""
    links = "".join(f'<a href="{path.name.replace("+", "%2B")}">{path.name}</a>\n' for path in directory.glob("*.whl"))
    (directory / "index.html").write_text(f"<html><body>{links}</body></html>", encoding="utf-8")
