"""The health checks, run by a real Slurm before and after real jobs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from textwrap import dedent

import pytest

from tests.end_to_end.slurm.base import USER, ClusterError
from tests.end_to_end.slurm.cluster import Node, SlurmCluster
from tests.end_to_end.slurm.conftest import new_directory
from tests.nodes.hardware_files import DEVICES, NODE_FACTS, hardware_files, node_facts

pytestmark = [pytest.mark.slow, pytest.mark.system]

STAND_INS = {
    "/usr/local/bin/journalctl": "#!/bin/bash\ncat /run/kernel.log\n",
    "/usr/local/bin/modprobe": dedent("""\
        #!/bin/bash
        echo "modprobe $*" >>/run/modprobe.log
        for counter in /sys/devices/virtual/neuron_device/*/stats/hardware/*; do echo 0 >"$counter"; done
        """),
    "/run/kernel.log": "",
}
REPAIRABLE = f"{DEVICES}/neuron5/stats/hardware/mem_ecc_repairable_uncorrected"


@pytest.fixture(scope="module")
def used_cluster(slurm_workspace: Path) -> Iterator[SlurmCluster]:
    """Two nodes for all tests of the module, as the last test left them."""
    with SlurmCluster(slurm_workspace / "base", new_directory(slurm_workspace), 2) as cluster:
        yield cluster


@pytest.fixture
def cluster(used_cluster: SlurmCluster) -> SlurmCluster:
    """Two healthy trn1.32xlarge, without the checks and without jobs."""
    used_cluster.run(f"rm -f /opt/slurm/etc/scripts/*.d/50_ultracluster /fsx/*; scancel --user={USER}")
    for node in used_cluster.nodes:
        node.sh(f"rm -rf /sys/class/infiniband {DEVICES} /dev/neuron0 /run/modprobe.log")
        node.sh("pkill --full '[s]leep 47' || true")
    make_healthy(used_cluster)
    used_cluster.wait_until(lambda: used_cluster.run("squeue --noheader") == "")
    for node in used_cluster.nodes:
        if "DRAIN" in node.states:
            used_cluster.run(f"scontrol update nodename={node.name} state=resume")
    used_cluster.wait_until(used_cluster.is_up)
    return used_cluster


def make_healthy(cluster: SlurmCluster) -> None:
    for node in cluster.nodes:
        node.write({**hardware_files("trn1.32xlarge"), NODE_FACTS: node_facts("trn1.32xlarge"), **STAND_INS})


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


FAULTS: dict[str, tuple[Callable[[Node], object], str]] = {
    "seven EFA devices": (
        lambda node: node.sh("rm -r /sys/class/infiniband/rdmap4s26"),
        "EFA_DEVICES: 7 of 8 EFA devices of trn1.32xlarge work (replace)",
    ),
    "hardware error": (
        lambda node: node.write({"/run/kernel.log": "neuron: NEURON_HW_ERR=DMA_ERROR nd-id=3\n"}),
        "NEURON_HW_ERR: DMA_ERROR nd-id=3 (replace)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_leaves_a_node_with_a_fault_and_runs_elsewhere(cluster: SlurmCluster, fault: str) -> None:
    assert_left(cluster, *FAULTS[fault])


def test_a_job_leaves_a_node_whose_shared_storage_hangs(start_cluster: Callable[..., SlurmCluster]) -> None:
    """On a cluster of its own: nobody can mend it."""
    cluster = start_cluster(2)
    make_healthy(cluster)
    assert_left(cluster, hang_shared_storage, "SHARED_STORAGE: the check gave no answer (drain-requeue)")


def assert_left(cluster: SlurmCluster, spoil: Callable[[Node], object], reason: str) -> None:
    """Spoil the first node, and look that a job runs on the second one."""
    first, second = cluster.nodes
    cluster.add_hooks()
    spoil(first)
    job = cluster.wait(cluster.submit("hostname", "--nodes=1"))
    assert (job["JobState"], job["Restarts"], job["BatchHost"]) == ("COMPLETED", "1", second.name)
    assert first.reason == f"ultracluster: {reason}"
    assert "DRAIN" in first.states
    assert "DRAIN" not in second.states


def seconds_to_start(cluster: SlurmCluster) -> float:
    """Return how long a job of all nodes takes from its submission until it runs on the last of them: a median of 3."""
    taken = []
    for _ in range(3):
        cluster.wait_until(lambda: cluster.run("squeue --noheader") == "")
        command = f"date +%s.%N; srun --quiet --nodes={len(cluster.nodes)} --ntasks-per-node=1 date +%s.%N"
        submitted, *started = map(float, cluster.run(command, user=USER).split())
        assert len(started) == len(cluster.nodes)
        taken.append(max(started) - submitted)
    return median(taken)


def test_a_healthy_node_costs_little(cluster: SlurmCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Processor time is bounded; time on the clock depends on what else the machine does, and is only told."""
    without_checks = seconds_to_start(cluster)
    cluster.add_hooks()
    with_checks = seconds_to_start(cluster)
    assert [node.reason for node in cluster.nodes] == ["", ""]
    spent = cluster.nodes[0].sh("TIMEFORMAT='%U %S'; time bash /opt/ultracluster/current/health/check.sh prolog")
    processor = sum(map(float, spent.split()))
    with capsys.disabled():
        print(
            f"\nA job starts in {without_checks:.2f} s without the checks and in {with_checks:.2f} s with them "
            f"({with_checks / without_checks:.1f} x); a prolog takes {processor:.2f} s of a processor; "
            f"load average {os.getloadavg()[0]:.1f}"
        )
    assert processor < 1


def test_what_a_job_left_is_killed_when_the_next_one_ends(cluster: SlurmCluster) -> None:
    leave = "setsid --fork sleep 4711 </dev/null >/dev/null 2>&1"
    node = cluster.nodes[0]
    cluster.wait(cluster.submit(leave))
    assert runs(node, "sleep 4711")
    cluster.add_hooks()
    cluster.wait(cluster.submit(leave))
    cluster.wait_until(lambda: not runs(node, "sleep 4711"))
    assert node.reason == ""


def test_another_job_of_the_user_on_the_node_lives_on(cluster: SlurmCluster) -> None:
    cluster.add_hooks()
    node = cluster.nodes[0]
    other = cluster.submit("sleep 4712", f"--nodelist={node.name}")
    cluster.wait_until(lambda: runs(node, "sleep 4712"))
    cluster.wait(cluster.submit("setsid --fork sleep 4711 </dev/null >/dev/null 2>&1", f"--nodelist={node.name}"))
    cluster.wait_until(lambda: not runs(node, "sleep 4711"))
    assert cluster.job(other)["JobState"] == "RUNNING"
    assert runs(node, "sleep 4712")


def test_a_stale_process_drains_the_node(cluster: SlurmCluster) -> None:
    cluster.add_hooks()
    node = cluster.nodes[0]
    node.sh("touch /dev/neuron0; setsid --fork sleep 4713 </dev/neuron0 >/dev/null 2>&1")
    job = cluster.wait(cluster.submit("hostname"))
    assert job["BatchHost"] == cluster.nodes[1].name
    process = node.sh("pgrep --full --exact 'sleep 4713'").strip()
    assert node.reason == f"ultracluster: STALE_PROCESS: process {process} (sleep) holds Neuron devices (drain-requeue)"


def test_a_running_job_may_hold_devices_on_a_shared_node(cluster: SlurmCluster) -> None:
    cluster.add_hooks()
    node = cluster.nodes[0]
    node.sh("touch /dev/neuron0; chmod 666 /dev/neuron0")
    cluster.submit("sleep 4714 </dev/neuron0", f"--nodelist={node.name}")
    cluster.wait_until(lambda: runs(node, "sleep 4714"))
    job = cluster.wait(cluster.submit("hostname", f"--nodelist={node.name}"))
    assert (job["JobState"], job["Restarts"], node.reason) == ("COMPLETED", "0", "")


def run_job_that_damages_memory(cluster: SlurmCluster) -> None:
    """Let the first node's memory have an error while a job runs there."""
    shared = cluster.directory / "shared/fsx"
    job = cluster.submit("touch /fsx/started; until [[ -e /fsx/go ]]; do sleep 0.1; done")
    cluster.wait_until((shared / "started").exists)
    cluster.nodes[0].write({REPAIRABLE: "1\n"})
    (shared / "go").touch()
    assert cluster.wait(job)["JobState"] == "COMPLETED"


def test_the_driver_is_loaded_anew_after_a_job(cluster: SlurmCluster) -> None:
    cluster.add_hooks()
    node = cluster.nodes[0]
    run_job_that_damages_memory(cluster)
    cluster.wait_until(lambda: node.states == {"IDLE"})
    assert node.reason == ""
    assert node.sh("cat /run/modprobe.log") == "modprobe --remove neuron\nmodprobe neuron\n"


def test_a_driver_that_cannot_be_loaded_drains_the_node(cluster: SlurmCluster) -> None:
    cluster.add_hooks()
    node = cluster.nodes[0]
    node.write({"/usr/local/bin/modprobe": "#!/bin/bash\nexit 1\n"})
    run_job_that_damages_memory(cluster)
    cluster.wait_until(lambda: "DRAIN" in node.states)
    assert node.reason == (
        "ultracluster: HBM_ECC_REPAIRABLE: neuron5 has mem_ecc_repairable_uncorrected 1 (reload-driver)"
    )
