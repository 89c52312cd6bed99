"""Stopping, starting and draining a fleet, while time passes as the test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from scripts.command import OperationError
from scripts.fleet import control as fleet
from scripts.fleet import jobs, queues
from scripts.fleet.queues import NodeKind
from scripts.remote.head_node import Answer, HeadNodeError
from tests.scripts.fleet.fleet_world import Slurm, World

STATIC = ("trn1|trn1-st-trn1-32xl-1|idle", "trn1|trn1-st-trn1-32xl-2|allocated", "trn1|trn1-dy-trn1-32xl-1|idle~")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(Slurm(tmp_path / "slurm"), monkeypatch)


@pytest.mark.parametrize("count", [0, 16, 1875])
def test_stop_waits_until_the_last_node_is_terminated(world: World, count: int) -> None:
    world.nodes, world.terminating = count, 100
    world.stop()
    assert (world.requests, world.status, world.nodes) == (["STOP_REQUESTED"], "STOPPED", 0)
    assert world.said[-1] == "The fleet is STOPPED, 0 nodes left."
    if count == 1875:
        assert "The fleet is STOPPED, 1,575 nodes left: 1,575 shutting-down" in world.said


def test_stop_is_told_what_it_waits_for_only_when_that_changes(world: World) -> None:
    world.terminating = 0
    world.ticks[20] = lambda: setattr(world, "nodes", 0)
    world.stop()
    assert len(world.said) == len(set(world.said))


def test_stopping_what_is_stopped_does_nothing(world: World) -> None:
    world.status, world.nodes, world.reachable = "STOPPED", 0, False
    world.stop()
    assert (world.requests, world.sleeps) == ([], 0)


@pytest.mark.parametrize("status", fleet.STOP_STATUSES)
def test_a_stop_that_was_interrupted_goes_on_without_another_request(world: World, status: str) -> None:
    world.status = status
    world.slurm.jobs("RUNNING")
    world.stop()
    assert (world.requests, world.status, world.nodes) == ([], "STOPPED", 0)


def test_nodes_that_take_too_long_are_named_and_waited_for_when_it_runs_again(world: World) -> None:
    world.terminating = 0
    with pytest.raises(OperationError, match=r"After 30 min the fleet is STOPPED and has 16 nodes left: i-0+0, i-0+1"):
        world.stop(limit=1800)
    world.terminating = 5
    world.stop()
    assert (world.requests, world.nodes) == (["STOP_REQUESTED"], 0)


def test_a_fleet_that_somebody_starts_meanwhile_is_not_waited_for(world: World) -> None:
    world.terminating = 0
    world.ticks[5] = lambda: setattr(world, "status", "START_REQUESTED")
    with pytest.raises(OperationError, match="somebody has started it again"):
        world.stop()


def test_stop_refuses_while_jobs_have_nodes(world: World) -> None:
    world.slurm.jobs("RUNNING", "PENDING", "COMPLETING")
    with pytest.raises(OperationError, match=r"Jobs with nodes: 2\n  11  alice  trn1  RUNNING  4 nodes(.|\n)*--force"):
        world.stop()
    assert world.requests == []


@pytest.mark.parametrize("states", [("PENDING",), ("COMPLETED", "CANCELLED"), ()])
def test_jobs_without_nodes_do_not_keep_it_from_stopping(world: World, states: tuple[str, ...]) -> None:
    world.slurm.jobs(*states)
    world.stop()
    assert world.status == "STOPPED"


def test_force_ends_jobs(world: World) -> None:
    world.slurm.jobs("RUNNING")
    world.stop(force=True)
    assert world.status == "STOPPED"


def test_where_slurm_cannot_be_asked_only_force_stops(world: World) -> None:
    world.reachable = False
    with pytest.raises(OperationError, match=r"cannot be asked whether jobs run: The head node did not(.|\n)*--force"):
        world.stop()
    assert world.requests == []
    world.stop(force=True)
    assert world.status == "STOPPED"


@pytest.mark.parametrize(("code", "error"), [("AccessDeniedException", OperationError), ("ExpiredToken", ClientError)])
def test_a_missing_right_is_a_refusal_and_expired_credentials_are_not(
    world: World, monkeypatch: pytest.MonkeyPatch, code: str, error: type[Exception]
) -> None:
    def refuse(_: str) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "ssm:SendCommand"}}, "SendCommand")

    monkeypatch.setattr(world, "run", refuse)
    with pytest.raises(error, match="ssm:SendCommand"):
        world.stop()


def test_credentials_that_expire_in_mid_way_leave_a_stop_that_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def expire() -> None:
        def refuse(*_: object, **__: Any) -> None:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "GetItem")

        monkeypatch.setattr(world, "ask", refuse)

    world.terminating, world.ticks[3] = 1, expire
    with pytest.raises(ClientError, match="ExpiredToken"):
        world.stop()
    monkeypatch.undo()
    monkeypatch.setattr(fleet, "HeadNode", lambda *_: world)
    world.stop()
    assert (world.requests, world.nodes) == (["STOP_REQUESTED"], 0)


@pytest.mark.parametrize("operation", ["stop", "start"])
def test_without_a_cluster_there_is_nothing_to_do(world: World, operation: str) -> None:
    world.status = fleet.UNKNOWN
    with pytest.raises(OperationError, match="There is no fleet of a cluster trn1-16 in us-west-2"):
        getattr(world, operation)()


def test_drain_closes_the_queues_and_waits_for_all_jobs(world: World) -> None:
    world.slurm.queues(trn1="up", other="inact")
    world.slurm.jobs("RUNNING", "PENDING")
    world.ticks[2] = lambda: world.slurm.jobs("COMPLETED", "PENDING")
    world.ticks[4] = lambda: world.slurm.jobs("COMPLETED", "COMPLETED")
    world.drain()
    assert world.slurm.commands == ["update PartitionName=trn1 State=DRAIN"]
    assert world.said == [
        "Closed to new jobs: trn1",
        "1 jobs have nodes, 1 wait (None)",
        "0 jobs have nodes, 1 wait (None)",
        "0 jobs have nodes, 0 wait",
    ]
    assert world.sleeps == 4


@pytest.mark.parametrize("queue", ["trn1", "q-1", "q-1-2"])
def test_kinds_of_nodes_are_told_whatever_a_queue_is_called(world: World, queue: str) -> None:
    world.slurm.queues(**{queue: "up"})
    static = [f"{queue}|{queue}-st-trn1-32xl-{number}|idle" for number in (1, 22)]
    world.slurm.nodes(*static, f"{queue}|{queue}-dy-c6i-4x-1|idle~")
    assert queues.ask(world).kinds == (  # type: ignore[arg-type]  # it stands for the head node
        NodeKind(queue, "c6i-4x", static=False, count=1, ready=0),
        NodeKind(queue, "trn1-32xl", static=True, count=2, ready=2),
    )


def test_nodes_that_slurm_does_not_tell_of_are_not_no_nodes(world: World) -> None:
    world.slurm.lose_nodes()
    with pytest.raises(HeadNodeError, match=r"Slurm on the head node did not answer: .*No such file"):
        queues.ask(world)  # type: ignore[arg-type]  # it stands for the head node


def failing(error: Exception) -> Callable[[str], Answer]:
    """Return a head node's `run` that fails."""

    def fail(_: str) -> Answer:
        raise error

    return fail


HICCUPS = [
    HeadNodeError("The head node i-1 did not answer within 60 s"),
    EndpointConnectionError(endpoint_url="https://ssm.us-west-2.amazonaws.com"),
    ClientError({"Error": {"Code": "InternalServerError", "Message": "again"}}, "SendCommand"),
]


@pytest.mark.parametrize("error", HICCUPS, ids=lambda error: type(error).__name__)
def test_a_drain_outlives_some_minutes_without_an_answer(world: World, error: Exception) -> None:
    world.slurm.jobs("RUNNING")
    world.ticks[2] = lambda: setattr(world, "run", failing(error))
    world.ticks[8] = lambda: delattr(world, "run")
    world.ticks[20] = lambda: setattr(world, "run", failing(error))
    world.ticks[26] = lambda: delattr(world, "run")
    world.ticks[30] = world.slurm.jobs
    world.drain()
    assert world.said.count(f"No answer, which is asked for again: {error}") == 2
    assert world.said[-1] == "0 jobs have nodes, 0 wait"


@pytest.mark.parametrize(("operation", "before"), [("stop", "RUNNING"), ("start", "STOPPED")])
@pytest.mark.parametrize("error", HICCUPS[1:], ids=lambda error: type(error).__name__)
def test_a_wait_for_the_fleet_outlives_some_minutes_without_an_answer(
    world: World, error: Exception, operation: str, before: str
) -> None:
    def unanswered(*_: object, **__: object) -> None:
        raise error

    world.status = before
    world.ticks[1] = lambda: setattr(world, "ask", unanswered)
    world.ticks[9] = lambda: delattr(world, "ask")
    getattr(world, operation)()
    assert world.said.count(f"No answer, which is asked for again: {error}") == 1
    assert world.status == ("STOPPED" if operation == "stop" else "RUNNING")


def test_a_right_that_is_missing_ends_a_wait_at_once(world: World) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetItem")

    world.ticks[1] = lambda: setattr(world, "ask", refused)
    with pytest.raises(ClientError, match="AccessDenied"):
        world.stop()
    assert world.sleeps == 1


def test_a_head_node_that_stays_silent_ends_a_drain(world: World) -> None:
    world.slurm.jobs("RUNNING")
    world.ticks[2] = lambda: setattr(world, "reachable", False)
    with pytest.raises(HeadNodeError, match="did not answer"):
        world.drain()
    assert world.sleeps == 2 + jobs.SECONDS_OF_SILENCE / jobs.SECONDS_BETWEEN_LOOKS


def test_credentials_that_expire_end_a_drain_at_once(world: World) -> None:
    expired = ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "SendCommand")
    world.slurm.jobs("RUNNING")
    world.ticks[2] = lambda: setattr(world, "run", failing(expired))
    with pytest.raises(ClientError, match="ExpiredToken"):
        world.drain()
    assert world.sleeps == 2


def test_a_limit_that_ends_in_silence_tells_what_was_left_last(world: World) -> None:
    world.slurm.jobs("RUNNING")
    world.ticks[1] = lambda: setattr(world, "reachable", False)
    with pytest.raises(OperationError, match=r"not come to their end:\n  11  alice"):
        world.drain(limit=180)


def test_a_start_outlives_a_moment_without_an_answer(world: World) -> None:
    world.slurm.nodes(*STATIC[:1], "trn1|trn1-st-trn1-32xl-2|idle#")
    world.ticks[2] = lambda: setattr(world, "reachable", False)
    world.ticks[4] = lambda: setattr(world, "reachable", True)
    world.ticks[5] = lambda: world.slurm.nodes(*STATIC)
    world.start()
    assert world.sleeps == 5


def test_a_stop_that_drains_keeps_to_the_limit_of_the_drain(world: World) -> None:
    world.slurm.jobs("RUNNING")
    world.ticks[61] = world.slurm.jobs
    with pytest.raises(OperationError, match="Jobs have not come to their end"):
        world.stop(drain=True, drain_limit=3600)
    assert (world.requests, world.sleeps) == ([], 60)


def test_drain_then_stop(world: World) -> None:
    world.slurm.jobs("RUNNING")
    world.ticks[2] = world.slurm.jobs
    world.stop(drain=True)
    assert (world.slurm.commands, world.status) == (["update PartitionName=trn1 State=DRAIN"], "STOPPED")


def test_a_drain_that_takes_too_long_tells_what_is_left_and_how_to_open_the_queues(world: World) -> None:
    world.slurm.jobs("RUNNING", "PENDING")
    with pytest.raises(OperationError, match=r"not come to their end:\n  11  alice"):
        world.drain(limit=60)
    assert world.said[-1] == "The queues stay closed to new jobs. To open them: make fleet ENV=trn1-16 ARGS=start"
    assert world.requests == []


def test_an_interrupted_drain_says_so_and_start_opens_the_queues(world: World) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    world.slurm.jobs("RUNNING")
    world.ticks[1] = interrupt
    with pytest.raises(KeyboardInterrupt):
        world.drain()
    assert "stay closed" in world.said[-1]
    world.start()
    assert world.requests == []
    assert world.slurm.states == ["trn1|up"]
    assert world.said[-1] == "Open to new jobs again: trn1"


def test_a_stopped_fleet_does_not_drain_jobs_that_wait(world: World) -> None:
    world.status = "STOPPED"
    world.slurm.jobs("PENDING")
    with pytest.raises(OperationError, match="The fleet is STOPPED: 1 jobs that wait cannot come to their end"):
        world.drain()
    assert world.slurm.commands == []


def test_slurm_that_refuses_to_close_a_queue_is_told(world: World) -> None:
    world.slurm.jobs("RUNNING")
    world.slurm.refuse()
    with pytest.raises(OperationError, match="Slurm did not set trn1 to DRAIN: slurm_update error: Invalid user id"):
        world.drain()


@pytest.mark.parametrize("status", ["STOPPED", "PROTECTED"])
def test_start_requests_it_and_waits_for_nodes_that_always_run(world: World, status: str) -> None:
    world.status = status
    world.slurm.nodes("trn1|trn1-st-trn1-32xl-1|idle#", "trn1|trn1-st-trn1-32xl-2|idle~")
    world.ticks[4] = lambda: world.slurm.nodes("trn1|trn1-st-trn1-32xl-1|idle", "trn1|trn1-st-trn1-32xl-2|idle#")
    world.ticks[6] = lambda: world.slurm.nodes(*STATIC)
    world.start()
    assert world.requests == ["START_REQUESTED"]
    assert [line for line in world.said if "always run" in line] == [
        "Nodes that always run, still to come: 2",
        "Nodes that always run, still to come: 1",
    ]
    assert world.sleeps == 6


@pytest.mark.parametrize("state", ["idle*", "down", "drained", "drained*", "powering_down", "down#"])
def test_nodes_that_take_no_jobs_are_not_there(world: World, state: str) -> None:
    world.slurm.nodes(f"trn1|trn1-st-trn1-32xl-1|{state}")
    with pytest.raises(OperationError, match="After 1 min 1 node of those that always run are not there"):
        world.start(limit=60)


def test_a_fleet_that_fails_while_it_starts_is_told(world: World) -> None:
    world.status = "STOPPED"
    world.ticks[1] = lambda: setattr(world, "status", "PROTECTED")
    with pytest.raises(OperationError, match="The fleet is PROTECTED"):
        world.start()


def test_a_request_that_nobody_follows_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.status = "START_REQUESTED"
    monkeypatch.setattr(world, "follow", lambda: None)
    with pytest.raises(OperationError, match="After 5 min the fleet is START_REQUESTED"):
        world.start(limit=300)


def test_a_queue_that_stays_closed_is_told(world: World) -> None:
    world.slurm.queues(trn1="up", broken="inact")
    with pytest.raises(OperationError, match=r"The fleet is RUNNING, but takes no jobs in: broken \(inact\)"):
        world.start()
