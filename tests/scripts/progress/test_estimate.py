"""What is left of an operation is the longest chain of what waits for one another, by typical durations."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from config.settings import load
from scripts.options import CONFIG
from scripts.progress.estimate import (
    PART_SECONDS,
    ResourceGraph,
    count_done,
    graph_of_changes,
    graph_of_template,
    remaining_seconds,
)
from scripts.progress.operations import StackOperation, operation
from scripts.stacks import CLUSTER, NESTED, events
from tests.scripts.progress.fake_cloudformation import NETWORK, START, FakeClock, FakeCloudFormation, template

NAT, FILES, TOPIC = "AWS::EC2::NatGateway", "AWS::FSx::FileSystem", "AWS::SNS::Topic"
GRAPH = graph_of_template({"Resources": template(Nat=NAT, After=f"{TOPIC} Nat", Files=FILES)})
"""A NAT gateway of 105 s with a topic of 2 s after it, beside a file system of 420 s."""


def after(*entries: tuple[float, str, str], action: str = "CREATE", own: str = "") -> StackOperation:
    """Return an operation with events: seconds, resource as ``Name=Type``, status; ``own``: the stack's last status."""
    api = FakeCloudFormation(FakeClock(10_000))
    api.add_events(NETWORK, (0, "", f"{action}_IN_PROGRESS"), *entries, *([(1000, "", own)] if own else []))
    shown = operation(list(events(api, NETWORK)))
    assert shown
    return shown


def when(seconds: float) -> Any:
    return START + timedelta(seconds=seconds)


def remaining(now: StackOperation, seconds: float, graph: ResourceGraph | None = GRAPH, **inner: float) -> float:
    return remaining_seconds(graph, now, when(seconds), inner)


def test_at_the_start_it_is_the_longest_chain() -> None:
    assert remaining(after(), 0) == 420


def test_what_is_done_takes_no_time_any_more() -> None:
    done = (10, f"Files={FILES}", "CREATE_COMPLETE")
    assert remaining(after(done), 10) == 105 + 2
    assert remaining(after(done, (11, f"Nat={NAT}", "CREATE_COMPLETE")), 11) == 2


def test_what_is_in_progress_takes_what_it_typically_takes_yet_and_never_less_than_nothing() -> None:
    now = after((0, f"Nat={NAT}", "CREATE_IN_PROGRESS"), (0, f"Files={FILES}", "CREATE_COMPLETE"))
    assert remaining(now, 100) == 5 + 2
    assert remaining(now, 1000) == 2


def test_a_stack_in_it_takes_what_that_takes() -> None:
    graph = graph_of_template({"Resources": template(Provider=NESTED, Cluster=f"{CLUSTER} Provider")})
    assert remaining(after(), 0, graph) == 90 + 600
    started = after((0, f"Provider={NESTED}", "CREATE_COMPLETE"), (0, f"Cluster={CLUSTER}", "CREATE_IN_PROGRESS"))
    assert remaining(started, 100, graph) == 500
    assert remaining(started, 100, graph, Cluster=33) == 33


def test_a_head_node_is_waited_for() -> None:
    graph = graph_of_template({"Resources": template(Wait="AWS::CloudFormation::WaitCondition")})
    assert remaining(after(), 0, graph) == 300
    assert remaining(after(action="UPDATE"), 0, graph) == 60
    assert remaining(after(action="DELETE"), 0, graph) == 0


def test_a_creation_that_is_rolled_back_takes_the_deletion_of_what_was_made() -> None:
    made = (9, f"Nat={NAT}", "CREATE_COMPLETE")
    assert remaining(after(made, own="ROLLBACK_IN_PROGRESS"), 1000) == 105
    deleted = (10, f"Nat={NAT}", "DELETE_COMPLETE")
    assert remaining(after(made, deleted, own="ROLLBACK_IN_PROGRESS"), 1000) == 0


def test_without_a_plan_what_is_seen_counts() -> None:
    assert graph_of_template("Resources: {}") is None
    assert remaining(after((0, f"Nat={NAT}", "CREATE_IN_PROGRESS")), 5, None) == 100


def test_an_update_is_what_its_changes_are() -> None:
    graph = graph_of_changes(
        [{"Type": "Resource", "ResourceChange": {"LogicalResourceId": "Nat", "ResourceType": NAT}}, {"Type": "Hook"}]
    )
    assert remaining(after(action="UPDATE"), 0, graph) == 105


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (after(), (0, 3)),
        (after((1, f"Nat={NAT}", "CREATE_COMPLETE"), (1, f"Files={FILES}", "CREATE_IN_PROGRESS")), (1, 3)),
        (after((1, f"Nat={NAT}", "CREATE_COMPLETE"), own="CREATE_COMPLETE"), (1, 1)),
        (after((1, f"Nat={NAT}", "DELETE_SKIPPED"), action="DELETE"), (1, 3)),
        (after((1, f"Nat={NAT}", "CREATE_COMPLETE"), own="ROLLBACK_IN_PROGRESS"), (0, 1)),
        (after((1, f"Nat={NAT}", "DELETE_COMPLETE"), own="ROLLBACK_IN_PROGRESS"), (1, 1)),
        (after((1, f"Nat={NAT}", "CREATE_FAILED"), own="ROLLBACK_COMPLETE"), (1, 1)),
    ],
)
def test_the_bar(now: StackOperation, expected: tuple[int, int]) -> None:
    assert count_done(GRAPH, now) == expected


def test_parts_that_have_not_begun_take_about_what_their_templates_say() -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    for part, seconds in PART_SECONDS.items():
        path = CONFIG.parent / f"tests/snapshots/trn1-16/{settings.stack_name(part)}.json"
        graph = graph_of_template(json.loads(path.read_text(encoding="utf-8")))
        assert remaining(after(), 0, graph) == pytest.approx(seconds, rel=0.05)
