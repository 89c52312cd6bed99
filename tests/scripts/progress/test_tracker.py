"""What is known of stacks is the same for a tracker that has run for long and for a new one."""

from __future__ import annotations

import io
from typing import cast

import pytest
from rich.console import Console

from scripts.progress.model import Progress, progress
from scripts.progress.tracker import Tracker
from scripts.progress.watch import watch
from scripts.stacks import CLUSTER, NESTED
from tests.scripts.progress import fake_cloudformation as fake
from tests.scripts.progress.fake_cloudformation import (
    MONITORING,
    NETWORK,
    PART,
    STORAGE,
    FakeClock,
    FakeCloudFormation,
    aged,
    arn,
)

TOPIC = "Topic=AWS::SNS::Topic"


def seen(api: FakeCloudFormation, clock: FakeClock) -> Progress:
    """Return the progress that the first refresh shows."""
    tracker = Tracker(fake.deployment(api))
    tracker.refresh()
    return progress(tracker, clock.now())


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_other_cluster_of_an_upgrade_is_shown(api: FakeCloudFormation, clock: FakeClock, is_terminal: bool) -> None:
    fake.creation(api)
    other = {"StackName": "trn1-16-cluster-2", "Description": "Trn1 UltraCluster trn1-16: cluster"}
    api.listed = [{**other, "StackStatus": "DELETE_IN_PROGRESS"}]
    console = Console(width=100, height=50, file=io.StringIO(), force_terminal=is_terminal, color_system=None)
    watch(fake.deployment(api), console, clock=clock, as_json=False)
    text = cast("io.StringIO", console.file).getvalue()
    sentence = "trn1-16-cluster-2 is DELETE_IN_PROGRESS: another cluster of this deployment, which costs, too"
    assert sentence in text.partition("slowest")[0], "while it is in progress"
    assert sentence in text.partition("slowest")[2], "in the summary"
    assert is_terminal or text.count(sentence) == 2


@pytest.mark.parametrize("missed", [True, False])
def test_started_again_it_shows_the_same(api: FakeCloudFormation, clock: FakeClock, *, missed: bool) -> None:
    """Whoever looks all the time and whoever looks for the first time know the same."""
    fake.creation(api)
    if missed:
        api.add_events(
            PART, (700, f"Cluster={CLUSTER}", "CREATE_FAILED"), (701, "", "ROLLBACK_IN_PROGRESS"), reason="no"
        )
        api.add_events(PART, (830, "", "ROLLBACK_COMPLETE"))
    always = Tracker(fake.deployment(api))
    for _ in range(60):
        clock.sleep(15)
        later = Tracker(fake.deployment(api))
        always.refresh()
        later.refresh()
        assert progress(always, clock.now()) == progress(later, clock.now())


def test_without_the_permission_to_read_templates_bars_show_what_is_in_events(
    api: FakeCloudFormation, clock: FakeClock
) -> None:
    fake.creation(api)
    api.failing["GetTemplate"] = fake.refusal("AccessDenied", "not authorized", "GetTemplate")
    clock.sleep(300)
    current = seen(api, clock)
    assert current.denied == ("cloudformation:GetTemplate",)
    assert [(each.resources_done, each.resources) for each in current.stacks] == [(1, 1), (0, 1)]


def test_each_template_is_read_once_and_gives_the_size_of_the_bar(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    api.templates[arn(NETWORK)] = fake.template(Only="AWS::SNS::Topic", More="AWS::EC2::NatGateway Only")
    tracker = Tracker(fake.deployment(api))
    for _ in range(5):
        clock.sleep(10)
        tracker.refresh()
    [network] = progress(tracker, clock.now()).stacks
    assert (network.resources_done, network.resources, network.left_seconds) == (0, 2, 105)
    assert api.counted().count("GetTemplate") == 1


@pytest.mark.parametrize(("status", "total"), [("EXECUTE_IN_PROGRESS", 2), ("EXECUTE_COMPLETE", 1)])
def test_an_update_is_as_large_as_its_change_set(
    api: FakeCloudFormation, clock: FakeClock, status: str, total: int
) -> None:
    """A change set that is not being executed is that of an earlier update."""
    aged(api, NETWORK)
    api.add_events(
        NETWORK, (0, "", "UPDATE_IN_PROGRESS"), (1, TOPIC, "UPDATE_IN_PROGRESS"), (9, TOPIC, "UPDATE_COMPLETE")
    )
    api.change_sets[arn(NETWORK)] = [
        {"ResourceChange": {"LogicalResourceId": name, "ResourceType": "AWS::EC2::NatGateway"}}
        for name in ("Topic", "Nat")
    ]
    api.execution_status = status
    clock.sleep(20)
    [network] = seen(api, clock).stacks
    assert (network.resources_done, network.resources) == (1, total)
    assert (network.left_seconds == 105) is (total == 2)


def test_stacks_of_an_earlier_operation_are_no_part_of_the_next(api: FakeCloudFormation, clock: FakeClock) -> None:
    nested = f"Provider={NESTED}={arn('provider')}"
    api.add_events(PART, (0, "", "UPDATE_IN_PROGRESS"), (1, nested, "UPDATE_IN_PROGRESS"))
    api.add_events("provider", (2, "", "UPDATE_IN_PROGRESS"), (8, "", "UPDATE_COMPLETE"))
    api.add_events(PART, (9, nested, "UPDATE_COMPLETE"), (10, "", "UPDATE_COMPLETE"), (20, "", "UPDATE_IN_PROGRESS"))
    tracker = Tracker(fake.deployment(api))
    nested_stacks = []
    for _ in range(3):
        clock.sleep(8)
        tracker.refresh()
        [part] = progress(tracker, clock.now()).stacks
        nested_stacks.append([each.name for each in part.stacks])
    assert nested_stacks == [["Provider"], ["Provider"], []]


def test_another_stack_of_the_name_of_a_deleted_one_is_followed(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.created(api, NETWORK, 0, 9)
    api.add_events(NETWORK, (11, "", "DELETE_IN_PROGRESS"), (12, "", "DELETE_COMPLETE"))
    fake.created(api, NETWORK, 21, 40, number=1)
    tracker = Tracker(fake.deployment(api))
    actions = []
    for _ in range(4):
        clock.sleep(10)
        tracker.refresh()
        [network] = progress(tracker, clock.now()).stacks
        actions.append((network.action, network.stack_id == arn(NETWORK, 1), tracker.roots["network"].exists))
    assert actions == [("CREATE", False, True), ("DELETE", False, False), *[("CREATE", True, True)] * 2]


def test_parts_that_are_yet_to_be_created_count(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    clock.sleep(170)
    current = seen(api, clock)
    assert current.not_started == (STORAGE, PART, MONITORING)
    assert current.left_seconds == 420 + 710 + 130
    assert (current.seconds, current.outcome) == (150, "complete")


@pytest.mark.parametrize(
    "statuses", [["UPDATE_IN_PROGRESS"], ["CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE"]], ids=["update", "failure"]
)
def test_no_more_parts_follow_an_update_or_a_failure(
    api: FakeCloudFormation, clock: FakeClock, statuses: list[str]
) -> None:
    api.add_events(NETWORK, *((number, "", status) for number, status in enumerate(statuses)))
    clock.sleep(10)
    assert seen(api, clock).not_started == ()
