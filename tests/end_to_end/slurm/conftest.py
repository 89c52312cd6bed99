"""Slurm clusters. Their root directory takes half a minute, once on a computer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator.machines import image
from emulator.machines.hardware.files import DEVICES
from tests.end_to_end.slurm import training
from tests.end_to_end.slurm.accounting import AccountingCluster
from tests.end_to_end.slurm.base import USER
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.shared import shared_directory


@pytest.fixture(scope="session")
def slurm_workspace() -> Iterator[Path]:
    """Directory for clusters, with their root directory."""
    with shared_directory("slurm", lambda workspace: (workspace / "base").symlink_to(image.prepare())) as workspace:
        image.prepare()  # which keeps it, in each worker
        yield workspace


@pytest.fixture(scope="session")
def plain_cluster(slurm_workspace: Path) -> Iterator[SlurmCluster]:
    with SlurmCluster(slurm_workspace / "base", new_directory(slurm_workspace), 2) as cluster:
        yield cluster


@pytest.fixture
def cluster(plain_cluster: SlurmCluster) -> SlurmCluster:
    """Two healthy trn1.32xlarge, without the checks and without jobs: the same for all tests."""
    cluster = plain_cluster
    cluster.run(f"rm -f /opt/slurm/etc/scripts/*.d/50_ultracluster /fsx/*; scancel --user={USER}")
    for node in cluster.nodes:
        node.sh(f"rm -rf /sys/class/infiniband {DEVICES} /dev/neuron0")
        node.sh("pkill --full '[s]leep 47' || true")
    cluster.make_healthy()
    cluster.wait_until(lambda: cluster.run("squeue --noheader") == "")
    for node in cluster.nodes:
        if "DRAIN" in node.states:
            cluster.run(f"scontrol update nodename={node.name} state=resume")
    cluster.wait_until(cluster.is_up)
    return cluster


@contextmanager
def new_training_cluster(workspace: Path) -> Iterator[SlurmCluster]:
    """Start four nodes with what training jobs need. Jobs in the queue "urgent" preempt others."""
    directory = new_directory(workspace)
    settings = {
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
        "KillWait": "30",  # as on ParallelCluster: what a job does after its requeue must fit in
        "PartitionName": "urgent Nodes=ALL PriorityTier=10",
    }
    cluster = SlurmCluster(workspace / "base", directory, settings=settings, borrowed=training.borrowed())
    training.install(cluster)
    with cluster:
        yield cluster


@pytest.fixture(scope="module")
def training_cluster(slurm_workspace: Path) -> Iterator[SlurmCluster]:
    """A cluster for all tests of a module."""
    with new_training_cluster(slurm_workspace) as cluster:
        yield cluster


@pytest.fixture
def cluster_to_break(slurm_workspace: Path) -> Iterator[SlurmCluster]:
    """A cluster for a test that ends nodes."""
    with new_training_cluster(slurm_workspace) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def accounting_cluster(slurm_workspace: Path) -> Iterator[AccountingCluster]:
    """Two nodes and accounting, for all tests of a module. Jobs need accounts, and limits hold."""
    settings = {
        "AccountingStorageEnforce": "associations,limits,qos,safe",
        "PriorityWeightFairshare": "100000",
        "PriorityWeightQOS": "1000000",
        "PreemptType": "preempt/qos",
        "PreemptMode": "REQUEUE",
    }
    with AccountingCluster(slurm_workspace / "base", new_directory(slurm_workspace), settings=settings) as cluster:
        yield cluster


def new_directory(workspace: Path) -> Path:
    """Return an empty directory for a cluster, which its users may look into."""
    directory = Path(tempfile.mkdtemp(prefix="cluster-", dir=workspace))
    directory.chmod(0o755)
    return directory
