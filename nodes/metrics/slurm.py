"""What Slurm and ParallelCluster on the head node say of nodes and queues."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

REASON = "ultracluster: "
"""Start of the reason of a node that health/check.sh drained."""

_TIME_LIMIT = 15
_FLEET_STATUS = "/usr/local/bin/get-compute-fleet-status.sh"
_STOPPED = {"STOP_REQUESTED", "STOPPING", "STOPPED", "START_REQUESTED", "STARTING"}


class ControllerLog:
    """The log of Slurm's controller, from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file, self._position = self._look()

    def read(self) -> str:
        """Return what was written since the last time. What is left of a log when it is rotated is not read."""
        file, size = self._look()
        start = self._position if file == self._file and size >= self._position else 0
        self._file, self._position = file, size
        if size == start:
            return ""
        with self._path.open("rb") as log:
            log.seek(start)
            return log.read(size - start).decode("utf-8", "replace")

    def _look(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return 0, 0
        return status.st_ino, status.st_size


def drained_in_log(text: str) -> set[str]:
    """Return the nodes that health checks drained, by the log of Slurm's controller.

    ParallelCluster replaces a drained node within a minute or so, and sets another reason: a look at the nodes once a
    minute would miss it.
    """
    return set(re.findall(rf"node (\S+) reason set to: {REASON}", text))


def drained_now() -> set[str]:
    """Return the nodes that are drained now because health checks drained them.

    Raises:
        OSError: There is no Slurm.
        subprocess.SubprocessError: Its controller does not answer.
    """
    lines = _run("sinfo", "--all", "--Node", "--noheader", "--states=drain", "--format=%N|%E").splitlines()
    return {line.partition("|")[0] for line in lines if line.partition("|")[2].startswith(REASON)}


def partitions() -> dict[str, str]:
    """Return the state of each partition, which is a queue of ParallelCluster, such as UP or INACTIVE.

    Raises:
        OSError: There is no Slurm.
        subprocess.SubprocessError: Its controller does not answer.
    """
    shown = _run("scontrol", "--all", "--oneliner", "show", "partition")
    return dict(re.findall(r"^PartitionName=(\S+) .*\bState=(\S+)", shown, re.MULTILINE))


def protected(states: Mapping[str, str]) -> set[str]:
    """Return the queues that ParallelCluster took out of service because their nodes keep failing to start.

    It makes their partitions INACTIVE and the fleet PROTECTED
    (https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-protected-mode-v3.html). It makes all partitions
    INACTIVE too when somebody stops the fleet, which is no fault.

    Args:
        states: State of each partition.
    """
    inactive = {name for name, state in states.items() if state == "INACTIVE"}
    return set() if not inactive or fleet_status() in _STOPPED else inactive


def fleet_status() -> str:
    """Return the status of ParallelCluster's compute fleet; empty if it is not known.

    ParallelCluster's own daemon asks the same program (https://github.com/aws/aws-parallelcluster-node,
    src/slurm_plugin/clustermgtd.py).
    """
    try:
        return str(json.loads(_run(_FLEET_STATUS)).get("status", ""))
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""


def count_of(queue: str, nodes: Collection[str]) -> int:
    """Return how many of some nodes are of a queue: the names of its static and dynamic nodes start with its own."""
    return sum(node.startswith((f"{queue}-st-", f"{queue}-dy-")) for node in nodes)


def _run(*command: str) -> str:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        timeout=_TIME_LIMIT, check=True,
    ).stdout  # fmt: skip
