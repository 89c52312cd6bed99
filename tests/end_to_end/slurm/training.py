"""Training jobs on a Slurm of this machine: training where the head node puts it, and torch from .venv-training."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.end_to_end.slurm.base import USER, ClusterError
from tests.end_to_end.slurm.cluster import SlurmCluster

PROJECT = Path(__file__).parents[3]
JOBS = PROJECT / "training"
ENVIRONMENT = PROJECT / ".venv-training"
CLUSTER_JOBS = "/fsx/ultracluster/jobs/current"
PYTHON = "/fsx/ultracluster/python/cpu"
"""A link to the environment, as the head node makes it of each release."""

TINY = (
    "--backend cpu --layers 2 --hidden 32 --heads 2 --intermediate 64 --vocabulary 256 --sequence-length 32 "
    "--max-predictions 5 --micro-batch 8 --global-batch 32 --learning-rate 0.01 --warmup-steps 2"
)
"""A model that two processors train in seconds."""
STEPS = 20
MINE = "/fsx/mine"
"""A program that this project does not know."""
RUN = f"{TINY} --steps {STEPS} --checkpoint-interval 4"


def borrowed() -> Mapping[str, Path]:
    """Return what machines need of this one to run torch: the environment, and the Python that it was made from.

    Raises:
        ClusterError: The environment is missing.
    """
    if not (ENVIRONMENT / ".complete").exists():
        raise ClusterError(f"These tests need {ENVIRONMENT.name}: make {ENVIRONMENT.name}/.complete")
    python = (ENVIRONMENT / "bin/python").resolve().parents[1]
    return {"/opt/cpu": ENVIRONMENT, str(python): python}


def install(cluster: SlurmCluster) -> None:
    """Put jobs and environment where a cluster has them. It is not running yet."""
    shared = cluster.directory / "shared/fsx/ultracluster"
    shutil.copytree(JOBS, shared / "jobs/1", ignore=shutil.ignore_patterns("__pycache__"))
    (shared / "jobs/current").symlink_to("1")
    (shared / "python").mkdir()
    (shared / "python/cpu").symlink_to("/opt/cpu")
    for name in ("compile-cache", "envs"):
        (shared / name).mkdir()
        (shared / name).chmod(0o1777)
    (shared.parent / "bin").mkdir()
    shutil.copy(PROJECT / ".uv/bin/uv", shared.parent / "bin")
    shutil.copytree(PROJECT / "tests/training/mine", shared.parent / "mine")


def exports(workers: int = 1, python: str = PYTHON) -> str:
    """Return the command of a shell that sets what jobs are submitted with.

    Workers of more than one thread would wait for each other's turn at the processors.
    """
    return f"export ULTRACLUSTER_PYTHON={python} WORKERS_PER_NODE={workers} OMP_NUM_THREADS=1 LANG=C.UTF-8"


def start(
    cluster: SlurmCluster,
    name: str,
    *,
    further: str = "",
    options: str = RUN,
    before: str = "true",
    workers: int = 1,
    python: str = PYTHON,
) -> tuple[Run, int]:
    """Submit a run of this name on two nodes by submit.py, and return it with the number of its training job."""
    words = f"--nodes 2 --output /fsx/runs/{name} {further} -- {options}"
    command = f"{PYTHON}/bin/python {CLUSTER_JOBS}/submit.py {words} 2>&1"
    printed = cluster.run(f"{exports(workers, python)}; {before}; {command}", user=USER)
    [line] = [line for line in printed.splitlines() if line.startswith("train ")]
    return Run(cluster.directory / "shared/fsx/runs" / name), int(line.split()[2].rstrip(","))


def fake_python(cluster: SlurmCluster, name: str, program: str) -> str:
    """Return the directory of an environment whose Python is a program of bash."""
    python = cluster.directory / f"shared/fsx/{name}/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/bash\n{program}\n", encoding="utf-8")
    python.chmod(0o755)
    return f"/fsx/{name}"


class Run:
    """The directory of a run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What was recorded of each step so far; a line that is being written does not count."""
        file = self.directory / "metrics.jsonl"
        if not file.exists():
            return []
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def losses(self) -> dict[int, float]:
        """The loss by step."""
        return {line["step"]: line["loss"] for line in self.metrics}

    @property
    def log(self) -> str:
        """What the training job has printed."""
        return "".join(file.read_text(encoding="utf-8") for file in self.directory.glob("train-*.log"))
