"""Whether machines can be made on this computer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

_TRIAL: Final = """
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/lower /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
"""
_WITHOUT: Final = "Everything else of the emulated AWS works without them"


class MachineError(RuntimeError):
    """A machine, or what it is made of, could not be made; the message says why."""


def reason() -> str:
    """Return why no machines can be made here, and what to do; empty: they can."""
    is_root = os.geteuid() == 0
    return explain(
        platform=sys.platform,
        is_root=is_root,
        has_debian=bool(shutil.which("mmdebstrap") or (is_root and shutil.which("apt-get"))),
        refusal=_try_namespaces(is_root=is_root) if sys.platform == "linux" else "",
    )


def explain(*, platform: str, is_root: bool, has_debian: bool, refusal: str) -> str:
    """Return what `reason` says of a computer.

    Args:
        platform: As sys.platform has it.
        is_root: Whether this is the user root.
        has_debian: Whether a root directory of Debian can be made: mmdebstrap is there, or can be installed.
        refusal: What the system said when it was asked for namespaces and an overlay file system; empty: it has them.
    """
    if platform != "linux":
        return f"Nodes as machines need Linux, and this is {platform}. {_WITHOUT}."
    if not has_debian:
        return f"Nodes as machines need mmdebstrap: apt-get install mmdebstrap, on Debian or Ubuntu. {_WITHOUT}."
    if refusal and is_root:
        return (
            f"Nodes as machines need namespaces and overlay file systems, which this container refuses: {refusal}. "
            f"To do: start it with more rights (docker run --privileged). {_WITHOUT}."
        )
    if refusal:
        return (
            f"Nodes as machines need root, or user namespaces, which this system refuses: {refusal}. To do: run this "
            "as root, or see sysctl user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns. "
            f"{_WITHOUT}."
        )
    return ""


def _try_namespaces(*, is_root: bool) -> str:
    user = () if is_root else ("--user", "--map-root-user")
    command = ["unshare", *user, "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "sh", "-c", _TRIAL]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except FileNotFoundError:
        return "there is no command unshare"
    return " ".join(done.stderr.split()) or f"exit code {done.returncode}" if done.returncode else ""


if __name__ == "__main__":
    print(reason() or "Machines can be made here.")
