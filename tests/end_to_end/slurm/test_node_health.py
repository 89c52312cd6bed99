"""The health checks, run by a real Slurm before and after real jobs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.slurm.base import ClusterError
from tests.end_to_end.slurm.cluster import Node, SlurmCluster
from tests.end_to_end.slurm.conftest import new_directory

pytestmark = [pytest.mark.slow, pytest.mark.system]


def runs(node: Node, command: str) -> bool:
    try:
        node.sh(f"pgrep --full --exact {shlex.quote(command)}")
    except ClusterError:
        return False
    return True


def hang_shared_storage(node: Node) -> None:
    """Mount /fsx as systemd does at ParallelCluster's nodes, by an automounter, but one that never answers."""
    node.sh("""
        mkfifo /run/automount
        setsid sleep infinity <>/run/automount >/dev/null 2>&1 &
        umount /fsx
        mount -t autofs -o "fd=9,pgrp=$!,minproto=5,maxproto=5,direct" automount /fsx 9<>/run/automount
    """)


def test_a_job_leaves_a_node_with_a_fault_and_runs_elsewhere(cluster: SlurmCluster) -> None:
    def break_device(node: Node) -> None:
        node.write({"/run/kernel.log": "neuron: NEURON_HW_ERR=DMA_ERROR nd-id=3\n"})

    assert_left(cluster, break_device, "NEURON_HW_ERR: DMA_ERROR nd-id=3 (replace)")


def test_a_job_leaves_a_node_whose_shared_storage_hangs(slurm_workspace: Path) -> None:
    """On a cluster of its own: nobody can fix it."""
    with SlurmCluster(slurm_workspace / "base", new_directory(slurm_workspace), 2) as cluster:
        cluster.make_healthy()
        assert_left(cluster, hang_shared_storage, "SHARED_STORAGE: the check gave no answer (drain-requeue)")


def assert_left(cluster: SlurmCluster, break_node: Callable[[Node], object], reason: str) -> None:
    """Break the first node, and expect that a job runs on the second one."""
    first, second = cluster.nodes
    cluster.add_hooks()
    break_node(first)
    job = cluster.wait(cluster.submit("hostname", "--nodes=1"))
    assert (job["JobState"], job["Restarts"], job["BatchHost"]) == ("COMPLETED", "1", second.name)
    assert first.reason == f"ultracluster: {reason}"
    assert "DRAIN" in first.states
    assert "DRAIN" not in second.states


def test_what_a_job_left_is_killed_when_the_next_one_ends(cluster: SlurmCluster) -> None:
    leave = "setsid --fork sleep 4711 </dev/null >/dev/null 2>&1"
    node = cluster.nodes[0]
    cluster.wait(cluster.submit(leave))
    assert runs(node, "sleep 4711")
    cluster.add_hooks()
    cluster.wait(cluster.submit(leave))
    cluster.wait_until(lambda: not runs(node, "sleep 4711"))
    assert node.reason == ""
