"""Training jobs on a Slurm of this machine: scripts/jobs where the head node puts it, and torch from .venv-training."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.slurm.base import USER, ClusterError
from tests.slurm.cluster import SlurmCluster

PROJECT = Path(__file__).parents[2]
JOBS = PROJECT / "scripts" / "jobs"
ENVIRONMENT = PROJECT / ".venv-training"
PYTHON = "/fsx/ultracluster/python/cpu"
"""A link to the environment, as the head node makes it of each release."""

SETTINGS = f"ULTRACLUSTER_PYTHON={PYTHON} WORKERS_PER_NODE=1 OMP_NUM_THREADS=1"
"""What jobs are submitted with. Workers of more than one thread would wait for each other's turn at the processors."""

TINY = (
    "--backend cpu --layers 2 --hidden 32 --heads 2 --intermediate 64 --vocabulary 256 --sequence-length 32 "
    "--max-predictions 5 --micro-batch 8 --global-batch 32 --learning-rate 0.01 --warmup-steps 2"
)
"""A model that two processors train in seconds."""


def borrowed() -> Mapping[str, Path]:
    """Return what machines need of this one to run torch: the environment, and the Python that it was made from.

    Raises:
        ClusterError: The environment is missing.
    """
    if not (ENVIRONMENT / ".complete").exists():
        raise ClusterError(f"These tests need {ENVIRONMENT.name}: make {ENVIRONMENT.name}/.complete")
    configuration = (ENVIRONMENT / "pyvenv.cfg").read_text(encoding="utf-8")
    settings = dict(line.split(" = ", 1) for line in configuration.splitlines())
    python = Path(settings["executable"]).resolve().parents[1]
    return {"/opt/training": ENVIRONMENT, str(python): python}


def install(cluster: SlurmCluster) -> None:
    """Put jobs and environment where a cluster has them. It is not running yet."""
    shared = cluster.directory / "shared/fsx/ultracluster"
    shutil.copytree(JOBS, shared / "jobs/1", ignore=shutil.ignore_patterns("__pycache__"))
    (shared / "jobs/current").symlink_to("1")
    (shared / "python").mkdir()
    (shared / "python/cpu").symlink_to("/opt/training")
    (shared / "compile-cache").mkdir()
    (shared / "compile-cache").chmod(0o1777)


def write_data(directory: Path) -> None:
    """Make directories with one shard each: ``good``, ``few`` with half a global batch, ``wrong`` without a dataset.

    They are for the sizes of ``TINY``, but for a vocabulary of 512.
    """
    script = """\
import sys
from pathlib import Path
from tests.training.shard_files import arrays, write_shard, write_shards
directory, content = Path(sys.argv[1]), dict(arrays(0, 32))
write_shards(directory / "good", (32,))
write_shards(directory / "few", (16,))
del content["segment_ids"]
write_shard(directory / "wrong/wikicorpus_training_0.hdf5", content)
"""
    subprocess.run([ENVIRONMENT / "bin/python", "-c", script, directory], cwd=PROJECT, check=True)


def submit(cluster: SlurmCluster, options: str) -> str:
    """Run submit.py as the user on the head node, with one worker for each node, and return what it prints."""
    command = f"{PYTHON}/bin/python /fsx/ultracluster/jobs/current/submit.py {options} 2>&1"
    return cluster.run(f"export {SETTINGS} LANG=C.UTF-8; {command}", user=USER, timeout=120)


class Run:
    """A run's directory on the shared file system of a cluster."""

    def __init__(self, cluster: SlurmCluster, name: str) -> None:
        self.path = f"/fsx/runs/{name}"
        self.directory = cluster.directory / f"shared{self.path}"

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
        """What the training job printed."""
        [file] = self.directory.glob("train-*.log")
        return file.read_text(encoding="utf-8")
