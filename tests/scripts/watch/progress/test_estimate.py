"""What is left of an operation, by typical durations, and how much of it is done."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.account.stacks import CLUSTER, NESTED
from scripts.watch.progress.model import StackProgress
from scripts.watch.progress.tracker import Tracker
from tests.scripts.watch.progress import fake_cloudformation as fake
from tests.scripts.watch.progress.fake_cloudformation import NETWORK, START, FakeClock, FakeCloudFormation, arn

NAT, FILES, WAIT = "AWS::EC2::NatGateway", "AWS::FSx::FileSystem", "AWS::CloudFormation::WaitCondition"
"""A NAT gateway takes 105 s, a file system 420 s."""


def stack(*entries: tuple[float, str, str], at: float = 0, action: str = "CREATE", **types: str) -> StackProgress:
    """Return an operation with events (seconds, resource as ``Name=Type``, status) on a template of resources."""
    clock = FakeClock(at)
    api = FakeCloudFormation(clock)
    if action == "UPDATE":
        fake.created(api, NETWORK, -100, -50)
        changes = [{"LogicalResourceId": name, "ResourceType": kind} for name, kind in types.items()]
        api.change_sets[arn(NETWORK)] = [{"ResourceChange": each} for each in changes]
    api.add_events(NETWORK, (0, "", f"{action}_IN_PROGRESS"), *entries)
    api.templates[arn(NETWORK)] = {name: {"Type": kind} for name, kind in types.items()}
    [shown] = Tracker(fake.deployment(api)).read(clock.now()).stacks
    assert shown.started == START
    return shown


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        (stack(Nat=NAT, Files=FILES), 420),
        (stack((10, f"Files={FILES}", "CREATE_COMPLETE"), at=10, Nat=NAT, Files=FILES), 105),
        (stack((0, f"Nat={NAT}", "CREATE_IN_PROGRESS"), at=100, Nat=NAT), 5),
        (stack((0, f"Nat={NAT}", "CREATE_IN_PROGRESS"), at=1000, Nat=NAT), 0),
        (stack((0, f"Nat={NAT}", "CREATE_IN_PROGRESS"), at=5), 100),
        (stack(Nat=NAT, action="UPDATE"), 105),
        (stack(Provider=NESTED, Cluster=CLUSTER), 600),
        (stack(Wait=WAIT), 300),
        (stack(Wait=WAIT, action="UPDATE"), 60),
        (stack(Wait=WAIT, action="DELETE"), 0),
        (stack((9, "", "ROLLBACK_IN_PROGRESS"), (9, f"Nat={NAT}", "DELETE_IN_PROGRESS"), at=9, Files=FILES), 105),
    ],
)
def test_the_resource_that_takes_longest_counts(shown: StackProgress, left: int) -> None:
    assert shown.left_seconds == left


MADE: Any = (1, f"Nat={NAT}", "CREATE_COMPLETE")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (stack(at=9, Nat=NAT, Files=FILES), (0, 2)),
        (stack(MADE, (1, f"Files={FILES}", "CREATE_IN_PROGRESS"), at=9, Nat=NAT, Files=FILES), (1, 2)),
        (stack(MADE, (2, "", "CREATE_COMPLETE"), at=9), (1, 1)),
        (stack((1, f"Nat={NAT}", "DELETE_SKIPPED"), at=9, action="DELETE", Nat=NAT, Files=FILES), (1, 2)),
        (stack(MADE, (2, "", "ROLLBACK_IN_PROGRESS"), at=9), (0, 1)),
        (stack(MADE, (2, "", "ROLLBACK_IN_PROGRESS"), (3, f"Nat={NAT}", "DELETE_COMPLETE"), at=9), (1, 1)),
    ],
)
def test_how_many_resources_are_done(shown: StackProgress, expected: tuple[int, int]) -> None:
    assert (shown.resources_done, shown.resources) == expected


def test_the_time_of_a_resource_starts_again_with_each_piece_of_work() -> None:
    topic, kept = "Topic=AWS::SNS::Topic", "Kept=AWS::SNS::Topic"
    events = [
        (1, topic, "UPDATE_IN_PROGRESS"), (2, kept, "CREATE_IN_PROGRESS"), (3, topic, "UPDATE_IN_PROGRESS"),
        (4, kept, "CREATE_COMPLETE"), (5, topic, "UPDATE_COMPLETE"), (10, "", "UPDATE_ROLLBACK_IN_PROGRESS"),
        (20, topic, "UPDATE_IN_PROGRESS"), (27, topic, "UPDATE_COMPLETE"), (30, kept, "DELETE_SKIPPED"),
    ]  # fmt: skip
    shown = stack(*events, at=40, action="UPDATE")
    assert {each.logical_id: each.seconds for each in shown.slowest} == {"Topic": 7, "Kept": 0}
    [topic_now, _] = stack(*events[:3], at=40, action="UPDATE").in_progress
    assert (topic_now.logical_id, topic_now.seconds) == ("Topic", 39)
