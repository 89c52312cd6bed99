"""The root directory that all machines start from, made once and kept in a cache.

It is Debian 13, whose Slurm is 24.11: ParallelCluster 3.16.1 ships 25.11
(https://github.com/aws/aws-parallelcluster/releases/tag/v3.16.1), of which no stable Debian has packages
(https://packages.debian.org/trixie/slurmctld). What the kernel and the hardware would tell comes from fakes.

`python -m emulator.machines.image` makes it, and prints where it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from emulator.machines.hardware.files import FAKES
from emulator.machines.support import MachineError

CACHE_VARIABLE: Final = "ULTRACLUSTER_MACHINES"
"""Environment variable with a directory to keep root directories in."""

_HERE: Final = Path(__file__).parent
_CHECKOUT: Final = _HERE.parents[1]
_LAID: Final = _HERE / "root"
"""What is laid over Debian, by its path there."""
_HARDWARE: Final = _HERE / "hardware"
_REQUIREMENTS: Final = _CHECKOUT / "constraints-machines.txt"

_SUITE: Final = "trixie"
_PACKAGES: Final = (
    "slurmctld", "slurmd", "slurmdbd", "slurm-client", "munge", "iproute2", "procps", "kmod", "curl", "gnupg",
    "python3", "mariadb-server-core", "mariadb-client-core", # a database of RDS
    "faketime", # a fault of the clock
    # what a Python that was built on another system needs
    "libbz2-1.0", "libffi8", "liblzma5", "libreadline8t64", "libsqlite3-0", "libssl3t64", "zlib1g",
)  # fmt: skip
_ESSENTIAL: Final = (
    "apt", "base-files", "base-passwd", "bash", "coreutils", "dash", "debianutils", "diffutils", "findutils", "grep",
    "gzip", "hostname", "init-system-helpers", "libc-bin", "login", "mawk", "mount", "ncurses-base", "ncurses-bin",
    "netbase", "passwd", "perl-base", "sed", "sysvinit-utils", "tar", "util-linux",
)  # fmt: skip
"""What Debian always has, where packages are only unpacked."""
_ALTERNATIVES: Final = {
    "usr/bin/awk": "mawk",
    **{f"usr/sbin/{name}": f"{name}-wlm" for name in ("slurmctld", "slurmd", "slurmstepd")},
}
_OF_PACKAGES: Final = {"slurm": 64030, "munge": 100}
"""Users that the packages make, whose numbers are those of Debian."""
_CLIENTS: Final = (
    "sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "scrontab", "sdiag", "sinfo",
    "sprio", "squeue", "sreport", "srun", "sshare", "sstat", "strigger",
)  # fmt: skip
_UNWANTED: Final = (
    "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/[a-ln-z]*",
    "/usr/share/man/man[1-46-9]/*",
)  # fmt: skip
"""man5 stays: it tells which parameters this Slurm knows."""
_FAKE_COMMANDS: Final = {
    "dkms": "usr/sbin",
    "lctl": "usr/sbin",
    "modinfo": "usr/sbin",
    "modprobe": "usr/sbin",
    "nproc": "usr/bin",
    "uname": "usr/bin",
}
"""Where fakes are, of those that are on machines with and without Neuron devices."""
_COMMANDS: Final = (
    "aws", "clustermgtd", "computemgtd", "journalctl3", "slurm_fleet_status_manager", "slurm_resume", "slurm_suspend",
    "systemctl3.py",
)  # fmt: skip
"""Commands of the Python packages."""
_PYTHON: Final = "opt/parallelcluster/python"
_PACKAGE: Final = "usr/lib/emulator/emulator/machines"
"""Where `emulator.machines` is on a machine."""
_IGNORED: Final = shutil.ignore_patterns("__pycache__")
_UNITS: Final = ("etc/systemd/system", "usr/lib/systemd/system")
_USERS: Final = {"pcluster-admin": 400, "ubuntu": 1000}
_DIRECTORIES: Final = (
    "fsx", "scratch", "opt/emulator", "opt/slurm/etc",
    "var/log/parallelcluster", "var/log/slurm", "var/spool/slurmctld", "var/spool/slurmd",
)  # fmt: skip

_in_use: Final[list[int]] = []
"""Open directories, whose locks keep other processes from deleting them as long as this one runs."""


def prepare(cache: Path | None = None, say: Callable[[str], object] = lambda _: None) -> Path:
    """Return the root directory for machines; make it if it is missing, which takes half a minute or more.

    Nobody deletes it while this process runs. Those that were made of something older are deleted when a new one is
    complete.

    Args:
        cache: Directory to keep it in; None: the one that ULTRACLUSTER_MACHINES names, or one in the user's cache.
        say: Is told of what an interrupted set-up has left, which is deleted.

    Raises:
        MachineError: It cannot be made; the message says why.
    """
    kind = "root" if os.geteuid() == 0 else "user"  # neither can delete what the other made
    directory = (cache or default_cache()) / kind
    try:
        return cached(directory, _key(), _make, say)
    except OSError as error:
        raise MachineError(f"{directory}: {error}") from error


def default_cache() -> Path:
    """Return the directory that root directories are kept in, unless told otherwise."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ultracluster" / "machines"


def cached(
    cache: Path, key: str, make: Callable[[Path], object], say: Callable[[str], object] = lambda _: None
) -> Path:
    """Return the directory of a key, which only this function makes and deletes.

    It is made under another name, and gets its own when it is complete: what an interrupted process leaves is deleted
    by the next.

    Args:
        cache: Directory with those of all keys.
        key: 16 hexadecimal digits.
        make: Makes a directory, with everything in it.
        say: Is told of what an interrupted process has left.
    """
    cache.mkdir(parents=True, exist_ok=True)
    image = cache / key
    with _locked(cache):
        for leftover in cache.glob("new-*"):
            say(f"{leftover}, which an interrupted set-up has left, is deleted.")
            shutil.rmtree(leftover)
        if not image.exists():
            directory = Path(tempfile.mkdtemp(prefix="new-", dir=cache))
            directory.chmod(0o755)
            make(directory)
            directory.rename(image)
        _hold(image)
        for other in cache.iterdir():
            if other != image and re.fullmatch("[0-9a-f]{16}", other.name):
                _delete_unused(other)
    return image


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    with (cache / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _hold(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    _in_use.append(descriptor)


def _delete_unused(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another name first: what is deleted in part must not be taken for complete.
            shutil.rmtree(directory.rename(directory.with_name(f"new-{directory.name}")))
    finally:
        os.close(descriptor)


def key_of(files: Iterator[Path], *values: object) -> str:
    """Return a key that is another one if the content, name or mode of a file or one of the values is."""
    digest = hashlib.sha256(repr(values).encode())
    for file in files:
        content = str(file.readlink()).encode() if file.is_symlink() else file.read_bytes()
        digest.update(f"{file.name} {file.lstat().st_mode} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _key() -> str:
    return key_of(_sources(), os.geteuid() == 0)


def _sources() -> Iterator[Path]:
    """Yield all files that a root directory is made of, this one included."""
    yield Path(__file__)
    yield _REQUIREMENTS
    for directory in (_LAID, _HARDWARE):
        files = (path for path in directory.rglob("*") if not path.is_dir())
        yield from sorted(path for path in files if path.suffix != ".pyc")


def _make(root: Path) -> None:
    is_root = os.geteuid() == 0
    if is_root and not shutil.which("mmdebstrap"):
        _run("apt-get", "--quiet=2", "update")
        _run("apt-get", "--quiet=2", "--yes", "install", "--no-install-recommends", "mmdebstrap")
    if is_root:
        _install_debian(root, "--mode=root", "--variant=minbase", "--dpkgopt=force-unsafe-io", packages=_PACKAGES)
    else:
        _install_debian(root, "--mode=chrootless", "--variant=extract", packages=_ESSENTIAL + _PACKAGES)
        _configure(root)
    _add_users(root)
    for path in _DIRECTORIES:
        (root / path).mkdir(parents=True, exist_ok=True)
    _install_slurm(root)
    _install_python(root)
    for path in _UNITS:  # what systemd would do itself, and what Debian would start
        shutil.rmtree(root / path)
        (root / path).mkdir()
    (root / "usr/bin/uname").rename(root / "usr/bin/uname.real")
    for command, directory in _FAKE_COMMANDS.items():
        _replace(FAKES / command, root / directory / command)
    for laid in sorted(_LAID.rglob("*")):
        if not laid.is_dir():
            _replace(laid, root / laid.relative_to(_LAID))
    shutil.copytree(_HARDWARE, root / _PACKAGE / _HARDWARE.name, ignore=_IGNORED)
    as_root = () if is_root else ("unshare", "--map-root-user")
    _run(*as_root, "chroot", str(root), "python3", "-m", "compileall", "-q", f"/{_PYTHON}")


def _install_debian(root: Path, *options: str, packages: tuple[str, ...]) -> None:
    # It ends with this process. As root it mounts /proc, /sys and /dev: in a namespace, so that no mount outlives it.
    isolated = ["setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        isolated += ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    unwanted = [f"--dpkgopt=path-exclude={path}" for path in _UNWANTED]
    include = f"--include={','.join(packages)}"
    _run(*isolated, "mmdebstrap", "--quiet", *options, *unwanted, include, _SUITE, str(root))


def _configure(root: Path) -> None:
    """Do what matters of what the packages' scripts would have done: without root they are only unpacked."""
    for name, more in {"passwd": "{0}::/nonexistent:/usr/sbin/nologin", "group": ""}.items():
        text = (root / "usr/share/base-passwd" / f"{name}.master").read_text(encoding="utf-8").replace(":*:", ":x:")
        text += "".join(f"{user}:x:{number}:{more.format(number)}\n" for user, number in _OF_PACKAGES.items())
        (root / "etc" / name).write_text(text, encoding="utf-8")
    shutil.copy(root / "usr/share/libc-bin/nsswitch.conf", root / "etc")
    for link, target in _ALTERNATIVES.items():
        (root / link).symlink_to(target)
    (root / "var/lib/dpkg/info").mkdir(parents=True, exist_ok=True)


def _add_users(root: Path) -> None:
    accounts, groups = (root / "etc" / name for name in ("passwd", "group"))
    for name, number in _USERS.items():
        with accounts.open("a", encoding="utf-8") as file:
            file.write(f"{name}:x:{number}:{number}::/home/{name}:/bin/bash\n")
        with groups.open("a", encoding="utf-8") as file:
            file.write(f"{name}:x:{number}:\n")
        home = root / "home" / name
        home.mkdir()
        if os.geteuid() == 0:
            os.chown(home, number, number)
    (root / "root").chmod(0o755)  # directories of the computer may be mounted below


def _install_slurm(root: Path) -> None:
    """Lay Slurm's commands where ParallelCluster has them."""
    for path in ("var/spool/slurmctld", "var/log/slurm"):
        if os.geteuid() == 0:
            shutil.chown(root / path, _OF_PACKAGES["slurm"], _OF_PACKAGES["slurm"])
    for path in (
        *(f"/usr/bin/{name}" for name in _CLIENTS),
        "/usr/sbin/slurmctld",
        "/usr/sbin/slurmd",
        "/usr/sbin/slurmdbd",
    ):
        link = root / "opt/slurm" / Path(path).relative_to("/usr")
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(path)
    shutil.rmtree(root / "etc/slurm")
    (root / "etc/slurm").symlink_to("/opt/slurm/etc")


def _install_python(root: Path) -> None:
    """Install the Python packages, without the examples of AWS's command line and its copy of the SDK's data."""
    packages, commands = root / _PYTHON, root / "opt/parallelcluster/bin"
    _run(
        str(_CHECKOUT / ".uv/bin/uv"), "pip", "install", "--quiet", "--target", str(packages), "--link-mode=copy",
        "--python", sys.executable, "--python-version=3.13", "--no-deps", "--require-hashes",
        "--requirements", str(_REQUIREMENTS),
    )  # fmt: skip
    shutil.rmtree(packages / "awscli/examples")
    shutil.rmtree(packages / "awscli/botocore/data")
    (packages / "awscli/botocore/data").symlink_to("../../botocore/data")
    commands.mkdir()
    for name in _COMMANDS:
        _, _, program = (packages / "bin" / name).read_text(encoding="utf-8").partition("\n")
        (commands / name).write_text(f"#!/usr/bin/python3\n{program}", encoding="utf-8")
        (commands / name).chmod(0o755)
    shutil.rmtree(packages / "bin")
    importable = root / "usr/local/lib/python3.13/dist-packages/parallelcluster.pth"
    importable.parent.mkdir(parents=True, exist_ok=True)
    importable.write_text(f"/{_PYTHON}\n", encoding="utf-8")


def _replace(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copy(source, target, follow_symlinks=False)


def _run(*command: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()},
    )  # fmt: skip
    if done.returncode:
        raise MachineError(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}")


if __name__ == "__main__":
    print(prepare())
