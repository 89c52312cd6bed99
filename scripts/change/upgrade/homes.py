"""The move of /home from the head node of an earlier cluster to the file system of other settings."""

from __future__ import annotations

import shlex
from pathlib import Path

from config.settings import Settings
from scripts.account.deployment import Deployment
from scripts.account.file_systems import volume
from scripts.account.homes import file_system_id
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.core.clock import Clock
from scripts.core.errors import OperationError
from scripts.core.terminal import Say
from ultracluster.domain.homes import VOLUME_PATH

HOURS = 12
"""How long a copy may take."""
PROGRAM = Path(__file__).with_name("copy_homes.sh")


def copy(old: Deployment, new: Settings, clock: Clock, say: Say, *, last: bool) -> None:
    """Copy /home from the head node of an earlier cluster to the file system of other settings.

    A file that is newer there stays. Called again, it copies the rest; a copy that still runs on the node is awaited.

    Args:
        old: The deployment with the earlier cluster.
        new: The settings with the homes.
        clock: The clock.
        say: Tells the result.
        last: Whether every file must be there afterwards: nobody works on the earlier cluster any more.

    Raises:
        OperationError: The copy failed, or is incomplete.
    """
    words = program.of_file(PROGRAM, *mount_arguments(Deployment(old.name, new)), "all" if last else "once")
    answer = HeadNode(old, clock).run(shlex.join(words), seconds=HOURS * 3600)
    if answer.code:
        said = (answer.errors or answer.output).strip()
        raise OperationError(f"/home of {old.settings.cluster_spec.name} is not copied: {said}")
    for line in answer.output.strip().splitlines():
        say(line)


def mount_arguments(deployment: Deployment) -> tuple[str, str, str]:
    """Return what `mount` takes to mount the homes of the settings: type, options and source."""
    homes, region = deployment.settings.homes, deployment.settings.region
    name = file_system_id(deployment)
    if homes is None or name is None:
        raise OperationError(f"There are no homes of {deployment.settings.name}")
    if homes.type == "efs":
        return "efs", "tls", f"{name}:/"
    path = VOLUME_PATH
    if homes.file_system_id is not None:
        path = volume(deployment.account, homes.file_system_id).path
    return "nfs", "nfsvers=4.2", f"{name}.fsx.{region}.amazonaws.com:{path}"
