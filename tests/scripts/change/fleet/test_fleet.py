"""Stopping, starting and draining a fleet, while time passes as the test says."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from config.settings import Settings
from nodes.metrics.spending import DIRECTORY, OVERRULED, Spending
from scripts.change.fleet import queues
from scripts.core.clock import SECONDS_OF_SILENCE
from scripts.core.errors import HeadNodeError, OperationError
from tests.scripts.change.fleet.fakes import SILENCE, FakeCluster
from tests.scripts.refusals import refusal

STATIC = (
    "trn1|trn1-st-trn1-32xl-1|idle",
    "trn1|trn1-st-trn1-32xl-2|allocated",
    "trn1|trn1-dy-trn1-32xl-1|idle+powered_down",
)
DRAINED = ["scontrol update PartitionName=trn1 State=DRAIN"]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return FakeCluster(tmp_path, monkeypatch)


def test_stop_waits_until_the_last_of_1875_nodes_is_terminated_and_the_next_call_continues(
    cluster: FakeCluster,
) -> None:
    cluster.nodes, cluster.terminating = 1875, 0
    with pytest.raises(OperationError, match=r"STOPPED, 1,875 nodes left: 1,875 .*after 60 min"):
        cluster.stop()
    cluster.terminating = 100
    cluster.stop()
    assert (cluster.requests, cluster.status, cluster.nodes) == (["STOP_REQUESTED"], "STOPPED", 0)
    assert "The fleet is STOPPED, 1,575 nodes left: 1,575 shutting-down" in cluster.said
    assert len(cluster.said) == len(set(cluster.said)) + 1, "the second call repeats one line"


def test_a_stopped_fleet_is_left_alone_also_without_a_head_node(cluster: FakeCluster) -> None:
    cluster.status, cluster.nodes, cluster.error = "STOPPED", 0, SILENCE
    cluster.stop()
    assert (cluster.requests, cluster.sleeps) == ([], 0)


def test_a_fleet_that_is_started_meanwhile_is_not_waited_for(cluster: FakeCluster) -> None:
    cluster.terminating = 0
    cluster.at(5, status="START_REQUESTED")
    with pytest.raises(OperationError, match="started again"):
        cluster.stop()


def test_stop_is_rejected_while_jobs_have_nodes_unless_it_is_forced(cluster: FakeCluster) -> None:
    cluster.slurm.jobs("RUNNING", "PENDING", "COMPLETING")
    with pytest.raises(OperationError, match=r"Jobs with nodes: 2\n  11  alice  trn1  RUNNING  4 nodes") as error:
        cluster.stop()
    assert "--force" in error.value.hint
    assert cluster.requests == []
    cluster.slurm.jobs("PENDING", "COMPLETED", "CANCELLED")
    cluster.stop()
    assert cluster.status == "STOPPED"


@pytest.mark.parametrize("error", [SILENCE, refusal("AccessDeniedException")], ids=["silent", "denied"])
def test_where_slurm_cannot_be_asked_only_force_stops(cluster: FakeCluster, error: Exception) -> None:
    cluster.error = error
    with pytest.raises(OperationError, match="Slurm cannot be asked whether jobs run: "):
        cluster.stop()
    assert cluster.requests == []
    cluster.stop(force=True)
    assert cluster.status == "STOPPED"


def test_drain_closes_the_queues_and_waits_for_all_jobs(cluster: FakeCluster) -> None:
    cluster.slurm.queues(trn1="up", other="inactive")
    cluster.slurm.jobs("RUNNING", "PENDING")
    cluster.ticks[2] = lambda: cluster.slurm.jobs("COMPLETED", "PENDING")
    cluster.ticks[4] = cluster.slurm.jobs
    cluster.drain()
    assert cluster.slurm.commands == DRAINED
    assert cluster.said == [
        "Closed to new jobs: trn1",
        "Jobs with nodes: 1, waiting: 1 (None)",
        "Jobs with nodes: 0, waiting: 1 (None)",
        "Jobs with nodes: 0, waiting: 0",
    ]


@pytest.mark.parametrize("error", [SILENCE, EndpointConnectionError(endpoint_url="https://ssm")], ids=["head", "AWS"])
def test_waits_survive_some_minutes_without_an_answer(cluster: FakeCluster, error: Exception) -> None:
    """Of the head node for a drain, of DynamoDB for a stop, and of both for a start."""
    cluster.slurm.jobs("RUNNING")
    cluster.at(2, error=error)
    cluster.at(8, error=None)
    cluster.ticks[10] = cluster.slurm.jobs
    cluster.at(11, ask_error=error)
    cluster.at(19, ask_error=None)
    cluster.stop(drain=True)
    assert (cluster.status, cluster.slurm.commands) == ("STOPPED", DRAINED)
    cluster.slurm.nodes(*STATIC[:1], "trn1|trn1-st-trn1-32xl-2|idle+powering_up")
    cluster.ticks = {}
    cluster.at(cluster.sleeps + 4, error=error)
    cluster.at(cluster.sleeps + 6, error=None)
    cluster.ticks[cluster.sleeps + 7] = lambda: cluster.slurm.nodes(*STATIC)
    cluster.start()
    assert cluster.said.count(f"No answer, trying again for 10 min at most: {error}") == 3


@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredToken"])
def test_a_missing_permission_or_expired_credentials_end_a_wait_at_once(cluster: FakeCluster, code: str) -> None:
    cluster.slurm.jobs("RUNNING")
    cluster.at(2, error=refusal(code))
    with pytest.raises(ClientError, match=code):
        cluster.drain()
    assert cluster.sleeps == 2


def test_a_head_node_that_stays_silent_ends_a_drain(cluster: FakeCluster) -> None:
    cluster.slurm.jobs("RUNNING")
    cluster.at(2, error=SILENCE)
    with pytest.raises(HeadNodeError, match="did not answer"):
        cluster.drain()
    assert cluster.sleeps == 2 + SECONDS_OF_SILENCE / queues.SECONDS_BETWEEN_POLLS


def test_a_drain_that_exceeds_its_limit_names_the_jobs_known_last_and_how_to_open_the_queues(
    cluster: FakeCluster,
) -> None:
    cluster.slurm.jobs(*["RUNNING"] * 100)
    cluster.at(1, error=SILENCE)
    with pytest.raises(OperationError, match=r"Jobs have not ended within 3 min:\n  11  alice(.|\n)*\n  and 90 more$"):
        cluster.stop(drain=True, drain_limit=180)
    assert cluster.sleeps == 3
    assert cluster.said[-1] == "The queues stay closed to new jobs. Open them: ./ultracluster fleet start trn1-16"
    assert cluster.requests == []


def test_after_an_interrupted_drain_start_opens_the_queues(cluster: FakeCluster) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.slurm.jobs("RUNNING")
    cluster.ticks[1] = interrupt
    with pytest.raises(KeyboardInterrupt):
        cluster.drain()
    assert "stay closed" in cluster.said[-1]
    cluster.start()
    assert (cluster.requests, cluster.slurm.states) == ([], ["trn1|up"])


@pytest.fixture
def guarded(cluster: FakeCluster, tmp_path: Path) -> Path:
    """Directory of what nodes cost, with a budget."""
    raw = cluster.deployment.settings.model_dump()
    raw["budget"] = {"monthly_usd": 9000, "emails": ["a@example.com"], "action": "drain"}
    raw["storage"]["file_system"]["mount_dir"] = str(tmp_path / "fsx")
    cluster.deployment.settings = Settings.model_validate(raw)
    return tmp_path / "fsx" / DIRECTORY


@pytest.mark.parametrize(
    ("closed", "usd", "overrule"),
    [(["trn1"], 0, True), (["trn1"], 0, False), ([], 8998, True), ([], 9000, True), ([], 9000, False)],
)
def test_only_an_explicit_start_overrules_the_guard_of_the_budget(
    cluster: FakeCluster, guarded: Path, closed: list[str], usd: float, *, overrule: bool
) -> None:
    """Also one that has closed nothing yet: it reached the limit while the fleet was stopped."""
    for name in ("trn1-15", "trn1-16"):  # both count
        spending = Spending(guarded, name)
        spending.add(cluster.now().timestamp(), usd * 30)
        spending.add(cluster.now().timestamp() + 60, 0)
    spending.close(closed)
    cluster.slurm.queues(trn1="down")
    cluster.start(overrule=overrule)
    stays = bool(closed) and not overrule
    assert cluster.slurm.states == ["trn1|down" if stays else "trn1|up"]
    assert spending.is_overruled() is (overrule and (bool(closed) or usd == 9000))
    assert any("Closed by the budget until the month ends: trn1" in line for line in cluster.said) is stays


@pytest.mark.parametrize(("name", "days"), [("trn1-15", 0), ("trn1-16", 31)])
def test_queues_that_another_cluster_or_last_month_closed_overrule_nothing(
    cluster: FakeCluster, guarded: Path, name: str, days: int
) -> None:
    past = Spending(guarded, name)
    past.add(cluster.now().timestamp() - days * 86400, 0)
    past.close(["trn1"])
    cluster.slurm.queues(trn1="down")
    cluster.start(overrule=True)
    assert cluster.slurm.states == ["trn1|up"]
    assert not (guarded / OVERRULED).exists()


def test_a_stopped_fleet_does_not_drain_waiting_jobs(cluster: FakeCluster) -> None:
    cluster.status = "STOPPED"
    cluster.slurm.jobs("PENDING")
    with pytest.raises(OperationError, match="The fleet is STOPPED: 1 waiting job cannot end"):
        cluster.drain()
    assert cluster.slurm.commands == []


def test_a_queue_that_slurm_refuses_to_close_is_an_error(cluster: FakeCluster) -> None:
    cluster.slurm.jobs("RUNNING")
    cluster.slurm.refuse()
    with pytest.raises(OperationError, match="Slurm did not set trn1 to DRAIN: slurm_update error: Invalid user id"):
        cluster.drain()


def test_start_requests_it_and_waits_for_static_nodes(cluster: FakeCluster) -> None:
    cluster.status = "PROTECTED"
    cluster.slurm.nodes("trn1|trn1-st-trn1-32xl-1|idle+powering_up", "trn1|trn1-st-trn1-32xl-2|down")
    cluster.ticks[4] = lambda: cluster.slurm.nodes(
        "trn1|trn1-st-trn1-32xl-1|idle", "trn1|trn1-st-trn1-32xl-2|idle+powering_up"
    )
    cluster.ticks[6] = lambda: cluster.slurm.nodes(*STATIC)
    cluster.start()
    assert (cluster.requests, cluster.sleeps) == (["START_REQUESTED"], 6)
    assert [line for line in cluster.said if "not ready" in line] == [
        "Static nodes that are not ready: 2. Why nodes fail: ./ultracluster diagnose.",
        "Static nodes that are not ready: 1. Why nodes fail: ./ultracluster diagnose.",
    ]


def test_a_fleet_that_fails_or_is_stuck_while_it_starts_is_an_error(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.status = "STOPPED"
    cluster.at(1, status="PROTECTED")
    with pytest.raises(OperationError, match="The fleet is PROTECTED"):
        cluster.start()
    monkeypatch.setattr(cluster, "follow", lambda: None)
    with pytest.raises(OperationError, match=r"The fleet is START_REQUESTED\. .*after 60 min"):
        cluster.start()


def test_a_queue_that_stays_closed_is_an_error(cluster: FakeCluster) -> None:
    cluster.slurm.queues(trn1="up", broken="inactive")
    with pytest.raises(OperationError, match=r"The fleet is RUNNING, but takes no jobs in: broken \(inactive\)"):
        cluster.start()
