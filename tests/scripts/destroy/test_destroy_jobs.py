"""The jobs of a cluster that is to go: nobody loses nodes unasked, in whichever status its stack is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.command import OperationError
from scripts.destroy import destroy as destruction
from scripts.destroy import stacks as destruction_stacks
from tests.scripts.account import Operated
from tests.scripts.destroy.destroying import FastClock
from tests.scripts.fleet.fleet_world import Slurm

UNHEALTHY = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED")


@pytest.fixture
def slurm(operated: Operated, tmp_path: Path) -> Slurm:
    found = Slurm(tmp_path / "slurm")
    operated.shell(found.shell)
    return found


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Delete no stack, but note which would be."""
    names: list[str] = []
    monkeypatch.setattr(destruction_stacks, "delete", lambda _, name, **__: names.append(name))
    return names


@pytest.fixture
def stopped_head_node(operated: Operated) -> Iterator[str]:
    head_node, ec2 = operated.head_node, operated.client("ec2")
    ec2.stop_instances(InstanceIds=[head_node])
    yield head_node
    ec2.start_instances(InstanceIds=[head_node])


def have(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the cluster's own stack in a status."""
    of_cluster = destruction_stacks.of_cluster

    def changed(deployment: Any) -> dict[str, Any]:
        return {**(of_cluster(deployment) or {}), "StackStatus": status}

    monkeypatch.setattr(destruction_stacks, "of_cluster", changed)


def end(operated: Operated, said: list[str] | None = None, **wish: Any) -> None:
    say = (said if said is not None else []).append
    destruction.destroy(operated.deployment(), clock=FastClock(), say=say, **wish)


def test_jobs_with_nodes_stop_it_before_anything_is_deleted(
    operated: Operated, slurm: Slurm, deleted: list[str]
) -> None:
    operated.launch(1)
    slurm.jobs("RUNNING")
    with pytest.raises(OperationError, match="Jobs with nodes: 1"):
        end(operated)
    assert deleted == []


@pytest.mark.parametrize("status", UNHEALTHY)
def test_jobs_are_asked_for_in_whichever_status(
    operated: Operated, slurm: Slurm, deleted: list[str], monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    operated.launch(1)
    have(status, monkeypatch)
    slurm.jobs("RUNNING")
    with pytest.raises(OperationError, match="Jobs with nodes: 1"):
        end(operated)
    assert deleted == []
    slurm.jobs()
    end(operated)
    assert deleted == ["trn1-16-cluster", "trn1-16"]


def test_drain_waits_for_jobs_in_whichever_status(
    operated: Operated, slurm: Slurm, deleted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    operated.launch(1)
    have("UPDATE_ROLLBACK_FAILED", monkeypatch)
    slurm.jobs("RUNNING")
    with pytest.raises(OperationError, match="Jobs have not come to their end"):
        end(operated, drain=True, drain_limit=30)
    assert deleted == []
    slurm.jobs()
    end(operated, drain=True)
    assert slurm.states == ["trn1|drain"]
    assert deleted == ["trn1-16-cluster", "trn1-16"]


def test_without_nodes_nobody_is_asked(
    operated: Operated, deleted: list[str], stopped_head_node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    have("ROLLBACK_COMPLETE", monkeypatch)
    end(operated)
    assert deleted == ["trn1-16-cluster", "trn1-16"]


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_ROLLBACK_FAILED"])
def test_a_head_node_that_is_stopped_needs_force(
    operated: Operated, deleted: list[str], stopped_head_node: str, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    operated.launch(1)
    have(status, monkeypatch)
    with pytest.raises(OperationError, match=rf"{stopped_head_node} .*is stopped.*\n--force deletes it all the same"):
        end(operated)
    assert deleted == []
    end(operated, force=True)
    assert deleted == ["trn1-16-cluster", "trn1-16"]
