"""Whether machines can be made on this computer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from emulator.machines import own_users

_TRIAL: Final = """
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/lower /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
"""
_TRIAL_OF_OWN_USERS: Final = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work,userxattr" "$1/root"
mount -t proc proc "$1/root/proc"
rm --recursive "$1/root/var/log"
mkdir "$1/root/var/log"
rmdir "$1/root/var/log"
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


def has_own_users(image: Path) -> bool:
    """Return whether machines that root starts can have users of their own, so that their root is nobody here.

    Args:
        image: The root directory that they start from.
    """
    return not _refusal_of_own_users(image)


@cache
def _refusal_of_own_users(image: Path) -> str:
    trial = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "sh", "-c", _TRIAL_OF_OWN_USERS]
    return _refusal([*own_users.command([image]), *trial, own_users.seen(0), own_users.SITE])


def warning(image: Path) -> str:
    """Return what root should know who starts machines here; empty: nothing."""
    if os.geteuid() != 0 or has_own_users(image):
        return ""
    return (
        "Root of a node is root of this computer here, for the kernel refuses it users of its own: "
        f"{_refusal_of_own_users(image)}. To do: run this without root, or run nothing in nodes that you do not trust."
    )


def _try_namespaces(*, is_root: bool) -> str:
    user = () if is_root else ("--user", "--map-root-user")
    return _refusal(["unshare", *user, "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "sh", "-c", _TRIAL])


def _refusal(command: Sequence[str]) -> str:
    """Return why a command failed; empty: it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except FileNotFoundError:
        return "there is no command unshare"
    return " ".join(done.stderr.split()) or f"exit code {done.returncode}" if done.returncode else ""


if __name__ == "__main__":
    print(reason() or "Machines can be made here.")
