"""What all machines under test have in common, made once: a root directory with package managers, and repositories.

The root is Debian, which has apt as well as dnf; os-release says what a machine claims to be. The repositories have the
packages that the scripts ask for, of the right names and versions, but with fakes in them. They are served over TLS
under the names of the real ones, signed with a key of our own, so that the real scripts run: all that is changed in
them is the fingerprint of the key, and the hashes of Python packages.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator.machines import image
from tests.end_to_end.slurm.base import call, make_root
from tests.nodes.packages import (
    APT,
    ARCHIVE,
    DNF,
    HERE,
    PIP,
    PYTHON,
    amazon_packages,
    fake_path,
    neuron_packages,
    ubuntu_packages,
    write_deb,
    write_index,
    write_spec,
    write_wheels,
)
from ultracluster.domain.neuron import RELEASES

NODES = HERE.parents[1] / "nodes"
REAL_KEY = "00FA2C1079260870A76D2C285749CAD8646D9185"

_DEBIAN_PACKAGES = (
    "apt-utils",
    "ca-certificates",
    "createrepo-c",
    "curl",
    "dnf",
    "gnupg",
    "iptables",
    "iproute2",
    "mount",
    "openssh-client",
    "openssh-server",
    "openssl",
    "procps",
    f"python{PYTHON}-venv",
    "rpm",
    "sudo",
    "systemd",
)
_COMMANDS = {
    "sbin/lctl": "lctl",
    "sbin/modinfo": "modinfo",
    "sbin/modprobe": "modprobe",
    "bin/nproc": "nproc",
    "bin/systemctl": "systemctl",
    "bin/uname": "uname",
    f"local/bin/python{PYTHON}": "python",
}
"""What fakes take the place of, below /usr."""


@dataclass(frozen=True)
class Base:
    """Where things are on the machine that runs the tests.

    Attributes:
        workspace: Directory of everything.
    """

    workspace: Path

    @property
    def root(self) -> Path:
        """The root directory, which no machine writes to."""
        return self.workspace / "base"

    @property
    def build(self) -> Path:
        """What was made for the machines: sites, keys and a certificate."""
        return self.root / "build"


def create(workspace: Path) -> Base:
    """Make everything below a directory.

    Raises:
        ClusterError: Something is missing.
    """
    base = Base(workspace)
    call("cp", "--archive", str(_debian()), str(base.root))
    _prepare_root(base.root)
    _prepare_repositories(base.build)
    call("unshare", "--mount", "chroot", str(base.root), "bash", "/build/make_repositories.sh")
    write_bundle(base, write_wheels(base.build / "sites"))
    uv = base.build / "sites" / ARCHIVE / "simple" / "uv"
    pip = (sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--require-hashes", "--dest", str(uv))
    call(*pip, "--requirement", str(NODES / "requirements-uv.txt"))
    write_index(uv)
    return base


def _debian() -> Path:
    """Return a root directory of Debian, kept in the cache of those of machines: it takes most of the time."""
    lean = [f"--dpkgopt=path-exclude=/usr/share/{what}/*" for what in ("doc", "man")]
    options = ("bookworm", "--variant=apt", *lean, f"--include={','.join(_DEBIAN_PACKAGES)}")
    cache = image.default_cache() / "bookworm"
    return image.cached(cache, image.key_of(iter(()), *options), lambda root: make_root(root, *options))


def _prepare_root(root: Path) -> None:
    (root / "usr/bin/uname").rename(root / "usr/bin/uname.real")
    for command, fake in _COMMANDS.items():
        target = root / "usr" / command
        shutil.copy(fake_path(fake), target)
        target.chmod(0o755)
    for directory in ("fsx", "scratch", "opt/slurm", "etc/yum.repos.d", "etc/dnf/vars", "etc/uv"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(root / "var/lib/apt/lists")
    shutil.rmtree(root / "etc/apt/sources.list.d")
    hosts = "".join(f"127.0.0.1 {host}\n" for host in (APT, DNF, PIP, ARCHIVE))
    for path, text in {
        "etc/hosts": f"127.0.0.1 localhost\n{hosts}",
        "etc/apt/sources.list": f"deb [signed-by=/build/keys/neuron.asc] https://{ARCHIVE} test main\n",
        "etc/apt/apt.conf.d/no-pauses": 'Acquire::Retries "0";\n',
        "etc/yum.repos.d/amazonlinux.repo": (
            f"[amazonlinux]\nname=Amazon Linux\nbaseurl=https://{ARCHIVE}/amazon\ngpgcheck=0\n"
        ),
        "etc/dnf/vars/releasever": "2023.9.20260101\n",
        "etc/pip.conf": (
            f"[global]\nindex-url = https://{ARCHIVE}/simple\ncert = /etc/ssl/certs/ca-certificates.crt\n"
        ),
        "etc/uv/uv.toml": f'index-url = "https://{ARCHIVE}/simple"\nsystem-certs = true\n',
    }.items():
        (root / path).write_text(text, encoding="utf-8")


def _prepare_repositories(build: Path) -> None:
    (build / "rpms").mkdir(parents=True)
    (build / "hosts").write_text(",".join(f"DNS:{host}" for host in (APT, DNF, PIP, ARCHIVE)), encoding="utf-8")
    for sdk in RELEASES:
        write_spec(build / "rpms", sdk, neuron_packages(sdk))
        for package in neuron_packages(sdk):
            write_deb(build / "debs" / APT, package)
    write_spec(build / "rpms", "amazon", amazon_packages())
    for package in ubuntu_packages():
        write_deb(build / "debs" / ARCHIVE, package)
    shutil.copy(HERE / "make_repositories.sh", build)


def write_bundle(base: Base, requirements: Mapping[str, str]) -> None:
    """Copy the scripts as a node has them, but for the key and the hashes, which are of our own packages here."""
    bundle = base.workspace / "bundle"
    shutil.copytree(NODES, bundle)
    for name, text in requirements.items():
        (bundle / name).write_text(text, encoding="utf-8")
    script = bundle / "lib/packages.sh"
    text = script.read_text(encoding="utf-8")
    assert text.count(f"NEURON_KEY={REAL_KEY}") == 1
    key = (base.build / "keys/fingerprint").read_text(encoding="utf-8").strip()
    script.write_text(text.replace(REAL_KEY, key), encoding="utf-8")
