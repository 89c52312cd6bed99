"""Slurm clusters. Their root directory takes half a minute, once for all tests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.end_to_end.slurm import training
from tests.end_to_end.slurm.base import create_base
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.shared import shared_directory


@pytest.fixture(scope="session")
def slurm_workspace() -> Iterator[Path]:
    """Directory for clusters, with their root directory."""
    with shared_directory("slurm", lambda workspace: create_base(workspace / "base")) as workspace:
        yield workspace


@pytest.fixture
def start_cluster(slurm_workspace: Path) -> Iterator[Callable[..., SlurmCluster]]:
    """Return a function that starts a cluster: number of nodes, settings. It ends with the test."""
    with ExitStack() as clusters:

        def start(nodes: int = 4, **settings: str) -> SlurmCluster:
            directory = new_directory(slurm_workspace)
            return clusters.enter_context(SlurmCluster(slurm_workspace / "base", directory, nodes, settings))

        yield start


@pytest.fixture(scope="module")
def training_cluster(slurm_workspace: Path) -> Iterator[SlurmCluster]:
    """Four nodes with what training jobs need, for all tests of a module. Jobs in the queue "urgent" preempt others."""
    directory = new_directory(slurm_workspace)
    settings = {
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
        "KillWait": "30",  # as on ParallelCluster: what a job does after its requeue must fit in
        "PartitionName": "urgent Nodes=ALL PriorityTier=10",
    }
    cluster = SlurmCluster(slurm_workspace / "base", directory, settings=settings, borrowed=training.borrowed())
    training.install(cluster)
    with cluster:
        yield cluster


def new_directory(workspace: Path) -> Path:
    """Return an empty directory for a cluster, which its users may look into."""
    directory = Path(tempfile.mkdtemp(prefix="cluster-", dir=workspace))
    directory.chmod(0o755)
    return directory
