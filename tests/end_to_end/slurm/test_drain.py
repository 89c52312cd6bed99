"""Queues of a real Slurm are closed, run empty and opened again by the commands that `fleet` sends."""

from __future__ import annotations

import pytest

from scripts.account.remote.head_node import Answer
from scripts.account.slurm import NodeKind, slurm_state
from scripts.change.fleet import queues
from tests.end_to_end.slurm.base import USER, ClusterError
from tests.end_to_end.slurm.cluster import SlurmCluster

pytestmark = [pytest.mark.slow, pytest.mark.system]


class HeadNodeOf:
    """The head node of a cluster, which runs scripts as Systems Manager's agent does: as root, by sh."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self._cluster = cluster

    def run(self, script: str) -> Answer:
        try:
            return Answer(0, self._cluster.run(f"sh <<'END-OF-SCRIPT'\n{script}\nEND-OF-SCRIPT"), "")
        except ClusterError as error:
            return Answer(1, "", str(error))


def test_a_drained_queue_runs_what_it_has_and_takes_nothing_new(cluster: SlurmCluster) -> None:
    head_node = HeadNodeOf(cluster)
    said: list[str] = []
    cluster.wait_until(cluster.is_up)
    state = slurm_state(head_node)  # type: ignore[arg-type]  # it has what is needed
    assert state.availability == {"trn1": "up"}
    assert state.kinds == (NodeKind("trn1", "trn1-32xl", static=True, count=2, ready=2),)

    running = cluster.submit("while [ ! -e go ]; do sleep 0.2; done", "--nodes=2 --exclusive")
    waiting = cluster.submit("true", "--nodes=2 --exclusive")
    cluster.wait_until(lambda: cluster.job(running)["JobState"] == "RUNNING")
    queues.close_queues(head_node, said.append)  # type: ignore[arg-type]
    assert slurm_state(head_node).availability == {"trn1": "drain"}  # type: ignore[arg-type]
    with pytest.raises(ClusterError, match=r"drain|DRAIN"):
        cluster.run("sbatch --wrap=true", user=USER)
    assert queues.unfinished(slurm_state(head_node)) == 2  # type: ignore[arg-type]
    assert cluster.job(waiting)["JobState"] == "PENDING"

    cluster.run("touch go", user=USER)
    assert cluster.wait(waiting)["JobState"] == "COMPLETED"
    assert queues.unfinished(slurm_state(head_node)) == 0  # type: ignore[arg-type]
    queues.open_queues(head_node, said.append)  # type: ignore[arg-type]
    assert cluster.wait(cluster.submit("true"))["JobState"] == "COMPLETED"
    assert said == ["Closed to new jobs: trn1", "Open to new jobs again: trn1"]
