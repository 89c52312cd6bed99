"""What machines of tests have in common, and how commands are run around them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

USER, USER_ID = "ubuntu", 1000
"""Who submits jobs."""

MOUNTS = ("fsx", "home", "opt/slurm", "opt/ultracluster/current")
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
