"""The steps of a recovery with a fake backend: what each state of a head node leads to, and kills at every point."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.edit import set_values
from scripts.change.upgrade.backend import HeadNodeState
from scripts.change.upgrade.recovery import Recovery
from scripts.change.upgrade.upgrade import UpgradeResult
from scripts.core.errors import OperationError
from tests.scripts.change.upgrade.test_upgrade import FakeBackend, KilledError

LOST = ["settings", "destroy", "deploy", "verify", "restore", "monitoring"]
DONE = ["destroyed dev", "restored None to dev-2"]


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path)


def recover(backend: FakeBackend, *, dry_run: bool = False, without_home: bool = False) -> UpgradeResult:
    upgrade = backend.upgrade(dry_run=dry_run)
    work = Recovery(
        upgrade.path,
        upgrade.settings,
        upgrade.directory,
        backend,
        upgrade.agreed,
        upgrade.say,
        dry_run=dry_run,
        without_home=without_home,
    )
    return work.run()


def test_a_head_node_that_answers_is_left_alone(backend: FakeBackend) -> None:
    assert recover(backend).outcome == "nothing to do"
    assert backend.done == []


@pytest.mark.parametrize("state", ["stopped", "silent"])
def test_a_head_node_that_exists_is_started_or_rebooted(backend: FakeBackend, state: HeadNodeState) -> None:
    backend.heads[1] = state
    result = recover(backend)
    assert (result.outcome, result.cluster, [each.name for each in result.steps]) == ("complete", "dev", ["start"])
    assert backend.done == [f"revived dev, which was {state}"]


def test_the_next_generation_takes_the_place_of_a_cluster_whose_head_node_is_lost(backend: FakeBackend) -> None:
    backend.heads[1] = "lost"
    result = recover(backend)
    assert [each.name for each in result.steps] == LOST
    assert (backend.statuses, backend.generation, backend.alarms) == ({2: "CREATE_COMPLETE"}, 2, "dev-2")
    assert backend.done == DONE
    assert "Of /home of dev remains None." in " ".join(backend.said)


def test_without_a_snapshot_no_copy_of_one_is_planned(backend: FakeBackend) -> None:
    backend.heads[1], backend.has_snapshots = "lost", False
    without = [each for each in LOST if each != "restore"]
    assert [each.name for each in recover(backend, dry_run=True).steps] == without
    assert [each.name for each in recover(backend).steps] == without
    assert backend.done == DONE[:1]


def test_a_dry_run_changes_nothing(backend: FakeBackend) -> None:
    backend.heads[1] = "lost"
    before = backend.path.read_bytes()
    result = recover(backend, dry_run=True)
    assert [each.name for each in result.steps] == LOST
    assert (backend.path.read_bytes(), sorted(backend.statuses), backend.done) == (before, [1], [])


@pytest.mark.parametrize("point", range(17))
def test_killed_anywhere_the_same_command_continues(backend: FakeBackend, point: int) -> None:
    backend.heads[1] = "lost"
    backend.points_left = point
    try:
        recover(backend)
    except KilledError:
        backend.points_left = 10**6
        recover(backend)
    assert (backend.statuses, backend.generation, backend.alarms) == ({2: "CREATE_COMPLETE"}, 2, "dev-2")
    assert [*dict.fromkeys(backend.done)] == DONE


def test_an_upgrade_is_not_taken_for_a_loss(backend: FakeBackend) -> None:
    set_values(backend.path, {("cluster", "generation"): 2})
    with pytest.raises(OperationError, match="The head node of dev is not lost, and an upgrade has started"):
        recover(backend)


def test_a_home_that_would_be_deleted_with_the_cluster_blocks(backend: FakeBackend) -> None:
    backend.heads[1] = "lost"
    set_values(backend.path, {("cluster", "head_node", "shared_storage"): "efs"})
    with pytest.raises(OperationError, match="/home is on an EFS file system of ParallelCluster"):
        recover(backend)
    assert (backend.done, sorted(backend.statuses)) == ([], [1])
    assert recover(backend, without_home=True).outcome == "complete"
    assert backend.done == ["destroyed dev"]
