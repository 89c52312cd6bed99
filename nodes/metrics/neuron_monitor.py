"""What neuron-monitor tells of the Neuron devices.

It is AWS's own program, which prints a JSON object a line at each period of its configuration, ``neuron_monitor.json``
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-monitor-user-guide.html). That
asks for ``memory_info``, which costs little, so that there is something to collect when nothing uses the devices.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PROGRAM = "opt/aws/neuron/bin/neuron-monitor"
_CONFIGURATION = Path(__file__).with_name("neuron_monitor.json")

Report = Mapping[str, Any]


class NeuronMonitor:
    """The program, if the node has it."""

    def __init__(self, root: Path) -> None:
        self._program = root / PROGRAM
        self._process: subprocess.Popen[str] | None = None
        self._lines: deque[str] = deque(maxlen=10)

    def keep_running(self) -> None:
        """Start the program unless it runs: the reload of the driver ends it, and so may a user."""
        if (self._process and self._process.poll() is None) or not self._program.exists():
            return
        command = [str(self._program), "-c", str(_CONFIGURATION)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def _read(self, output: IO[str]) -> None:
        self._lines.extend(output)

    def take(self) -> list[Report]:
        """Return the reports since the last time."""
        reports = []
        while self._lines:
            try:
                reports.append(json.loads(self._lines.popleft()))
            except ValueError:  # it was killed in the middle of a line
                continue
        return reports

    def stop(self) -> None:
        """End the program."""
        if self._process:
            self._process.terminate()
            self._process.wait()


def summarize(reports: Sequence[Report]) -> dict[str, float]:
    """Return the metrics of some reports, without errors: nothing if no program uses the devices, or there are none.

    So a node without a job does not look like one that the others of its job wait for. Utilization is the mean over all
    NeuronCores of the node, of which a report names those in use. Memory is that of the last report: ``neuron_device``
    in the guide, ``device`` in a record of the tools of release 2.28.
    """
    seen = [report for report in reports if core_count(report) and report.get("neuron_runtime_data")]
    if not seen:
        return {}
    used = (group.get("neuron_runtime_used_bytes") or {} for group in _groups(seen[-1], "memory_used"))
    return {
        "NeuronCoreUtilization": sum(utilization(report) for report in seen) / len(seen),
        "NeuronDeviceMemoryUsed": sum(bytes_.get("neuron_device", bytes_.get("device", 0)) for bytes_ in used),
    }


def core_count(report: Report) -> int:
    """Return how many NeuronCores the node has; 0 if the driver is not loaded."""
    hardware = report.get("neuron_hardware_info") or {}
    return int(hardware.get("neuron_device_count", 0) * hardware.get("neuroncore_per_device_count", 0))


def utilization(report: Report) -> float:
    """Return the mean utilization of the node's NeuronCores in percent."""
    in_use = (group.get("neuroncores_in_use") or {} for group in _groups(report, "neuroncore_counters"))
    total = sum(core["neuroncore_utilization"] for cores in in_use for core in cores.values())
    return float(total / core_count(report))


def execution_errors(reports: Sequence[Report]) -> int:
    """Return how many executions failed, of any kind: the numbers are of the period of each report."""
    groups = [group for report in reports for group in _groups(report, "execution_stats")]
    return sum(count for group in groups for count in (group.get("error_summary") or {}).values())


def _groups(report: Report, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield a metric group of each program that uses the devices."""
    for runtime in report.get("neuron_runtime_data") or []:
        yield (runtime.get("report") or {}).get(name) or {}
