"""What is looked at within the calls that there are, what is wrong, and what is shown."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pytest
from rich.console import Console

from config.settings import Settings, load
from scripts.command import CONFIG
from scripts.deployment import PARTS
from scripts.slurm import parse
from scripts.status.cost import cost_now
from scripts.status.faults import faults
from scripts.status.look import Budget, budget
from scripts.status.model import (
    CostNow,
    FileSystem,
    HeadNode,
    Instances,
    Reservation,
    Stack,
    Status,
    Unseen,
    Usage,
)
from scripts.status.screen import render
from scripts.status.software import FailedNode, Software
from tests.scripts.slurm_samples import RECORDED

NOW = datetime(2026, 11, 21, 13, tzinfo=UTC)
AGO = NOW - timedelta(hours=5)
STACKS = tuple(Stack(f"trn1-16-{part}", "CREATE_COMPLETE", AGO) for part in PARTS)
HEALTHY = Status(
    environment="trn1-16",
    name="trn1-16",
    region="us-west-2",
    cluster="trn1-16",
    now=NOW,
    stacks=STACKS,
    others=(),
    instances=Instances(HeadNode("i-1", "running", "c6i.4xlarge", "10.0.0.5", "", AGO), {"running": 2}, {}),
    session_manager=True,
    fleet="RUNNING",
    slurm=parse(RECORDED),
    slurm_seen=NOW,
    software=Software("ready", "inactive", "2.28.1-pytorch2.9.0-ubuntu24.04", "2026-11-21T12:58:00Z", "", (), ()),
    file_system=FileSystem("fs-1", "AVAILABLE", 4800, 1200),
    usage=Usage(2400 * 1024**3, 300),
    reservations=(),
    alarms=(),
    cost=CostNow(Decimal(43), Decimal("2.16"), (), "table of 2026-01-19"),
)

BUILDING = replace(cast(Software, HEALTHY.software), state="building", unit="active", log=("first", "second"))
FAILED = replace(BUILDING, state="failed", unit="failed", reason="failed (10): no network.")


def settings(environment: str = "trn1-16", *, nodes: int = 16, reservation: str = "", group: str = "") -> Settings:
    """Return settings with so many nodes, and what they are launched into."""
    found = load(CONFIG / f"{environment}.yaml")
    [queue] = found.cluster.queues
    [resource] = queue.compute_resources
    changed = resource.model_copy(
        update={
            "max_count": nodes,
            "capacity_reservation_id": reservation or None,
            "capacity_reservation_group_arn": group or None,
        }
    )
    queues = [queue.model_copy(update={"compute_resources": [changed]})]
    return found.model_copy(update={"cluster": found.cluster.model_copy(update={"queues": queues})})


def shown(status: Status, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    for each in render(status):
        console.print(each)
    return cast(io.StringIO, console.file).getvalue()


@pytest.mark.parametrize(
    ("given", "stacks", "asked", "groups", "looks"),
    [
        (settings(), 2, ("reservations", "usage", "alarms"), 0, 4),
        (settings(), 6, ("reservations", "usage"), 0, 1),
        (settings(nodes=1875), 2, ("reservations", "usage", "alarms"), 0, 3),
        (settings(nodes=1875, reservation="cr-1"), 2, ("reservations", "usage", "alarms"), 0, 2),
        (settings(nodes=1875, reservation="cr-1"), 5, ("reservations",), 0, 1),
        (settings(nodes=1875, reservation="cr-1"), 6, (), 0, 1),
        (settings(nodes=1875, group="arn"), 2, ("reservations", "usage", "alarms"), 1, 1),
        (settings(group="arn"), 5, ("reservations", "usage"), 0, 1),
    ],
)
def test_what_is_worth_least_is_left_out(
    given: Settings, stacks: int, asked: tuple[str, ...], groups: int, looks: int
) -> None:
    assert budget(given, stacks) == Budget(
        reservations="reservations" in asked,
        usage="usage" in asked,
        groups=groups,
        alarms="alarms" in asked,
        looks=looks,
    )


def test_a_healthy_deployment_has_no_fault() -> None:
    assert faults(HEALTHY) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            {"stacks": (replace(STACKS[0], status="UPDATE_ROLLBACK_COMPLETE"),)},
            "network is UPDATE_ROLL",
        ),
        ({"stacks": (STACKS[0], Stack("trn1-16-storage"))}, "there is no stack trn1-16-storage"),
        ({"stacks": (STACKS[0], Unseen("these credentials lack x"))}, "stacks: these credentials lack x"),
        (
            {"stacks": (*STACKS, Stack("trn1-16", "DELETE_FAILED", AGO))},
            "stack trn1-16 is DELETE_FAILED",
        ),
        ({"instances": Instances(None, {}, {})}, "has no head node"),
        ({"fleet": "PROTECTED"}, "PROTECTED"),
        (
            {"fleet": Unseen("these credentials lack dynamodb:GetItem")},
            "fleet: these credentials lack dynamodb:GetItem",
        ),
        ({"file_system": FileSystem("fs-1", "FAILED", 1200, 1)}, "fs-1 is FAILED"),
        ({"reservations": (Reservation("cr-1", "missing"),)}, "the reservation cr-1 is missing"),
        (
            {"reservations": (Reservation("cr-1", "expired", is_block=True, total=2),)},
            "the reservation cr-1 is expired",
        ),
        ({"alarms": ("trn1-16-monitoring-x",)}, "alarm trn1-16-monitoring-x is raised"),
        ({"software": FAILED}, "no network. Again: make run ENV=trn1-16 ARGS='sudo systemctl restart ultracluster-"),
        ({"software": replace(BUILDING, unit="inactive")}, "not ready: nothing builds it now."),
        ({"software": Software("", "failed", "", "", "", (), ())}, "not ready: nothing builds it now."),
        ({"software": replace(BUILDING, state="ready", unit="failed")}, "not ready: nothing builds it now."),
    ],
)
def test_faults(change: dict[str, Any], fault: str) -> None:
    [found] = faults(replace(HEALTHY, **change))
    assert fault in found


def test_several_faults_are_told_together() -> None:
    stopped = Instances(HeadNode("i-1", "stopped", "c6i.4xlarge", "10.0.0.5", "", AGO), {}, {})
    status = replace(HEALTHY, instances=stopped, slurm=Unseen("no head node runs"), fleet="PROTECTED", alarms=("a",))
    assert faults(status) == [
        "the head node i-1 is stopped",
        "the fleet is PROTECTED: queues are closed whose nodes kept failing",
        "alarm a is raised",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"fleet": "STOPPED"},
        {"usage": Unseen("left out", is_fault=False)},
        {"reservations": (Reservation("cr-1", "scheduled", is_block=True, total=2, begins=NOW + timedelta(days=1)),)},
        {"stacks": (*STACKS, Stack("trn1-16"))},
        {"software": None},
        {"software": BUILDING},
        {"software": Software("", "activating", "", "", "", (), ())},
    ],
)
def test_what_is_no_fault(change: dict[str, Any]) -> None:
    assert faults(replace(HEALTHY, **change)) == []


def test_the_software_of_jobs_is_told_with_the_end_of_its_log_until_it_is_ready() -> None:
    ready, building, failed = (
        " ".join(shown(replace(HEALTHY, software=each)).split()) for each in (HEALTHY.software, BUILDING, FAILED)
    )
    assert "Software ready since 2 min: 2.28.1-pytorch2.9.0-ubuntu24.04" in ready
    assert "Software building since 2 min: 2.28.1-pytorch2.9.0-ubuntu24.04 first second" in building
    assert "Software failed since 2 min: 2.28.1-pytorch2.9.0-ubuntu24.04 first second" in failed


def test_nodes_that_could_not_start_are_told_with_the_reason() -> None:
    node = FailedNode("trn1-dy-trn1-32xl-3", "2026-11-21T12:50", "failed (12): no repository has aws-neuronx-dkms.")
    text = " ".join(shown(replace(HEALTHY, software=replace(BUILDING, failed_nodes=(node,)))).split())
    assert "trn1-dy-trn1-32xl-3 10 min failed (12): no repository has aws-neuronx-dkms." in text


def test_another_cluster_is_told_with_what_the_cost_leaves_out() -> None:
    text = " ".join(shown(replace(HEALTHY, others=(Stack("trn1-16-cluster-2", "CREATE_IN_PROGRESS"),))).split())
    assert "Beside trn1-16-cluster-2 is CREATE_IN_PROGRESS: another cluster of this deployment" in text
    assert "not in it: trn1-16-cluster-2 (make inventory)" in text


def test_a_block_says_when_it_begins_and_ends() -> None:
    begins, ends = NOW + timedelta(hours=3), NOW + timedelta(days=2, hours=4)
    running = Reservation("cr-1", "active", True, "trn1.32xlarge", 16, 4, AGO, ends)
    coming = Reservation("cr-2", "scheduled", True, "trn1.32xlarge", 16, 0, begins, ends)
    over = Reservation("cr-3", "expired", True, "trn1.32xlarge", 16, 0, AGO, NOW - timedelta(minutes=5))
    text = " ".join(shown(replace(HEALTHY, reservations=(running, coming, over))).split())
    assert "cr-1, active, 16 trn1.32xlarge, 12 used, 4 left, ends in 2 d 4 h" in text
    assert "cr-2, scheduled, 16 trn1.32xlarge, begins in 3 h, ends in 2 d 4 h" in text
    assert "cr-3, expired, 16 trn1.32xlarge, ended 5 min ago" in text


def test_long_names_and_numbers_fit_into_80_columns() -> None:
    name = "a-name-of-forty-characters-and-not-fewer"
    wide = replace(
        HEALTHY,
        stacks=tuple(replace(each, name=f"{name}-monitoring", status="UPDATE_ROLLBACK_FAILED") for each in STACKS),
        slurm=parse(RECORDED.replace("cpu|", "a-queue-of-25-characters-x|").replace("idle~|5", "idle~|1875")),
        file_system=Unseen("w" * 200),
        reservations=(Reservation("cr-0123456789abcdef0", "active", True, "trn1.32xlarge", 1875, 4, AGO, NOW),),
        alarms=("x" * 100,),
    )
    assert max(len(line) for line in shown(wide).splitlines()) <= 80


def test_the_cost_is_that_of_the_nodes_that_run() -> None:
    none = cost_now(settings(), {}, NOW.date())
    two = cost_now(settings(), {("trn1", "trn1-32xl"): 2}, NOW.date())
    assert none.nodes == 0
    assert two.standing == none.standing
    assert Decimal(43) < two.nodes < Decimal("43.2")  # 21.50 for a node, then its volume and metrics
    assert "table of" in two.source


def test_nodes_that_the_settings_do_not_have_are_told() -> None:
    cost = cost_now(settings(), {("old", "trn1-32xl"): 3}, NOW.date())
    assert cost.nodes == 0
    assert cost.unpriced == ("3 nodes of old/trn1-32xl",)


def test_a_block_is_not_in_the_cost() -> None:
    found = load(CONFIG / "reserved.yaml")
    [block] = [queue for queue in found.cluster.queues if queue.capacity_type == "CAPACITY_BLOCK"]
    [resource] = block.compute_resources
    cost = cost_now(found, {(block.name, resource.name): 4}, NOW.date())
    assert cost.nodes < 1
    assert any(block.name in each for each in cost.unpriced)
