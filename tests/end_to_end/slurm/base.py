"""The root directory that all machines of a Slurm cluster start from, and how commands are run around it."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import subprocess
from pathlib import Path

USER, USER_ID = "trainee", 1001
"""Who submits jobs."""

_PACKAGES = "slurmctld,slurmd,slurm-client,munge,iproute2,procps,kmod"
_LIBRARIES = "libbz2-1.0,libffi8,liblzma5,libreadline8t64,libsqlite3-0,libssl3t64,zlib1g"
"""What a Python that was built on another system needs."""
MOUNTS = ("fsx", "home", "etc/slurm", "opt/slurm", "opt/ultracluster/current")
"""What all machines of a cluster share."""

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TMPDIR": "/tmp",  # noqa: S108 - a root directory has no other directory for files
}
"""That of a machine, whatever the tests are started with: jobs inherit what their submitter has.

What coverage would measure there, it would write to where nobody looks.
"""


class ClusterError(RuntimeError):
    """Something is missing, or a command failed; the message says what."""


def create_base(directory: Path) -> None:
    """Make the root directory that all machines start from: Debian 13, whose Slurm is 24.11.

    ParallelCluster 3.16.1 ships 25.11 (https://github.com/aws/aws-parallelcluster/releases/tag/v3.16.1), of which no
    stable Debian has packages: 24.11 is the newest of them (https://packages.debian.org/trixie/slurmctld).

    Raises:
        ClusterError: Something is missing.
    """
    make_root(directory, "trixie", "--variant=minbase", f"--include={_PACKAGES},{_LIBRARIES}")
    _complete(directory)


def make_root(directory: Path, suite: str, *options: str) -> None:
    """Make a root directory of a release of Debian.

    Raises:
        ClusterError: Something is missing.
    """
    if os.geteuid() != 0:
        raise ClusterError("Root directories and namespaces need root: run these tests as root, or leave them out.")
    if not shutil.which("mmdebstrap"):
        call("apt-get", "--quiet=2", "update")
        call("apt-get", "--quiet=2", "--yes", "install", "--no-install-recommends", "mmdebstrap")
    call("mmdebstrap", "--quiet", "--dpkgopt=force-unsafe-io", *options, suite, str(directory))


def _complete(base: Path) -> None:
    for mount in (*MOUNTS, "scratch", "var/spool/slurmctld", "var/spool/slurmd", "var/log/slurm", "run/munge"):
        (base / mount).mkdir(parents=True, exist_ok=True)
    (base / "root").chmod(0o755)  # directories of the machine that runs the tests may be mounted below
    slurm = re.search(r"^slurm:x:(\d+):(\d+):", (base / "etc/passwd").read_text(encoding="utf-8"), re.MULTILINE)
    assert slurm
    for path in ("var/spool/slurmctld", "var/log/slurm"):
        os.chown(base / path, int(slurm[1]), int(slurm[2]))
    with (base / "etc/passwd").open("a", encoding="utf-8") as passwd:
        passwd.write(f"{USER}:x:{USER_ID}:{USER_ID}::/home/{USER}:/bin/bash\n")
    with (base / "etc/group").open("a", encoding="utf-8") as group:
        group.write(f"{USER}:x:{USER_ID}:\n")
    key = base / "etc/munge/munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    os.chown(key, 0, 0)


def call(*command: str, timeout: float = 600) -> str:
    """Run a command and return what it prints.

    Raises:
        ClusterError: It failed.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=timeout, check=False, env=ENVIRONMENT,
    )  # fmt: skip
    if done.returncode:
        raise ClusterError(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout
