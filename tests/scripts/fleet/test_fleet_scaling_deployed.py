"""Scaling from end to end, by the CDK: while the fleet runs, on a stopped fleet, and with nodes that are terminated."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts import command
from scripts.clock import Clock
from scripts.commands import deploy
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.fleet import scaling
from tests.scripts.account import Operated
from tests.scripts.fleet.fakes import FakeSlurm
from toolchain.parallelcluster import Configuration, ParallelCluster

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

CONTINUES = "What AWS has started continues. The same command continues from here."


class Scaled(Clock):
    """A deployment that is scaled; its Slurm knows the nodes that ParallelCluster was given last."""

    def __init__(self, operated: Operated, directory: Path) -> None:
        self.operated = operated
        self.slurm = FakeSlurm(directory / "slurm")
        self.path = directory / "config" / "trn1-16.yaml"
        self.parallelcluster = ParallelCluster(operated.aws.environment)
        self.said: list[str] = []
        self.runs = 0
        operated.shell(self.slurm.shell)

    def sleep(self, seconds: float) -> None:
        """Let the emulator's threads do their work instead of letting so much time pass."""
        del seconds
        super().sleep(0.2)
        self.render()

    def render(self) -> None:
        """Have Slurm's nodes as ParallelCluster's configuration says, and its queues as the fleet is."""
        low, high = self.deployed
        static = [f"trn1|trn1-st-trn1-32xl-{number}|idle" for number in range(1, low + 1)]
        dynamic = [f"trn1|trn1-dy-trn1-32xl-{number}|idle~" for number in range(1, high - low + 1)]
        self.slurm.nodes(*static, *dynamic)
        self.slurm.queues(trn1="up" if fleet.status(self.deployment()) == fleet.RUNNING else "inactive")

    def deployment(self) -> Deployment:
        from config.settings import load

        return Deployment("trn1-16", load(self.path))

    @property
    def deployed(self) -> tuple[int, int]:
        """What the cluster was given last: min_count and max_count."""
        region = self.operated.settings.region
        configuration: Configuration = self.parallelcluster.describe_cluster(region, "trn1-16").configuration
        [queue] = configuration["Scheduling"]["SlurmQueues"]
        [resource] = queue["ComputeResources"]
        return int(resource["MinCount"]), int(resource["MaxCount"])

    def scale(self, **counts: int) -> scaling.Scaling:
        """Scale, and return what was done."""
        self.runs += 1
        directory = self.path.parents[1] / f"run-{self.runs}"
        directory.mkdir()
        self.said.clear()
        change = scaling.prepare(self.deployment(), None, counts, directory)
        plan = change.candidate.plan()
        assert scaling.blockers(plan) == []
        scaling.apply(change, plan, clock=self, say=self.said.append, drain=False, force=False)
        return change

    def instances(self) -> int:
        return len(fleet.instances(self.deployment()))


@pytest.fixture
def scaled(
    deploy_operated: Callable[..., Operated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scaled]:
    operated = deploy_operated()
    (tmp_path / "config").mkdir()
    shutil.copy(command.CONFIG / "trn1-16.yaml", tmp_path / "config")
    monkeypatch.setattr(scaling, "CONFIG", tmp_path / "config")
    monkeypatch.setattr(deploy, "BUILD", tmp_path / "build")
    monkeypatch.setenv("HOME", str(tmp_path))
    found = Scaled(operated, tmp_path)
    found.render()
    yield found
    found.parallelcluster.stop()


def test_each_way_of_scaling(scaled: Scaled, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled.operated.launch(2)

    scaled.scale(min_count=1, max_count=21)  # both up: live
    assert scaled.deployed == (1, 21)
    assert scaled.instances() == 2
    assert scaled.said == []
    assert "max_count: 21\n" in scaled.path.read_text(encoding="utf-8")

    scaled.slurm.jobs("RUNNING")
    with pytest.raises(command.OperationError, match="Jobs with nodes: 1"):
        scaled.scale(min_count=0)  # MinCount alone: on a stopped fleet
    assert scaled.said == [f"config/trn1-16.yaml does not have the new counts; the fleet is RUNNING. {CONTINUES}"]
    scaled.slurm.jobs()

    with monkeypatch.context() as failing:
        failing.setattr(deploy, "deploy", lambda *_, **__: 1)
        with pytest.raises(command.OperationError, match="The CDK failed with exit code 1"):
            scaled.scale(min_count=0)
    assert scaled.said[-1] == f"config/trn1-16.yaml has the new counts; the fleet is STOPPED. {CONTINUES}"
    assert (scaled.deployed, scaled.instances()) == ((1, 21), 0)
    scaled.scale(min_count=0)
    assert scaled.deployed == (0, 21)
    assert fleet.status(scaled.deployment()) == fleet.RUNNING

    text = scaled.path.read_text(encoding="utf-8")
    scaled.path.write_text(text.replace("queue_update_strategy: DRAIN", "queue_update_strategy: TERMINATE"))
    scaled.operated.launch(2)
    scaled.scale(max_count=4)  # MaxCount down with TERMINATE: while the fleet runs
    assert (scaled.deployed, scaled.instances()) == ((0, 4), 2)
