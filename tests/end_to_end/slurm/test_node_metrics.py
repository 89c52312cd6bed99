"""What the head node tells of a real Slurm: nodes that health checks drained, closed queues, and what nodes cost."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodes.metrics.cloudwatch import CloudWatch, Metric
from nodes.metrics.compute_node import STEP
from nodes.metrics.head_node import HeadNode
from nodes.metrics.spending import OVERRULED, Budget, Spending
from tests.end_to_end.slurm.base import ENVIRONMENT, USER, ClusterError
from tests.end_to_end.slurm.cluster import SlurmCluster

pytestmark = [pytest.mark.slow, pytest.mark.system]

Counts = dict[tuple[str, str], float]
NOTHING: Counts = {
    **{
        (name, queue): 0
        for name in ("NodesDrained", "NodesDrainedByHealth", "QueuesProtected")
        for queue in ("", "trn1")
    },
    **{(name, queue): 2 for name in ("NodesRunning", "NodesIdle") for queue in ("", "trn1")},
    ("NodeIdleSeconds", ""): 0,
}


class Recorder(CloudWatch):
    """Keeps what it is to send."""

    def send(self, metrics: Sequence[Metric], timestamp: float) -> bool:
        assert all(metric.dimensions["Cluster"] == "trn1-16" for metric in metrics)
        self.sent = {(metric.name, metric.dimensions.get("Queue", "")): metric.value for metric in metrics}
        return True


class Head:
    """The service of a head node. It runs outside of the cluster, where Python is, with Slurm's commands of inside."""

    def __init__(self, cluster: SlurmCluster, commands: Path) -> None:
        self.cluster = cluster
        inside = shlex.join(["nsenter", "--target", cluster.init, "--all", "chroot"])
        root = f"{cluster.directory}/machines/head/root"
        for name in ("scancel", "scontrol", "sinfo"):
            (commands / name).write_text(f'#!/bin/bash\nexec {inside} {root} {name} "$@"\n', encoding="utf-8")
            (commands / name).chmod(0o755)
        self._cloudwatch = Recorder("us-west-2")
        self.spending = commands / "spending"
        self.guard(None)

    def guard(self, budget: Budget | None) -> None:
        """Start the service, with a budget or without."""
        guard = None if budget is None else (budget, Spending(self.spending, "trn1-16"))
        self._service = HeadNode(self._cloudwatch, "trn1-16", guard)

    def report(self, timestamp: float = 0) -> Counts:
        self._cloudwatch.sent = {}
        self._service.report(timestamp)
        return self._cloudwatch.sent

    def update(self, what: str) -> None:
        self.cluster.run(f"scontrol update {what}")


@pytest.fixture
def head(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    cluster.add_hooks()
    monkeypatch.setenv("PATH", f"{tmp_path}:{ENVIRONMENT['PATH']}")
    return Head(cluster, tmp_path)


def test_a_node_that_a_health_check_drained_is_counted(head: Head) -> None:
    first, second = head.cluster.nodes
    assert head.report() == NOTHING
    head.update(f"nodename={second.name} state=drain reason='by hand'")
    first.sh("rm -r /sys/class/infiniband/rdmap4s26")
    head.cluster.submit("hostname")
    head.cluster.wait_until(lambda: first.reason.startswith("ultracluster: EFA_DEVICES"))
    no_idle = {("NodesIdle", ""): 0, ("NodesIdle", "trn1"): 0}
    by_health = {("NodesDrainedByHealth", ""): 1, ("NodesDrainedByHealth", "trn1"): 1}
    drained = NOTHING | no_idle | by_health | {("NodesDrained", ""): 2, ("NodesDrained", "trn1"): 2}
    assert head.report() == drained
    assert head.report() == drained, "as long as it is drained"


def test_a_node_that_slurm_drained_is_counted_until_it_is_free_and_one_of_an_update_is_not(head: Head) -> None:
    first, second = head.cluster.nodes
    head.update(f"nodename={first.name} state=drain reason='Kill task failed'")
    head.update(f"nodename={second.name} state=drain reason='updating node state during cluster update'")
    counted = head.report()
    assert [counted[name, ""] for name in ("NodesDrained", "NodesDrainedByHealth")] == [1, 0]
    head.update(f"nodename={first.name} state=resume")
    assert head.report()["NodesDrained", "trn1"] == 0


def test_a_node_that_was_drained_and_replaced_between_two_reports_is_counted_once(head: Head) -> None:
    """As ParallelCluster replaces it, with another reason. What users have logged counts nothing."""
    cluster, node = head.cluster, head.cluster.nodes[0]
    assert head.report() == NOTHING
    node.sh("mv /sys/class/infiniband/rdmap4s26 /run")
    cluster.submit("hostname", f"--nodelist={node.name}")
    cluster.wait_until(lambda: "DRAIN" in node.states)
    cluster.run(f"scancel --user={USER}")
    cluster.wait_until(lambda: not cluster.run("squeue --noheader").strip())
    node.sh("mv /run/rdmap4s26 /sys/class/infiniband")  # the node in its place is good, and is not drained again
    for state in ("down reason='Scheduler health check failed'", "resume"):
        head.update(f"nodename={node.name} state={state}")
    line = f"x\nupdate_node: node {cluster.nodes[1].name} reason set to: ultracluster: SCRATCH: full"
    with pytest.raises(ClusterError, match="nvalid partition"):
        cluster.submit("true", f"--partition={shlex.quote(line)}")
    counted = head.report()
    assert (counted["NodesDrainedByHealth", ""], counted["NodesDrainedByHealth", "trn1"]) == (1, 1)
    assert head.report()["NodesDrainedByHealth", ""] == 0


def test_a_closed_queue_is_counted(head: Head) -> None:
    head.update("partitionname=trn1 state=INACTIVE")
    assert head.report() == NOTHING | {("QueuesProtected", ""): 1, ("QueuesProtected", "trn1"): 1}
    head.update("partitionname=trn1 state=DOWN")
    assert head.report() == NOTHING, "stopped by hand, as docs/explanation/nodes.md has it"
    head.update("partitionname=trn1 state=UP")
    assert head.report() == NOTHING


def test_at_the_limit_no_job_starts_and_those_that_run_continue_or_are_cancelled(
    head: Head, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, hour, prices = head.cluster, 3600, {"trn1.32xlarge": 20.0}
    head.guard(Budget(30, "drain", prices))
    runs = cluster.submit("sleep 600", "--nodes=1 --exclusive")
    cluster.wait_until(lambda: cluster.job(runs)["JobState"] == "RUNNING")
    below = head.report(hour)
    assert (below["NodeUsdPerHour", ""], below["NodeUsdThisMonth", ""]) == (40, 0)
    assert (below["NodesRunning", ""], below["NodesIdle", "trn1"]) == (2, 1)
    head.guard(Budget(30, "drain", prices))  # a restart
    assert head.report(2 * hour)["NodeUsdThisMonth", ""] == 40
    assert "budget: nodes have cost $40.00 this month of $30.00: queue trn1 set to DOWN" in capsys.readouterr().out
    waits = cluster.submit("true")
    assert head.report(2 * hour + 60)["QueuesProtected", ""] == 0
    assert (cluster.job(runs)["JobState"], cluster.job(waits)["JobState"]) == ("RUNNING", "PENDING")
    assert "State=DOWN" in cluster.run("scontrol show partition trn1")
    (head.spending / OVERRULED).write_text("1970-01\n", encoding="ascii")
    head.update("partitionname=trn1 state=UP")  # as `fleet start` does both
    head.report(2 * hour + 120)
    assert cluster.wait(waits)["JobState"] == "COMPLETED"
    (head.spending / OVERRULED).unlink()
    head.guard(Budget(30, "stop", prices))
    head.report(2 * hour + 180)
    assert cluster.wait(runs)["JobState"] == "CANCELLED"
    head.guard(Budget(300, "stop", prices))
    head.report(2 * hour + 240)
    assert "State=UP" in cluster.run("scontrol show partition trn1"), "the limit was raised"


def test_a_node_sees_the_steps_of_jobs(head: Head) -> None:
    node = head.cluster.nodes[0]
    pattern = "^" + STEP.decode().replace("[", r"\[")
    seen = f"grep --text --no-messages --files-with-matches '{pattern}' /proc/[0-9]*/cmdline | wc --lines"
    assert node.sh(seen) == "0\n"
    job = head.cluster.submit("sleep 600", f"--nodelist={node.name}")
    head.cluster.wait_until(lambda: node.sh(seen) != "0\n")
    head.cluster.run(f"scancel {job}")
    head.cluster.wait_until(lambda: node.sh(seen) == "0\n")


def test_a_controller_that_does_not_answer_ends_nothing(head: Head, capsys: pytest.CaptureFixture[str]) -> None:
    head.cluster.run("pkill -STOP slurmctld")
    assert head.report() == {}
    assert "Slurm's controller does not answer" in capsys.readouterr().out
    head.cluster.run("pkill -CONT slurmctld")
    head.cluster.wait_until(lambda: head.report() == NOTHING)
