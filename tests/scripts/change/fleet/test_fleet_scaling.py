"""What scaling does with a plan, and what it rejects; the deployment itself is left out."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from config.settings import load
from scripts.account.deployment import Deployment
from scripts.change.candidate import Candidate
from scripts.change.fleet import scaling
from scripts.check.plan.findings import of_cluster
from scripts.check.plan.model import ClusterChange, ClusterPlan, Kind, Source, StackPlan
from scripts.check.plan.report import Plan
from scripts.check.preflight import catalog
from scripts.check.preflight.check import Check
from scripts.core import options
from scripts.core.errors import OperationError, UnusableError
from scripts.core.findings import CheckStatus, Finding
from scripts.core.options import CONFIG
from tests.scripts.change.fleet.fakes import SILENCE, FakeCluster

PATH = "Scheduling.SlurmQueues[trn1].ComputeResources[trn1-32xl].MaxCount"


class ScaledCluster(FakeCluster):
    """A cluster with a settings file in a directory of its own; `deployed` has the fleet's status at each deploy."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(directory, monkeypatch)
        self.path = directory / "trn1-16.yaml"
        shutil.copy(CONFIG / "trn1-16.yaml", self.path)
        self.before = self.path.read_text(encoding="utf-8")
        self.deployed: list[str] = []
        monkeypatch.setattr(options, "CONFIG", directory)
        monkeypatch.setattr(Candidate, "deploy", lambda *_, **__: self.deployed.append(self.status))

    def prepare(self, target: str | None = None, /, **counts: int) -> scaling.Scaling:
        self.deployment.settings = load(self.path)
        return scaling.prepare(self.deployment, target, counts, self.path.parent / "copy")

    def scale(self, kind: Kind | None, *, drain: bool = False, force: bool = False, **counts: int) -> None:
        change = self.prepare(None, **counts)
        low, high = change.after.min_count, change.after.max_count
        static = [f"trn1|trn1-st-trn1-32xl-{number}|idle" for number in range(low)]
        self.slurm.nodes(
            *static, *[f"trn1|trn1-dy-trn1-32xl-{number}|idle+powered_down" for number in range(high - low)]
        )
        scaling.apply(change, plan(kind), clock=self, say=self.said.append, drain=drain, force=force)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScaledCluster:
    return ScaledCluster(tmp_path, monkeypatch)


def plan(kind: Kind | None, status: str = "RUNNING", findings: tuple[Finding, ...] = ()) -> Plan:
    change = ClusterChange(PATH, "16", "8", kind or Kind.LIVE, passes_now=kind is Kind.LIVE)
    cluster = ClusterPlan("trn1-16", True, "", status, (change,) if kind else ())
    stack = StackPlan("trn1-16-cluster", Source.CHANGE_SET if kind else Source.SAME, other=("x",) if kind else ())
    return Plan(
        deployment="trn1-16",
        region="us-west-2",
        against="account 1",
        stacks=(stack,),
        cluster=cluster,
        findings=findings,
    )


@pytest.mark.parametrize("target", [None, "trn1", "trn1/trn1-32xl"])
def test_the_counts_of_a_compute_resource_are_tried_on_a_copy(cluster: ScaledCluster, target: str | None) -> None:
    change = cluster.prepare(target, max_count=20)
    assert (change.name, change.edits, change.grows) == ("trn1/trn1-32xl", {"max_count": (16, 20)}, True)
    assert change.candidate.settings.cluster.queues[0].compute_resources[0].max_count == 20
    assert cluster.path.read_text(encoding="utf-8") == cluster.before


@pytest.mark.parametrize(
    ("environment", "target", "allowed"),
    [
        ("trn1-16", "trn1/x", "got trn1/x; allowed: trn1/trn1-32xl "),
        ("two-queues", None, "got no queue; allowed: trn1-a/trn1-32xl, trn1-b/trn1-32xl "),
    ],
)
def test_an_unknown_or_ambiguous_target_is_rejected(
    tmp_path: Path, environment: str, target: str | None, allowed: str
) -> None:
    deployment = Deployment(environment, load(CONFIG / f"{environment}.yaml"))
    with pytest.raises(UnusableError, match=allowed):
        scaling.prepare(deployment, target, {"max_count": 2}, tmp_path)


def test_all_violations_of_the_counts_are_named_and_the_file_stays(cluster: ScaledCluster) -> None:
    with pytest.raises(UnusableError) as rejected:
        cluster.prepare(min_count=-1, max_count=0)
    text = str(rejected.value)
    assert "compute_resources[0].min_count" in text
    assert "compute_resources[0].max_count" in text
    assert cluster.path.read_text(encoding="utf-8") == cluster.before


def test_a_live_change_leaves_the_fleet_and_closed_queues_alone(cluster: ScaledCluster) -> None:
    cluster.slurm.queues(trn1="drain")
    cluster.scale(Kind.LIVE, max_count=20)
    assert (cluster.deployed, cluster.requests, cluster.slurm.commands) == (["RUNNING"], [], [])
    assert cluster.path.read_text(encoding="utf-8") == cluster.before.replace("max_count: 16", "max_count: 20")


def test_a_change_that_needs_a_stopped_fleet_stops_and_starts_it(cluster: ScaledCluster) -> None:
    cluster.scale(Kind.FLEET_STOPPED, max_count=8)
    assert (cluster.deployed, cluster.requests) == (["STOPPED"], ["STOP_REQUESTED", "START_REQUESTED"])


@pytest.mark.parametrize("kind", [Kind.FLEET_STOPPED, Kind.TERMINATES])
def test_nodes_of_jobs_are_terminated_only_by_force(cluster: ScaledCluster, kind: Kind) -> None:
    cluster.slurm.jobs("RUNNING")
    with pytest.raises(OperationError, match="Jobs with nodes: 1"):
        cluster.scale(kind, max_count=8)
    assert (cluster.deployed, cluster.requests) == ([], [])
    assert cluster.path.read_text(encoding="utf-8") == cluster.before
    assert "does not have the new counts; the fleet is RUNNING" in cluster.said[-1]
    cluster.scale(kind, max_count=8, force=True)
    assert len(cluster.deployed) == 1


@pytest.mark.parametrize("kind", [Kind.FLEET_STOPPED, Kind.TERMINATES])
def test_drain_waits_for_jobs_and_opens_the_queues_again(cluster: ScaledCluster, kind: Kind) -> None:
    cluster.slurm.jobs("RUNNING")
    cluster.ticks[3] = cluster.slurm.jobs
    cluster.scale(kind, max_count=8, drain=True)
    states = [command.rpartition("=")[2] for command in cluster.slurm.commands]
    assert (states, len(cluster.deployed)) == (["DRAIN", "UP"], 1)


def test_a_fleet_that_was_deployed_before_an_interruption_is_only_started(cluster: ScaledCluster) -> None:
    cluster.path.write_text(cluster.before.replace("max_count: 16", "max_count: 8"), encoding="utf-8")
    cluster.status, cluster.nodes = "STOPPED", 0
    cluster.scale(None, max_count=8)
    assert (cluster.deployed, cluster.status) == ([], "RUNNING")


def test_other_nodes_in_slurm_are_an_error_and_silence_is_not(
    cluster: ScaledCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.error = SILENCE
    cluster.at(2, error=None)
    cluster.scale(Kind.LIVE, max_count=20)
    monkeypatch.setattr(cluster.slurm, "nodes", lambda *_: None)
    with pytest.raises(OperationError, match=r"trn1/trn1-32xl in Slurm: {'static': 0, 'dynamic': 20}; deployed: .* 21"):
        cluster.scale(Kind.LIVE, max_count=21)


def test_a_running_fleet_is_no_blocker_and_all_else_is() -> None:
    """By the key that a finding is about, whatever its sentence says."""
    [fleet_runs] = of_cluster(plan(Kind.FLEET_STOPPED).cluster, "trn1-16")
    fleet_runs = replace(fleet_runs, sentence="stop the fleet")
    other = Finding(CheckStatus.FAIL, f"{PATH} from 16 to 8: UPDATE_IN_PROGRESS", subject="trn1-16-cluster")
    warning = Finding(CheckStatus.WARN, "somebody should know", subject="trn1-16-cluster")

    def planned(kind: Kind, *findings: Finding) -> Plan:
        return scaling.make_plan(Mock(plan=lambda: plan(kind, findings=findings)))

    blocked = planned(Kind.FLEET_STOPPED, fleet_runs, other, warning)
    assert blocked.findings == (other, warning)
    assert blocked.blockers == [f"trn1-16-cluster: {other.sentence}"]
    assert planned(Kind.FLEET_STOPPED, fleet_runs, warning).ok
    assert len(planned(Kind.REFUSED, fleet_runs).blockers) == 1


def test_steps_say_what_happens_to_fleet_and_jobs(cluster: ScaledCluster) -> None:
    change = cluster.prepare(max_count=8)
    assert scaling.steps(change, plan(Kind.FLEET_STOPPED), drain=False, force=False).splitlines() == [
        "Steps:",
        "  1. stop the fleet, unless jobs have nodes",
        f"  2. {cluster.path}, trn1/trn1-32xl: max_count from 16 to 8",
        "  3. deploy",
        "  4. start the fleet",
        "  5. compare the nodes in Slurm",
    ]
    stopped = scaling.steps(change, plan(Kind.FLEET_STOPPED, "STOPPED"), drain=False, force=False)
    assert "1. the fleet is STOPPED already" in stopped
    terminates = scaling.steps(change, plan(Kind.TERMINATES), drain=False, force=True)
    assert "1. nodes are terminated while the fleet runs, although jobs have nodes" in terminates


def test_preflight_checks_the_new_counts(cluster: ScaledCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(deployment: Deployment) -> list[Finding]:
        count = deployment.settings.cluster.queues[0].compute_resources[0].max_count
        return [Finding(CheckStatus.FAIL if count > 20 else CheckStatus.WARN, f"{count} nodes", "ask for more")]

    fake: Any = [Check(check_id, "", "", (), look, 5) for check_id in ("credentials", "quota-gp3")]
    monkeypatch.setattr(catalog, "CATALOG", tuple(fake))
    monkeypatch.setattr(scaling, "CHECKS", ("quota-gp3",))
    said: list[str] = []
    scaling.check(cluster.prepare(max_count=20), said.append)
    assert said == ["WARN quota-gp3: 20 nodes"]
    with pytest.raises(OperationError, match=r"quota-gp3: 21 nodes\. ask for more"):
        scaling.check(cluster.prepare(max_count=21), said.append)


def test_all_checks_that_scaling_runs_exist() -> None:
    from scripts.check.preflight.catalog import select

    ids = [each.id for each in select(catalog.CATALOG, scaling.CHECKS, [])]
    assert {"credentials", "quota-trn-on-demand", "quota-interfaces", "free-addresses"} <= set(ids)
