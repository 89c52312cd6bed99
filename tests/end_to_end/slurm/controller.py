"""A real Slurm controller of 1,875 cloud nodes under ParallelCluster's values, and how long it takes with many jobs.

No node ever starts: what is measured ends with the call of ResumeProgram, which in a cluster launches the instances. It
takes root and mmdebstrap. ``python -m tests.end_to_end.slurm.controller`` prints the measurements
as JSON, for ``make bench``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from emulator.machines import image
from tests.end_to_end.slurm.base import USER
from tests.end_to_end.slurm.cluster import SlurmCluster
from ultracluster.domain import slurm

HERE = Path(__file__).parent
NODES = 1875
_CALLS = "/var/log/slurm/resume"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """Work for the controller.

    Attributes:
        name: What it is, in words.
        command: What submits it, in the shell of a user.
        nodes: How many nodes it takes.
    """

    name: str
    command: str
    nodes: int


ONE_JOB = Load("one job of 1,875 nodes", f"sbatch --nodes={NODES} --wrap=true", NODES)
LOADS = (
    ONE_JOB,
    Load("1,000 jobs of one node", "for i in $(seq 1000); do sbatch --nodes=1 --wrap=true; done", 1000),
    Load("an array of 1,000", "sbatch --nodes=1 --array=1-1000 --wrap=true", 1000),
)
SETTINGS: Mapping[str, Mapping[str, str]] = {"ParallelCluster's": {}, "this stack's": slurm.custom_settings({})}
"""CustomSlurmSettings that are compared, by whose they are."""


@dataclass(frozen=True)
class Measurement:
    """How the controller dealt with a load, in seconds from the first submission.

    Attributes:
        submitted: Until the last job was accepted.
        allocated: Until every job had its nodes.
        resumed: Until ResumeProgram had been called for all of these nodes.
        calls: How often it was called.
        cpu: CPU seconds that the controller took.
    """

    submitted: float
    allocated: float
    resumed: float
    calls: int
    cpu: float


class Controller(SlurmCluster):
    """A controller, which runs within a ``with`` block that starts when it has looked for nodes to power up."""

    def __init__(self, base: Path, directory: Path, settings: Mapping[str, str]) -> None:
        """Describe a controller.

        Args:
            base: Root directory of `emulator.machines.image`.
            directory: Where its files go; an empty directory.
            settings: What ParallelCluster would get as CustomSlurmSettings.
        """
        directory.chmod(0o755)
        super().__init__(base, directory, nodes=0, settings=settings)

    def _write_configuration(self, settings: Mapping[str, str]) -> None:
        custom = "".join(f"{name}={value}\n" for name, value in settings.items())
        programs = {
            "suspend": "#!/bin/bash\n",
            "resume": f'#!/bin/bash\necho "$(date +%s.%N) $(scontrol show hostnames "$1" | wc --lines)" >>{_CALLS}\n',
        }
        files = {
            "slurm.conf": (HERE / "parallelcluster.conf").read_text(encoding="utf-8"),
            "cgroup.conf": "CgroupPlugin=disabled\n",
            "custom.conf": f"# CustomSlurmSettings\n{custom}",
            **programs,
        }
        for name, text in files.items():
            path = self.directory / "shared/opt/slurm/etc" / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755 if name in programs else 0o644)

    def is_up(self) -> bool:
        """Return whether it has looked for nodes to power up."""
        return any(line.startswith("POWER: Power save mode") for line in self.log())

    def log(self) -> list[str]:
        """Return the lines of the controller's log, without their times."""
        lines = self.run("cat /var/log/slurm/slurmctld.log").splitlines()
        return [line.partition("] ")[2] for line in lines]

    def measure(self, load: Load, *, timeout: float = 300) -> Measurement:
        """Submit a load, wait until ResumeProgram was called for all of its nodes, and return what it took.

        A controller that has just started has just looked for nodes to power up, which it does every 30 s.
        """
        start = time.time()
        self.run(load.command, user=USER, timeout=timeout)
        submitted = time.time() - start
        self.wait_until(lambda: not self.run("squeue --noheader --states=PENDING"), timeout)
        allocated = time.time() - start
        self.wait_until(lambda: sum(nodes for _, nodes in self._calls()) >= load.nodes, timeout)
        calls = self._calls()
        ticks = self.run("cut --delimiter=' ' --fields=14,15 /proc/$(pidof slurmctld)/stat").split()
        return Measurement(submitted, allocated, calls[-1][0] - start, len(calls), sum(map(int, ticks)) / _TICKS)

    def _calls(self) -> list[tuple[float, int]]:
        """Return when ResumeProgram was called, and for how many nodes."""
        lines = self.run(f"cat {_CALLS} 2>/dev/null || true").splitlines()
        return [(float(when), int(count)) for when, count in (line.split() for line in lines)]


def measure_all() -> dict[str, object]:
    """Return the measurements, by load and settings, each on a controller of its own, and the version of Slurm."""
    loads: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="ultracluster-slurm-") as name:
        workspace = Path(name)
        workspace.chmod(0o755)
        base = image.prepare()
        for load in LOADS:
            for whose, settings in SETTINGS.items():
                print(f"{load.name}, {whose} settings", file=sys.stderr, flush=True)
                with (
                    tempfile.TemporaryDirectory(dir=workspace) as directory,
                    Controller(base, Path(directory), settings) as controller,
                ):
                    loads.setdefault(load.name, {})[whose] = asdict(controller.measure(load))
                    version = controller.run("slurmctld -V").split()[1]
    return {"slurm": version, "loads": loads}


if __name__ == "__main__":
    print(json.dumps(measure_all()))
