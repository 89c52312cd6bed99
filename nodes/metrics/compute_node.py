"""The service of a compute node. Arguments: Region, cluster, queue."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from . import counters, service
from .cloudwatch import CloudWatch, Metric
from .neuron_monitor import NeuronMonitor, Report, core_count, execution_errors, summarize

UNITS = {
    "NeuronCoreUtilization": "Percent",
    "NeuronDeviceMemoryUsed": "Bytes",
    "UncorrectableErrors": "Count",
    "ExecutionErrors": "Count",
    "EfaReceivedBytes": "Bytes",
    "EfaSentBytes": "Bytes",
    "EfaRetransmittedBytes": "Bytes",
    "NodesReporting": "Count",
    "HeldIdleSeconds": "Seconds",
}
"""All metrics, and their units."""
STEP = b"slurmstepd: ["
"""Start of the command line of a process that runs a step of a job, such as ``slurmstepd: [13.batch]``.

Another slurmstepd, ``slurmstepd infinity``, is there without any job (https://slurm.schedmd.com/cgroup_v2.html).
"""


class ComputeNode:
    """What is known of the node since the last report that arrived."""

    def __init__(self, cloudwatch: CloudWatch, dimensions: dict[str, str], root: Path) -> None:
        """Begin to count now.

        Args:
            cloudwatch: Where metrics go.
            dimensions: Cluster, queue and node.
            root: Root directory.
        """
        self._cloudwatch = cloudwatch
        self._dimensions = dimensions
        self._root = root
        self._reported = counters.read(root)
        self._execution_errors = 0
        self._idle_since: float | None = None
        self.monitor = NeuronMonitor(root)

    def report(self, timestamp: float) -> None:
        """Send everything, at the node's turn, and see to it that neuron-monitor runs."""
        self._send(timestamp, {"NodesReporting": 1})
        self.monitor.keep_running()

    def report_last(self) -> None:
        """Send what was counted since the last report, as the service ends: the errors that end it above all."""
        self._send(time.time(), {})

    def _send(self, timestamp: float, values: dict[str, float]) -> None:
        reading = counters.read(self._root)
        values.update(counters.increases(self._reported, reading))
        reports = self.monitor.take()
        self._execution_errors += execution_errors(reports)
        summary = summarize(reports)
        if summary or self._execution_errors:
            values.update(summary, ExecutionErrors=self._execution_errors)
        if self._cloudwatch.send([*self._metrics(values), *self._held_idle(reports, summary, timestamp)], timestamp):
            self._reported = reading
            self._execution_errors = 0

    def _metrics(self, values: dict[str, float]) -> list[Metric]:
        queue = {name: value for name, value in self._dimensions.items() if name != "Node"}
        return [
            Metric(name, value, UNITS[name], dimensions)
            for name, value in values.items()
            for dimensions in (self._dimensions, queue)
        ]

    def _held_idle(self, reports: Sequence[Report], summary: Mapping[str, float], timestamp: float) -> list[Metric]:
        """Return for how long jobs have held the node without use of its NeuronCores.

        Nothing of a node without them, and nothing where no report tells of them: neuron-monitor may fail while a job
        works. Of the node itself it is told only where there is something to tell: each metric of each node costs.
        """
        step = has_step(self._root)
        if not step:
            self._idle_since = None
        if not any(core_count(report) for report in reports):
            return []
        if summary.get("NeuronCoreUtilization"):
            self._idle_since = None
        elif step and self._idle_since is None:
            self._idle_since = timestamp
        seconds = 0.0 if self._idle_since is None else timestamp - self._idle_since
        name, cluster = "HeldIdleSeconds", {"Cluster": self._dimensions["Cluster"]}
        return [
            Metric(name, seconds, UNITS[name], each) for each in (cluster, *([self._dimensions] if seconds else []))
        ]


def has_step(root: Path) -> bool:
    """Return whether a step of a Slurm job is on this node, by its processes: nobody asks Slurm's controller."""
    for command in root.glob("proc/[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            if command.read_bytes().startswith(STEP):
                return True
    return False


def main() -> None:
    """Report until the service is stopped."""
    region, cluster, queue = sys.argv[1:]
    name = os.uname().nodename.partition(".")[0]
    node = ComputeNode(CloudWatch(region), {"Cluster": cluster, "Queue": queue, "Node": name}, Path("/"))
    node.monitor.keep_running()
    service.run(name, node.report)
    node.report_last()
    node.monitor.stop()


if __name__ == "__main__":
    main()
