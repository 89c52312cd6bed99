"""The service of the head node. Arguments: Region, cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from . import service, slurm
from .cloudwatch import CloudWatch, Metric, Trouble

CONTROLLER_LOG = Path("/var/log/slurmctld.log")


class HeadNode:
    """What the head node tells of its cluster."""

    def __init__(self, cloudwatch: CloudWatch, cluster: str, log: Path) -> None:
        """Begin to read the log of Slurm's controller.

        Args:
            cloudwatch: Where metrics go.
            cluster: Name of the cluster.
            log: The log.
        """
        self._cloudwatch = cloudwatch
        self._cluster = cluster
        self._log = slurm.ControllerLog(log)
        self._trouble = Trouble()

    def report(self, timestamp: float) -> None:
        """Send what Slurm says now; nothing if its controller does not answer."""
        drained = slurm.drained_in_log(self._log.read())
        try:
            partitions = slurm.partitions()
            drained |= slurm.drained_now()
            protected = slurm.protected(partitions)
        except (OSError, subprocess.SubprocessError) as failure:
            self._trouble.tell(f"{type(failure).__name__}: Slurm's controller does not answer")
            return
        self._trouble.tell("")
        counts = {queue: (slurm.count_of(queue, drained), int(queue in protected)) for queue in partitions}
        self._cloudwatch.send(self._metrics(counts), timestamp)

    def _metrics(self, counts: dict[str, tuple[int, int]]) -> list[Metric]:
        metrics = []
        for index, name in enumerate(("NodesDrainedByHealth", "QueuesProtected")):
            of_queues = {queue: count[index] for queue, count in counts.items()}
            metrics.append(Metric(name, sum(of_queues.values()), "Count", {"Cluster": self._cluster}))
            for queue, count in of_queues.items():
                metrics.append(Metric(name, count, "Count", {"Cluster": self._cluster, "Queue": queue}))
        return metrics


def main() -> None:
    """Report until the service is stopped."""
    region, cluster = sys.argv[1:]
    service.run(cluster, HeadNode(CloudWatch(region), cluster, CONTROLLER_LOG).report)


if __name__ == "__main__":
    main()
