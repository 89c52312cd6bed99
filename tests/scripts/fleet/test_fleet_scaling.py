"""What scaling does with a plan, and what it refuses; the deployment itself is left out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from scripts import deploy
from scripts.command import CONFIG, OperationError, UnusableError
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.fleet import scaling, scaling_needs
from scripts.fleet.report import Scaled, steps
from scripts.plan.model import ClusterChange, ClusterPlan, Kind, Plan, Source, StackPlan
from scripts.preflight import catalog
from scripts.preflight.check import Check, Finding, Status
from tests.scripts.fleet.fleet_world import Slurm, World

PATH = "Scheduling.SlurmQueues[trn1].ComputeResources[trn1-32xl].MaxCount"


class Site:
    """A settings file in a directory of its own, and a world that its cluster runs in."""

    def __init__(self, world: World, directory: Path) -> None:
        self.world = world
        self.path = directory / "trn1-16.yaml"
        self.before = self.path.read_text(encoding="utf-8")
        self.deployed: list[str] = []
        self._directory = directory

    def prepare(self, target: str | None = None, /, **counts: int) -> scaling.Scaling:
        copies = self._directory / f"copy-{len(list(self._directory.iterdir()))}"
        copies.mkdir()
        self.world.deployment.settings = load(self.path)
        return scaling.prepare(self.world.deployment, target, counts, copies)

    def scale(self, kind: Kind, *, drain: bool = False, force: bool = False, **counts: int) -> None:
        change = self.prepare(None, **counts)
        low, high = change.after
        static = [f"trn1|trn1-st-trn1-32xl-{number}|idle" for number in range(low)]
        self.world.slurm.nodes(*static, *[f"trn1|trn1-dy-trn1-32xl-{number}|idle~" for number in range(high - low)])
        clock, say = self.world, self.world.said.append
        scaling.apply(change, plan(kind), clock=clock, say=say, drain=drain, force=force)

    def deploy(self, environment: str, *_: Any, **__: Any) -> int:
        self.deployed.append(f"{environment} while {self.world.status}")
        return 0


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    world = World(Slurm(tmp_path / "slurm"), monkeypatch)
    monkeypatch.setattr(scaling, "HeadNode", lambda *_: world)
    directory = tmp_path / "config"
    directory.mkdir()
    shutil.copy(CONFIG / "trn1-16.yaml", directory)
    monkeypatch.setattr(scaling, "CONFIG", directory)
    found = Site(world, directory)
    monkeypatch.setattr(deploy, "deploy", found.deploy)
    return found


def plan(kind: Kind | None, status: str = "RUNNING", findings: tuple[Finding, ...] = ()) -> Plan:
    change = ClusterChange(PATH, "16", "8", kind or Kind.LIVE, passes_now=kind is Kind.LIVE)
    cluster = ClusterPlan("trn1-16", True, "", status, (change,) if kind else ())
    stack = StackPlan("trn1-16-cluster", Source.CHANGE_SET if kind else Source.SAME, other=("x",) if kind else ())
    return Plan(
        environment="trn1-16",
        region="us-west-2",
        against="account 1",
        stacks=(stack,),
        cluster=cluster,
        findings=findings,
    )


@pytest.mark.parametrize("target", [None, "trn1", "trn1/trn1-32xl"])
def test_the_counts_of_a_compute_resource_change_and_nothing_else(site: Site, target: str | None) -> None:
    change = site.prepare(target, max_count=20)
    assert (change.name, change.before, change.after) == ("trn1/trn1-32xl", (0, 16), (0, 20))
    assert change.settings.cluster.queues[0].compute_resources[0].max_count == 20
    assert change.grows
    assert site.path.read_text(encoding="utf-8") == site.before


@pytest.mark.parametrize(
    ("environment", "target", "allowed"),
    [
        ("trn1-16", "trn2", "got trn2; allowed: trn1/trn1-32xl "),
        ("trn1-16", "trn1/x", "got trn1/x; allowed: trn1/trn1-32xl "),
        ("two-queues", None, "got no queue; allowed: trn1-a/trn1-32xl, trn1-b/trn1-32xl "),
    ],
)
def test_an_unknown_or_unclear_target_is_refused(
    tmp_path: Path, environment: str, target: str | None, allowed: str
) -> None:
    deployment = Deployment(environment, load(CONFIG / f"{environment}.yaml"))
    with pytest.raises(UnusableError, match=allowed):
        scaling.prepare(deployment, target, {"max_count": 2}, tmp_path)


def test_all_faults_of_the_counts_are_told_and_the_file_stays(site: Site) -> None:
    with pytest.raises(UnusableError) as refused:
        site.prepare(min_count=-1, max_count=0)
    text = str(refused.value)
    for field in ("min_count", "max_count"):
        assert re.search(rf"config/trn1-16\.yaml:\d+: cluster\.queues\[0\]\.compute_resources\[0\]\.{field}", text)
    assert text.endswith("config/trn1-16.yaml is as it was.")
    assert site.path.read_text(encoding="utf-8") == site.before


def test_without_a_cluster_nothing_is_planned(site: Site) -> None:
    site.world.status = fleet.UNKNOWN
    with pytest.raises(OperationError, match="There is no fleet of a cluster trn1-16 in us-west-2"):
        site.prepare(max_count=20)


def test_a_live_change_leaves_the_fleet_and_closed_queues_alone(site: Site) -> None:
    site.world.slurm.queues(trn1="drain")
    site.scale(Kind.LIVE, max_count=20)
    assert site.deployed == ["trn1-16 while RUNNING"]
    assert (site.world.requests, site.world.slurm.commands) == ([], [])
    assert site.path.read_text(encoding="utf-8") == site.before.replace("max_count: 16", "max_count: 20")


def test_what_needs_a_stopped_fleet_stops_and_starts_it(site: Site) -> None:
    site.scale(Kind.FLEET_STOPPED, max_count=8)
    assert site.deployed == ["trn1-16 while STOPPED"]
    assert site.world.requests == ["STOP_REQUESTED", "START_REQUESTED"]


@pytest.mark.parametrize("kind", [Kind.FLEET_STOPPED, Kind.TERMINATES])
def test_jobs_with_nodes_keep_nodes_from_being_taken(site: Site, kind: Kind) -> None:
    site.world.slurm.jobs("RUNNING")
    with pytest.raises(OperationError, match="Jobs with nodes: 1"):
        site.scale(kind, max_count=8)
    assert (site.deployed, site.world.requests) == ([], [])
    assert site.path.read_text(encoding="utf-8") == site.before
    site.scale(kind, max_count=8, force=True)
    assert len(site.deployed) == 1


@pytest.mark.parametrize("kind", [Kind.FLEET_STOPPED, Kind.TERMINATES])
def test_drain_lets_jobs_end_first_and_opens_the_queues_again(site: Site, kind: Kind) -> None:
    site.world.slurm.jobs("RUNNING")
    site.world.ticks[3] = site.world.slurm.jobs
    site.scale(kind, max_count=8, drain=True)
    assert site.world.slurm.commands == [
        "update PartitionName=trn1 State=DRAIN",
        "update PartitionName=trn1 State=UP",
    ]
    assert len(site.deployed) == 1


@pytest.mark.parametrize("status", ["STOPPED", "STARTING"])
def test_what_was_deployed_before_an_interruption_is_only_started(site: Site, status: str) -> None:
    site.path.write_text(site.before.replace("max_count: 16", "max_count: 8"), encoding="utf-8")
    site.world.status, site.world.nodes = status, 0
    change = site.prepare(max_count=8)
    site.world.slurm.nodes(*["trn1|trn1-dy-trn1-32xl-1|idle~"] * 8)
    scaling.apply(change, plan(None), clock=site.world, say=site.world.said.append, drain=False, force=False)
    assert (site.deployed, site.world.status) == ([], "RUNNING")


def test_slurm_that_knows_other_nodes_is_a_fault(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.world.slurm, "nodes", lambda *_: None)
    with pytest.raises(OperationError, match=r"Slurm has 0 static and 1 dynamic nodes of trn1/trn1-32xl; deployed: 0"):
        site.scale(Kind.LIVE, max_count=20)


def test_a_head_node_that_is_silent_for_a_moment_is_asked_again(site: Site) -> None:
    site.world.reachable = False
    site.world.ticks[2] = lambda: setattr(site.world, "reachable", True)
    site.scale(Kind.LIVE, max_count=20)
    assert site.world.said == ["No answer, which is asked for again: The head node did not answer"]


def test_a_fleet_that_runs_is_no_obstacle_and_all_else_is() -> None:
    fleet_runs = Finding(Status.FAIL, f"{PATH} from 16 to 8 needs the fleet STOPPED", subject="cluster trn1-16")
    other = Finding(Status.FAIL, "the stack is UPDATE_IN_PROGRESS", subject="trn1-16-cluster")
    warning = Finding(Status.WARN, "somebody should know", subject="trn1-16-cluster")
    found = plan(Kind.FLEET_STOPPED, findings=(fleet_runs, other, warning))
    assert scaling_needs.obstacles(found) == ["trn1-16-cluster: the stack is UPDATE_IN_PROGRESS"]
    assert len(scaling_needs.obstacles(plan(Kind.REFUSED, findings=(fleet_runs,)))) == 1


def test_steps_say_what_happens_to_fleet_and_jobs(site: Site) -> None:
    change = site.prepare(max_count=8)

    def told(kind: Kind, *, drain: bool = False, force: bool = False, status: str = "RUNNING") -> str:
        return steps(Scaled(change, plan(kind, status), done=True), drain=drain, force=force)

    assert told(Kind.FLEET_STOPPED) == (
        "Steps:\n"
        "  1. stop the fleet, unless jobs have nodes\n"
        "  2. config/trn1-16.yaml, trn1/trn1-32xl: max_count from 16 to 8\n"
        "  3. deploy\n"
        "  4. start the fleet\n"
        "  5. ask Slurm for the nodes"
    )
    assert "1. stop the fleet, after all jobs have ended" in told(Kind.FLEET_STOPPED, drain=True)
    assert "1. the fleet is STOPPED already" in told(Kind.FLEET_STOPPED, status="STOPPED")
    assert "1. nodes are terminated while the fleet runs: go on although jobs have nodes" in told(
        Kind.TERMINATES, force=True
    )


def test_preflight_looks_at_the_new_counts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(deployment: Deployment) -> list[Finding]:
        count = deployment.settings.cluster.queues[0].compute_resources[0].max_count
        return [Finding(Status.FAIL if count > 20 else Status.WARN, f"{count} nodes", "ask for more")]

    fake = {check_id: Check(check_id, "", "", (), look, 5) for check_id in ("credentials", "quota-gp3")}
    monkeypatch.setattr(catalog, "CATALOG", tuple(fake.values()))
    monkeypatch.setattr(scaling_needs, "CHECKS", ("quota-gp3",))
    said: list[str] = []
    scaling_needs.check(site.prepare(max_count=20), said.append)
    assert said == ["WARN quota-gp3: 20 nodes"]
    with pytest.raises(OperationError, match=r"quota-gp3: 21 nodes\. ask for more"):
        scaling_needs.check(site.prepare(max_count=21), said.append)


def test_all_checks_that_are_asked_for_exist() -> None:
    from scripts.preflight.catalog import select

    ids = [each.id for each in select(catalog.CATALOG, scaling_needs.CHECKS, [])]
    assert {"credentials", "quota-trn-on-demand", "quota-interfaces", "free-addresses"} <= set(ids)
