"""The service of the head node: what Slurm and ParallelCluster say of nodes and queues. Arguments: Region, cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from . import service
from .cloudwatch import CloudWatch, Metric

CONTROLLER_LOG = Path("/var/log/slurmctld.log")
REASON = "ultracluster: "
"""Start of the reason of a node that health/check.sh drained."""

_TIME_LIMIT = 15
_FLEET_STATUS = "/usr/local/bin/get-compute-fleet-status.sh"
_STOPPED = {"STOP_REQUESTED", "STOPPING", "STOPPED", "START_REQUESTED", "STARTING"}


class HeadNode:
    """What the head node tells of its cluster."""

    def __init__(self, cloudwatch: CloudWatch, cluster: str, log: Path) -> None:
        """Read the log of Slurm's controller.

        Args:
            cloudwatch: Where metrics go.
            cluster: Name of the cluster.
            log: The log.
        """
        self._cloudwatch = cloudwatch
        self._cluster = cluster
        self._log = ControllerLog(log)

    def report(self, timestamp: float) -> None:
        """Send what Slurm says now; nothing if its controller does not answer."""
        drained = drained_in_log(self._log.read())
        try:
            states = partitions()
            drained |= drained_now()
            protected = protected_queues(states)
        except (OSError, subprocess.SubprocessError) as failure:
            print(f"{type(failure).__name__}: Slurm's controller does not answer")
            return
        counts = {queue: (count_of(queue, drained), int(queue in protected)) for queue in states}
        self._cloudwatch.send(self._metrics(counts), timestamp)

    def _metrics(self, counts: dict[str, tuple[int, int]]) -> list[Metric]:
        metrics = []
        for index, name in enumerate(("NodesDrainedByHealth", "QueuesProtected")):
            of_queues = {queue: count[index] for queue, count in counts.items()}
            metrics.append(Metric(name, sum(of_queues.values()), "Count", {"Cluster": self._cluster}))
            for queue, count in of_queues.items():
                metrics.append(Metric(name, count, "Count", {"Cluster": self._cluster, "Queue": queue}))
        return metrics


class ControllerLog:
    """The log of Slurm's controller, from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file, self._position = self._status()

    def read(self) -> str:
        """Return what was written since the last time. What is left of a log when it is rotated is not read."""
        file, size = self._status()
        start = self._position if file == self._file and size >= self._position else 0
        self._file, self._position = file, size
        if size == start:
            return ""
        with self._path.open("rb") as log:
            log.seek(start)
            return log.read(size - start).decode("utf-8", "replace")

    def _status(self) -> tuple[int, int]:
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


def protected_queues(states: Mapping[str, str]) -> set[str]:
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


def main() -> None:
    """Report until the service is stopped."""
    region, cluster = sys.argv[1:]
    service.run(cluster, HeadNode(CloudWatch(region), cluster, CONTROLLER_LOG).report)


if __name__ == "__main__":
    main()
