"""What is wrong with a deployment, what it costs, and what is shown, by given states."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from config.settings import PARTS, Settings, load
from scripts.account.causes import Evidence, find
from scripts.account.compute_fleet import PROTECTED, START_STATUSES, STOP_STATUSES
from scripts.account.remote.head_node import Answer
from scripts.account.remote.programs.node_states import condition, takes_jobs
from scripts.account.reservations import Reservation
from scripts.account.slurm import SlurmState, parse
from scripts.account.troubles import TRANSIENT, read
from scripts.account.way_out import WayOut
from scripts.core.clock import Clock
from scripts.core.errors import ExitCode, OperationError
from scripts.core.options import CONFIG
from scripts.watch.diagnose.present import evident
from scripts.watch.status.cost import cost_now
from scripts.watch.status.model import (
    Cost,
    FileSystem,
    HeadNodeStatus,
    LoginNodes,
    SlurmStatus,
    Spending,
    StackStatus,
    Unavailable,
    Usage,
)
from scripts.watch.status.report import Status
from scripts.watch.status.software import FailedNode, Software
from scripts.watch.status.watch import refresh
from tests.command_line import ultracluster
from tests.properties import QUICK
from tests.scripts.reports import shown
from tests.scripts.slurm_samples import IDLE, RECORDED, answer

NOW = datetime(2026, 11, 21, 13, tzinfo=UTC)
AGO = NOW - timedelta(hours=5)
STACKS = tuple(StackStatus(f"trn1-16-{part}", "CREATE_COMPLETE", AGO) for part in PARTS)
HEAD_NODE = HeadNodeStatus("i-1", "running", "c6i.4xlarge", "10.0.0.5", "", AGO, session_manager=True)
READY = Software("ready", "inactive", "2.28.1-pytorch2.9.0-ubuntu24.04", "2026-11-21T12:58:00Z", "", (), ())
BUILDING = replace(READY, state="building", unit="active", log=("first", "second"))
BUILD_FAILED = replace(BUILDING, state="failed", unit="failed", reason="failed (10): no network.")


def status(**changes: Any) -> Status:
    """Return the state of a healthy deployment, with changes."""
    healthy = {
        "deployment": "trn1-16",
        "name": "trn1-16",
        "region": "us-west-2",
        "cluster": "trn1-16",
        "time": NOW,
        "stacks": STACKS,
        "other_clusters": (),
        "head_node": HEAD_NODE,
        "compute_nodes": {"running": 2},
        "fleet": "RUNNING",
        "slurm": SlurmStatus.of(parse(IDLE), NOW),
        "software": READY,
        "file_system": FileSystem("fs-1", "AVAILABLE", 4800, 1200),
        "usage": Usage(2400 * 1024**3, 300),
        "reservations": (),
        "alarms": (),
        "cost": Cost(45.16, 43, 2.16, (), "table of 2026-01-19"),
    }
    return Status(**{**healthy, **changes})


def with_cluster(status: str) -> tuple[StackStatus, ...]:
    """Return the stacks where the cluster's has a status."""
    return tuple(replace(each, status=status) if each.name == "trn1-16-cluster" else each for each in STACKS)


def missing(reason: str, *, is_problem: bool = True) -> Unavailable:
    return Unavailable(reason=reason, is_problem=is_problem)


def settings_with(reservation: str = "") -> Settings:
    """Return settings whose nodes are launched into a reservation."""
    settings = load(CONFIG / "trn1-16.yaml")
    [queue] = settings.cluster.queues
    [resource] = queue.compute_resources
    changed = resource.model_copy(update={"capacity_reservation_id": reservation or None})
    queues = [queue.model_copy(update={"compute_resources": [changed]})]
    return settings.model_copy(update={"cluster": settings.cluster.model_copy(update={"queues": queues})})


def screen(state: Status) -> str:
    return shown(state.blocks())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"stacks": (replace(STACKS[0], status="UPDATE_ROLLBACK_FAILED"),)}, "network is UPDATE_ROLLBACK_FAILED"),
        ({"stacks": (replace(STACKS[0], status="UPDATE_ROLLBACK_IN_PROGRESS"),)}, "network is UPDATE_ROLLBACK_IN_PR"),
        ({"stacks": (STACKS[0], StackStatus("trn1-16-storage"))}, "there is no stack trn1-16-storage"),
        ({"unavailable_stacks": missing("these credentials lack x")}, "stacks: these credentials lack x"),
        ({"stacks": (*STACKS, StackStatus("trn1-16", "DELETE_FAILED", AGO))}, "stack trn1-16 is DELETE_FAILED"),
        ({"head_node": None}, "has no head node"),
        ({"head_node": replace(HEAD_NODE, state="stopped"), "slurm": missing("none runs")}, "node i-1 is stopped"),
        ({"fleet": "PROTECTED"}, "PROTECTED"),
        ({"fleet": missing("these credentials lack dynamodb:GetItem")}, "fleet: these credentials lack dynamodb"),
        ({"file_system": FileSystem("fs-1", "FAILED", 1200, 1)}, "fs-1 is FAILED"),
        ({"reservations": (Reservation("cr-1", "expired", is_block=True, total=2),)}, "reservation cr-1 is expired"),
        ({"alarms": ("trn1-16-monitoring-x",)}, "alarm trn1-16-monitoring-x is raised"),
        (
            {"software": BUILD_FAILED},
            "no network. To retry: ./ultracluster exec trn1-16 -- sudo systemctl restart ultra",
        ),
        ({"software": replace(BUILDING, unit="inactive")}, "not ready: nothing builds it now."),
        ({"software": Software("", "failed", "", "", "", (), ())}, "not ready: nothing builds it now."),
    ],
)
def test_problems(change: dict[str, Any], problem: str) -> None:
    [fault] = status(**change).problems
    assert problem in fault


SIXTEEN = {"trn1": {"dy-trn1-32xl": {"idle+powered_down": 16}}}
HEALTHY = {"queues": {"trn1": "up"}, "nodes": SIXTEEN, "counts": [(1, "trn1", "PENDING")]}
"""An answer of Slurm: a queue of 16 nodes and a job that waits."""


def nodes(**states: int) -> dict[str, Any]:
    """Return 16 nodes of which so many are in other states: ``drain`` is idle+drain."""
    of_kind = {f"idle+{state}": count for state, count in states.items()}
    return {"nodes": {"trn1": {"dy-trn1-32xl": {**of_kind, "idle+powered_down": 16 - sum(states.values())}}}}


def row(count: int, state: str, reason: str) -> tuple[int | str, ...]:
    return count, state, "2026-11-21T12:00:00", f"trn1-dy-trn1-32xl-[1-{count}]", reason, "trn1"


KILLED = {"problems": [row(16, "drained", "Kill task failed")], **nodes(drain=16)}
RESERVED = {
    "nodes": {"trn1": {"dy-trn1-32xl": {"idle+powered_down+reserved": 13, "idle+reserved": 1, "idle": 2}}},
    "wanted": {"trn1": 3},
}
STUCK = {"nodes": {"trn1": {"dy-trn1-32xl": {"idle+powered_down+not_responding": 1, "idle+powered_down": 15}}}}
DIAGNOSE = "(./ultracluster diagnose trn1-16)"


@pytest.mark.parametrize(
    ("change", "said", "problem"),
    [
        ({}, KILLED, "no node of queue trn1 takes jobs, and 1 job waits: 16 drained (Kill task failed)"),
        (
            {},
            {"problems": [row(1, "drained", "odd")], **nodes(drain=1), "wanted": {"trn1": 16}},
            "1 of 16 nodes of queue trn1 takes no jobs (6%), and a job that wants 16 waits: 1 drained (odd)",
        ),
        (
            {},
            {"problems": [row(1, "drained", "odd"), row(2, "down*", "none")], **nodes(drain=3), "wanted": {"trn1": 13}},
            "3 of 16 nodes of queue trn1 take no jobs (19%): 1 drained (odd), 2 down (Slurm has no reason)",
        ),
        (
            {},
            {"problems": [row(1, "stuck off", "none")], **STUCK},
            "1 of 16 nodes of queue trn1 takes no jobs (6%): 1 stuck off (off and not responding, so Slurm",
        ),
        (
            {},
            {"queues": {"trn1": "inactive"}},
            "the queue trn1 takes no jobs: Slurm has it inactive, and 1 job waits",
        ),
        ({}, {"queues": {"trn1": "drain"}, "counts": ()}, "the queue trn1 takes no jobs: Slurm has it drain "),
        ({"fleet": "PROTECTED"}, {"queues": {"trn1": "inactive"}}, "kept failing (trn1)"),
        ({"fleet": missing("no")}, {"queues": {"trn1": "inactive"}}, "the queue trn1 takes no jobs"),
        (
            {"fleet": "STOPPED"},
            {},
            "the compute fleet is STOPPED, and 1 job waits (./ultracluster fleet start trn1-16)",
        ),
        ({"disks": {"/": 100, "/home": 98}}, {}, "the disk of / on the head node is 100 % full"),
        ({}, {"accounting": "sacctmgr: error: gone"}, "Slurm's accounting does not answer: sacctmgr: error: gone"),
        ({}, {"seconds": 6.2}, "Slurm on the head node took 6 s to answer"),
        ({"slurm": missing("Slurm on the head node does not answer: x")}, {}, f"does not answer: x {DIAGNOSE}"),
        ({}, RESERVED, "14 of 16 nodes of queue trn1 are reserved, and a job that wants 3 waits"),
    ],
)
def test_what_keeps_jobs_from_running_is_a_problem_with_its_share_and_its_reason(
    change: dict[str, Any], said: dict[str, Any], problem: str
) -> None:
    told = SlurmStatus.of(parse(answer(**{**HEALTHY, **said})), NOW)
    first = status(**{"slurm": told, **change}).problems[0]
    assert problem in first
    assert DIAGNOSE in first or "fleet start" in first


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, {}),
        (
            {},
            {
                "problems": [row(2, "down", "Static node maintenance: unhealthy node is being replaced")],
                **nodes(drain=2),
            },
        ),
        ({"fleet": "STARTING"}, {"queues": {"trn1": "inactive"}}),
        ({"fleet": "STOPPED"}, {"queues": {"trn1": "inactive"}, "counts": ()}),
        ({"disks": {"/": 98}}, {"accounting": "", "seconds": 4.9, "wanted": {"trn1": 17}}),
        ({"login_nodes": LoginNodes(2, 1, {})}, {}),
        ({}, {**RESERVED, "wanted": {"trn1": 2}}),
    ],
    ids=[
        "all is well",
        "replaced",
        "the fleet starts",
        "stopped, and nobody waits",
        "nearly",
        "a login node is replaced",
        "reserved, and enough are left",
    ],
)
def test_what_ends_by_itself_or_hurts_nobody_is_no_problem(change: dict[str, Any], said: dict[str, Any]) -> None:
    told = SlurmStatus.of(parse(answer(**{**HEALTHY, **said})), NOW)
    assert status(**{"slurm": told, **change}).problems == []


def test_what_concerns_most_of_the_cluster_comes_first() -> None:
    few = {"problems": [row(1, "drained", "odd")], **nodes(drain=1), "accounting": "gone"}
    told = SlurmStatus.of(parse(answer(**{**HEALTHY, **few})), NOW)
    found = status(slurm=told, disks={"/": 100}, alarms=("x",)).problems
    assert [each.split()[1] for each in found] == ["disk", "accounting", "of", "x"]


STATES = (
    "idle",
    "idle+powered_down",
    "idle+drain",
    "idle+powered_down+not_responding",
    "down",
    "allocated",
    "mixed+fail",
    "idle+reserved",
)
REASONS = (
    "none",
    "Kill task failed",
    "Static node maintenance: unhealthy node is being replaced",
    "down since Node start up",
)


@st.composite
def answers(draw: st.DrawFn) -> str:
    """Draw what Slurm says of two queues."""
    queues = {queue: draw(st.sampled_from(("up", "up", "inactive", "drain", "down"))) for queue in ("cpu", "trn1")}
    states = {q: draw(st.dictionaries(st.sampled_from(STATES), st.integers(1, 20), min_size=1)) for q in queues}
    problems = [
        (count, condition(state), "2026-11-21T12:00:00", f"{queue}-dy-a-1", draw(st.sampled_from(REASONS)), queue)
        for queue, listed in states.items()
        for state, count in listed.items()
        if not takes_jobs(condition(state))
    ]
    waiting = [(count, "trn1", "PENDING") for count in draw(st.sampled_from(((), (1,), (1200,))))]
    return answer(
        queues, {queue: {"dy-a": each} for queue, each in states.items()}, problems, waiting,
        wanted=draw(st.sampled_from(({}, {"trn1": 1}, {"trn1": 99}))), seconds=draw(st.sampled_from((0.1, 7))),
        accounting=draw(st.sampled_from((None, "", "gone"))),
    )  # fmt: skip


@QUICK
@given(
    answers(),
    st.sampled_from([*START_STATUSES, *STOP_STATUSES, PROTECTED, None]),
    st.sampled_from([" 98% /\n", "100% /\n", ""]),
)
def test_status_and_diagnose_agree(said: str, fleet: str | None, disks: str) -> None:
    """That something is wrong, and that a cause says what to do."""
    given = Answer(0, f"Use% Mounted on\n{disks}{said}", "")
    evidence = list(evident("trn1-16", fleet, given))
    told = read(given)
    assert isinstance(told.slurm, SlurmState)
    shown_fleet = fleet or missing("not allowed", is_problem=False)
    state = status(slurm=SlurmStatus.of(told.slurm, NOW), disks=told.disks or None, fleet=shown_fleet)
    assert state.healthy == (not evidence)
    for kind, text in evidence:
        assert find(Evidence(kind=kind, source="", time=NOW, text=text), {}), text


def test_every_problem_names_what_is_next() -> None:
    stacks = (replace(STACKS[0], status="ROLLBACK_COMPLETE"), StackStatus("trn1-16-storage"))
    worst = status(
        stacks=stacks, head_node=None, fleet="PROTECTED", slurm=SlurmStatus.of(parse(RECORDED), NOW),
        software=BUILD_FAILED, file_system=FileSystem("fs-1", "FAILED", 1200, 1), alarms=("x",), disks={"/": 100},
        reservations=(Reservation("cr-1", "expired", is_block=True, total=2),),
        usage=missing("these credentials lack x"), login_nodes=LoginNodes(1, 0, {}), ways_out=missing("odd"),
    )  # fmt: skip
    for problem in worst.problems:
        assert re.search(r"\./ultracluster \w|aws \w+ describe-|docs/reference/permissions.md", problem), problem


def test_without_a_cluster_the_fleet_has_no_status() -> None:
    assert "Fleet there is no cluster" in " ".join(screen(status(fleet="UNKNOWN")).split())


def test_login_nodes_are_on_the_screen() -> None:
    line = "Login 1 of 2 running, 1 shutting-down (EC2)"
    assert line in " ".join(screen(status(login_nodes=LoginNodes(2, 1, {"shutting-down": 1}))).split())
    assert "Login" not in screen(status())


def test_why_login_nodes_are_missing_is_what_auto_scaling_says() -> None:
    activities = "aws autoscaling describe-scaling-activities --region us-west-2 --query "
    [problem] = status(login_nodes=LoginNodes(2, 0, {"pending": 1})).problems
    assert problem.startswith(f"no login node runs of 2 ({activities}")
    one = status(login_nodes=LoginNodes(2, 1, {}))
    [note] = one.notes
    assert one.healthy
    assert note.startswith(f"1 of 2 login nodes runs ({activities}")
    assert status(login_nodes=LoginNodes(2, 2, {})).notes == []


JOBS = [
    (number, "ann", "trn1", "PENDING", 1, "0:00", reason, "train")
    for number, reason in ((7, "JobHeldUser"), (8, "Priority"), (9, "DependencyNeverSatisfied"), (10, "JobHeldUser"))
]


def test_jobs_that_no_free_node_lets_start_are_noted_with_their_reasons() -> None:
    def notes(*jobs: tuple[int | str, ...]) -> list[str]:
        told: dict[str, Any] = {**HEALTHY, "jobs": jobs}
        return status(slurm=SlurmStatus.of(parse(answer(**told)), NOW)).notes

    assert notes(*JOBS) == [
        "3 jobs wait for more than free nodes: JobHeldUser (7 and 1 more), DependencyNeverSatisfied (9) "
        "(./ultracluster jobs list trn1-16)"
    ]
    [note] = notes(JOBS[2])
    assert note.endswith("(./ultracluster jobs show trn1-16 9)")
    assert notes(JOBS[1]) == []
    assert "nobody has heard of" in notes((1, "ann", "trn1", "PENDING", 1, "0:00", "nobody has heard of", "train"))[0]


def test_a_reason_that_only_contains_words_of_parallelcluster_is_not_one_of_its_own() -> None:
    for reason in TRANSIENT:
        told: dict[str, Any] = {"problems": [row(1, "drained", f"see ticket: {reason}")], **nodes(drain=1)}
        assert status(slurm=SlurmStatus.of(parse(answer(**{**HEALTHY, **told})), NOW)).problems


def test_what_a_roll_back_restored_is_a_note_until_the_next_change() -> None:
    # a change that was taken back changes no stack: nothing else would ever make the deployment healthy again
    own = StackStatus("trn1-16", "UPDATE_ROLLBACK_COMPLETE", AGO)
    state = status(stacks=(*with_cluster("UPDATE_ROLLBACK_COMPLETE"), own))
    assert (state.healthy, state.failed) == (True, False)
    [note] = state.notes
    assert "trn1-16-cluster, trn1-16 failed and was rolled back: what was deployed before is in force" in note
    assert note in " ".join(screen(state).split())
    assert status().notes == []


def test_a_change_set_that_nobody_executed_is_said() -> None:
    state = status(stacks=(StackStatus("trn1-16-network", "REVIEW_IN_PROGRESS", AGO),))
    assert state.notes == [
        "of trn1-16-network there is only a change set that nobody has executed: a deployment was stopped, or waits "
        f"for an answer (./ultracluster deploy {state.deployment} continues)"
    ]


@pytest.mark.parametrize("fleet", ["STOPPED", "STOPPING", "STOP_REQUESTED"])
def test_a_fleet_that_is_stopped_is_healthy_and_said(fleet: str) -> None:
    state = status(fleet=fleet)
    assert state.healthy
    assert state.notes == [
        f"the fleet is {fleet}: no node starts, and jobs would wait (./ultracluster fleet start {state.deployment})"
    ]


def test_a_roll_back_that_failed_says_what_is_in_force_and_what_leads_out() -> None:
    way = WayOut(
        stack="trn1-16-cluster", in_force="the old one is in force", first="", continued="trn1-16-cluster",
        skipped=("Cluster",), is_safe=True, command="aws cloudformation", deployment="trn1-16",
    )  # fmt: skip
    stuck = with_cluster("UPDATE_ROLLBACK_FAILED")
    state = status(stacks=stuck, ways_out=(way,))
    [problem] = state.problems
    assert problem.startswith("stack trn1-16-cluster is UPDATE_ROLLBACK_FAILED: the old one is in force; ")
    assert "`./ultracluster deploy trn1-16`" in problem
    assert state.failed
    unknown = status(stacks=stuck, ways_out=missing("these credentials lack cloudformation:ListStackResources"))
    assert "ways out: these credentials lack cloudformation:ListStackResources" in unknown.problems[1]


def test_links_to_the_console_stand_in_one_piece_in_text_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    state = status(cluster="research")
    links = json.loads(state.to_json())["links"]
    assert list(links) == ["stacks", "cluster", "nodes", "storage", "dashboard", "logs"]
    assert links["logs"].endswith("#logsV2:log-groups$3FlogGroupNameFilter$3D$252Faws$252Fparallelcluster$252Fresearch")
    lines = screen(state).split()
    assert {address: lines.count(address) for address in links.values()} == dict.fromkeys(links.values(), 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert not state.links, "an emulated account has no console"


@pytest.mark.parametrize(
    ("spending", "line"),
    [
        (Spending(20_000, 1234.6), "Spending  $1,235 for nodes this month, 6% of the budget's $20,000"),
        (Spending(20_000, None), "Spending  not known, of the budget's $20,000: the head node has reported nothing"),
        (missing("these credentials lack x"), "Spending  not available: these credentials lack x"),
    ],
)
def test_spending(spending: Spending | Unavailable, line: str) -> None:
    assert " ".join(line.split()) in " ".join(screen(status(spending=spending)).split())
    assert "Spending" not in screen(status())


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"fleet": "STOPPED", "software": BUILDING},
        {"usage": missing("no storage stack", is_problem=False)},
        {"reservations": (Reservation("cr-1", "scheduled", is_block=True, total=2, begins=NOW + timedelta(days=1)),)},
    ],
)
def test_no_problem(change: dict[str, Any]) -> None:
    assert status(**change).healthy


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, False),
        ({"stacks": (replace(STACKS[0], status="ROLLBACK_COMPLETE"),)}, True),
        ({"fleet": "PROTECTED"}, True),
        ({"head_node": None}, True),
        ({"head_node": None, "fleet": "UNKNOWN"}, False),
        ({"head_node": None, "stacks": (replace(STACKS[2], status="CREATE_IN_PROGRESS"),)}, False),
    ],
)
def test_what_calls_for_a_diagnosis(change: dict[str, Any], failed: bool) -> None:
    assert status(**change).failed is failed


def test_the_software_of_jobs_is_shown_with_the_end_of_its_log_until_it_is_ready_and_what_was_made_by_hand() -> None:
    node = FailedNode("trn1-dy-trn1-32xl-3", "2026-11-21T12:50", "failed (12): no repository has aws-neuronx-dkms.")
    failed = replace(BUILD_FAILED, failed_nodes=(node,))
    with_own = replace(READY, by_hand=("account own", "user guest of account lab"))
    ready, not_ready = (" ".join(screen(status(software=each)).split()) for each in (with_own, failed))
    assert (
        "Software ready since 2 min: 2.28.1-pytorch2.9.0-ubuntu24.04 By hand made with sacctmgr, kept: account "
        in ready
    )
    assert "kept: account own; user guest of account lab Storage" in ready
    assert "Software failed since 2 min: 2.28.1-pytorch2.9.0-ubuntu24.04 first second" in not_ready
    assert "trn1-dy-trn1-32xl-3 10 min failed (12): no repository has aws-neuronx-dkms." in not_ready


@pytest.mark.parametrize("unit", ["inactive", "failed"])
def test_a_cluster_without_a_neuron_sdk_lacks_no_software(unit: str) -> None:
    state = status(software=Software("none", unit, "", "", "", (), ()))
    assert state.problems == []
    assert "Software none: the cluster has no Neuron SDK Storage" in " ".join(screen(state).split())


def test_another_cluster_is_shown_and_not_included_in_the_cost() -> None:
    other = StackStatus("trn1-16-cluster-2", "CREATE_IN_PROGRESS")
    text = " ".join(screen(status(other_clusters=(other,))).split())
    assert "trn1-16-cluster-2 is CREATE_IN_PROGRESS: another cluster of this deployment" in text
    assert "not included: trn1-16-cluster-2 (./ultracluster inventory)" in text


def test_without_a_cluster_nothing_leads_to_it() -> None:
    stacks = tuple(replace(each, status=None) if each.name == "trn1-16-cluster" else each for each in STACKS)
    state = status(stacks=stacks, head_node=None, compute_nodes={}, slurm=missing("no head node"), software=None)
    text = " ".join(screen(state).split())
    assert "Cost if trn1-16-cluster existed: $45.16 an hour" in text
    assert "Connect" not in text
    assert "Queues" not in text


def test_a_block_says_when_it_starts_and_ends() -> None:
    start, end = NOW + timedelta(hours=3), NOW + timedelta(days=2, hours=4)
    running = Reservation("cr-1", "active", True, "trn1.32xlarge", 16, 4, AGO, end)
    coming = Reservation("cr-2", "scheduled", True, "trn1.32xlarge", 16, 0, start, end)
    over = Reservation("cr-3", "expired", True, "trn1.32xlarge", 16, 0, AGO, NOW - timedelta(minutes=5))
    text = " ".join(screen(status(reservations=(running, coming, over))).split())
    assert "cr-1, active, 16 trn1.32xlarge, 12 used, 4 left, ends in 2 d 4 h" in text
    assert "cr-2, scheduled, 16 trn1.32xlarge, starts in 3 h, ends in 2 d 4 h" in text
    assert "cr-3, expired, 16 trn1.32xlarge, ended 5 min ago" in text


def test_long_names_and_numbers_fit_into_80_columns() -> None:
    name = "a-name-of-forty-characters-and-not-fewer"
    recorded = RECORDED.replace('"cpu"', '"a-queue-of-25-characters-x"').replace(
        'powered_down":4', 'powered_down":1875'
    )
    wide = status(
        stacks=tuple(replace(each, name=f"{name}-monitoring", status="UPDATE_ROLLBACK_FAILED") for each in STACKS),
        slurm=SlurmStatus.of(parse(recorded), NOW),
        file_system=missing("w" * 200),
        reservations=(Reservation("cr-0123456789abcdef0", "active", True, "trn1.32xlarge", 1875, 4, AGO, NOW),),
        alarms=("x" * 100,),
    )
    assert max(len(line) for line in screen(wide).splitlines() if "https://" not in line) <= 80


def test_the_cost_is_that_of_the_running_nodes() -> None:
    none = cost_now(settings_with(), {}, NOW.date())
    two = cost_now(settings_with(), {("trn1", "trn1-32xl"): 2}, NOW.date())
    assert none.nodes_usd == 0
    assert two.standing_usd == none.standing_usd
    assert 43 < two.nodes_usd < 43.2, "21.50 for a node, then its volume and metrics"
    assert two.hourly_usd == pytest.approx(two.nodes_usd + two.standing_usd)


def test_nodes_that_the_settings_do_not_have_and_blocks_are_not_included_in_the_cost() -> None:
    settings = load(CONFIG / "reserved.yaml")
    [block] = [queue for queue in settings.cluster.queues if queue.capacity_type == "CAPACITY_BLOCK"]
    [resource] = block.compute_resources
    cost = cost_now(settings, {(block.name, resource.name): 4, ("old", "trn1-32xl"): 3}, NOW.date())
    assert cost.nodes_usd < 1
    assert cost.unpriced[-1] == "3 nodes of old/trn1-32xl"
    assert any(block.name in each for each in cost.unpriced)


# --- --watch ---


class NoTime(Clock):
    def sleep(self, seconds: float) -> None:
        pass


def terminal() -> Console:
    return Console(markup=False, width=80, height=50, file=io.StringIO(), force_terminal=True, color_system=None)


def written(console: Console) -> str:
    return cast(io.StringIO, console.file).getvalue()


def test_a_terminal_shows_the_state_again_until_an_operation_starts() -> None:
    console = terminal()
    updating = status(stacks=(replace(STACKS[0], status="UPDATE_IN_PROGRESS"),))
    states = iter([status(), status(fleet="PROTECTED"), updating])
    refresh(lambda: next(states), console, clock=NoTime(), seconds=15)
    assert written(console).index("RUNNING") < written(console).index("PROTECTED")
    assert "Why: ./ultracluster diagnose trn1-16" in written(console)
    assert "UPDATE_IN_PROGRESS" not in written(console)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of what was called, where the progress fails and no diagnosis can be made."""
    called: list[str] = []

    def follow(*_: Any, timeout: float | None, **__: Any) -> int:
        called.append("progress")
        return 124 if timeout else ExitCode.FAILED

    def diagnose(*_: Any, **__: Any) -> None:
        called.append("diagnose")
        raise OperationError("there are no logs")

    monkeypatch.setattr("scripts.watch.status.watch.refresh", lambda *_, **__: called.append("state"))
    monkeypatch.setattr("scripts.watch.progress.watch.watch", follow)
    monkeypatch.setattr("scripts.watch.diagnose.diagnose.diagnose", diagnose)
    return called


@pytest.mark.parametrize(
    ("console", "arguments", "code", "expected"),
    [
        (terminal(), [], ExitCode.FAILED, ["state", "progress", "diagnose"]),
        (Console(markup=False, width=80, file=io.StringIO()), [], ExitCode.FAILED, ["progress", "diagnose"]),
        (terminal(), ["--timeout", "90"], 124, ["progress"]),
        (Console(markup=False, quiet=True, force_terminal=True), ["--output", "json"], ExitCode.FAILED, ["progress"]),
    ],
    ids=["terminal", "no terminal", "time limit", "program"],
)
def test_only_a_terminal_shows_the_state_and_only_people_get_a_diagnosis(
    console: Console, arguments: list[str], code: int, expected: list[str], watched: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scripts.core.terminal.console", lambda *_: console)
        assert ultracluster("status", "trn1-16", "--watch", *arguments) == code
    assert watched == expected


def test_the_exit_code_says_whether_it_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    for state, code in ((status(), ExitCode.DONE), (status(alarms=("x",)), ExitCode.FAILED)):
        monkeypatch.setattr("scripts.watch.status.collect.collect", lambda *_, state=state: state)
        assert ultracluster("status", "trn1-16") == code
