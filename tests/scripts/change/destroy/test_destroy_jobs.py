"""The jobs of a cluster that is to be deleted: nobody loses nodes unasked, whatever the status of its stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.change.destroy import destroy as destruction
from scripts.change.destroy import plan
from scripts.change.destroy import stacks as destroy_stacks
from scripts.change.destroy.model import DestroyOptions
from scripts.core.errors import HeadNodeError, OperationError
from tests.scripts.change.fleet.fakes import FakeCluster

STATUSES = ("CREATE_COMPLETE", "UPDATE_ROLLBACK_FAILED")


class DoomedCluster(FakeCluster):
    """A cluster whose own stack is in a status."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(directory, monkeypatch)
        self.stack_status = "CREATE_COMPLETE"
        self.terminated: list[str] = []
        monkeypatch.setattr(destroy_stacks, "of_cluster", lambda _: {"StackStatus": self.stack_status})
        for module in (plan, destruction):
            monkeypatch.setattr(module, "HeadNode", lambda *_: self)

    def client(self, _: str) -> DoomedCluster:
        return self

    def terminate_instances(self, InstanceIds: list[str]) -> None:
        self.terminated.extend(InstanceIds)
        self.ticks[self.sleeps + 2] = lambda: self.__dict__.update(nodes=0)

    def stop_fleet(self, **options: Any) -> None:
        destruction.stop_fleet(self.deployment, DestroyOptions(**options), self, self.said.append)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DoomedCluster:
    return DoomedCluster(tmp_path, monkeypatch)


@pytest.mark.parametrize("status", STATUSES)
def test_jobs_with_nodes_block_it(cluster: DoomedCluster, status: str) -> None:
    cluster.stack_status = status
    cluster.slurm.jobs("RUNNING")
    [blocker] = plan.jobs_blockers(cluster.deployment, drain=False)
    assert blocker.startswith("Jobs with nodes: 1")
    assert [*plan.jobs_blockers(cluster.deployment, drain=True)] == []
    with pytest.raises(OperationError, match="Jobs with nodes: 1"):  # also if they started after the plan
        cluster.stop_fleet()
    assert (cluster.requests, cluster.terminated) == ([], [])
    cluster.slurm.jobs()
    assert [*plan.jobs_blockers(cluster.deployment, drain=False)] == []
    cluster.stop_fleet()
    assert (cluster.requests, len(cluster.terminated)) == (
        (["STOP_REQUESTED"], 0) if status == "CREATE_COMPLETE" else ([], 16)
    )


@pytest.mark.parametrize("status", STATUSES)
def test_drain_waits_for_jobs(cluster: DoomedCluster, status: str) -> None:
    cluster.stack_status = status
    cluster.slurm.jobs("RUNNING")
    with pytest.raises(OperationError, match="Jobs have not ended"):
        cluster.stop_fleet(drain=True, drain_limit=30)
    assert cluster.terminated == []
    cluster.slurm.jobs()
    cluster.stop_fleet(drain=True)
    assert cluster.slurm.states == ["trn1|drain"]


def test_a_cluster_without_a_head_node_needs_force(cluster: DoomedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise HeadNodeError("The head node i-1 of trn1-16 is stopped.")

    for module in ("scripts.change.fleet.control", "scripts.change.destroy.plan"):
        monkeypatch.setattr(f"{module}.HeadNode", missing)
    for drain in (True, False):
        [blocker] = plan.jobs_blockers(cluster.deployment, drain=drain)
        assert blocker.endswith(": The head node i-1 of trn1-16 is stopped.\n--force deletes it anyway.")
    cluster.stop_fleet(force=True)
    assert len(cluster.terminated) == 16
    cluster.nodes, cluster.stack_status = 0, "ROLLBACK_COMPLETE"
    assert [*plan.jobs_blockers(cluster.deployment, drain=False)] == [], "without nodes there are no jobs with any"
