"""What CloudFormation's events show of the last operation on a deployment."""

from __future__ import annotations

import pytest

from scripts.account.stacks import CLUSTER, NESTED
from scripts.watch.progress.model import Progress
from scripts.watch.progress.tracker import Tracker
from tests.scripts.refusals import refusal
from tests.scripts.watch.progress import fake_cloudformation as fake
from tests.scripts.watch.progress.fake_cloudformation import (
    MONITORING,
    NETWORK,
    OWN,
    PART,
    STORAGE,
    FakeClock,
    FakeCloudFormation,
    aged,
    arn,
)

TOPIC = "Topic=AWS::SNS::Topic"


def seen(api: FakeCloudFormation, clock: FakeClock) -> Progress:
    """Return the progress that the first call shows."""
    return Tracker(fake.deployment(api)).read(clock.now())


def test_events_of_earlier_operations_are_not_read(api: FakeCloudFormation, clock: FakeClock) -> None:
    api.add_events(NETWORK, (-900, "", "CREATE_IN_PROGRESS"))
    api.add_events(NETWORK, *((-800, f"R{number}=AWS::SNS::Topic", "CREATE_COMPLETE") for number in range(2_000)))
    api.add_events(NETWORK, (-700, "", "CREATE_COMPLETE"), (0, "", "UPDATE_IN_PROGRESS"))
    [network] = seen(api, clock).stacks
    assert (network.action, network.resources) == ("UPDATE", 0)
    assert api.counted().count("DescribeStackEvents") == 4


def test_what_was_cancelled_because_of_another_is_no_failure(api: FakeCloudFormation, clock: FakeClock) -> None:
    api.add_events(NETWORK, (-9, "", "CREATE_IN_PROGRESS"))
    api.add_events(NETWORK, (-8, "Bad=AWS::SNS::Topic", "CREATE_FAILED"), reason="Topic name is taken")
    api.add_events(NETWORK, (-7, TOPIC, "CREATE_FAILED"), reason="Resource creation cancelled")
    failure = seen(api, clock).failure
    assert failure is not None
    assert failure.logical_id == "Bad"


def test_without_the_permission_to_read_templates_what_is_in_events_counts(
    api: FakeCloudFormation, clock: FakeClock
) -> None:
    fake.creation(api)
    api.failing["GetTemplate"] = refusal("AccessDenied", "GetTemplate")
    clock.sleep(300)
    current = seen(api, clock)
    assert current.denied == ("cloudformation:GetTemplate",)
    assert [(each.resources_done, each.resources) for each in current.stacks] == [(1, 1), (0, 1)]


def test_each_template_is_read_once(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.creation(api)
    tracker = Tracker(fake.deployment(api))
    for _ in range(5):
        clock.sleep(10)
        tracker.read(clock.now())
    assert api.counted().count("GetTemplate") == 1


def test_a_change_set_that_is_not_being_executed_is_that_of_an_earlier_update(
    api: FakeCloudFormation, clock: FakeClock
) -> None:
    aged(api, NETWORK)
    api.add_events(NETWORK, (0, "", "UPDATE_IN_PROGRESS"))
    api.change_sets[arn(NETWORK)] = [{"ResourceChange": {"LogicalResourceId": "A", "ResourceType": "B"}}]
    api.execution_status = "EXECUTE_COMPLETE"
    [network] = seen(api, clock).stacks
    assert network.resources == 0


def test_stacks_of_an_earlier_operation_are_no_part_of_the_next(api: FakeCloudFormation, clock: FakeClock) -> None:
    nested = f"Provider={NESTED}={arn('provider')}"
    api.add_events(PART, (0, "", "UPDATE_IN_PROGRESS"), (1, nested, "UPDATE_IN_PROGRESS"))
    api.add_events("provider", (2, "", "UPDATE_IN_PROGRESS"), (8, "", "UPDATE_COMPLETE"))
    api.add_events(PART, (9, nested, "UPDATE_COMPLETE"), (10, "", "UPDATE_COMPLETE"), (20, "", "UPDATE_IN_PROGRESS"))
    nested_stacks = []
    for _ in range(3):
        clock.sleep(8)
        [part] = seen(api, clock).stacks
        nested_stacks.append([each.name for each in part.stacks])
    assert nested_stacks == [["Provider"], ["Provider"], []]


def test_an_update_of_a_nested_stack_and_its_roll_back_are_one_operation(
    api: FakeCloudFormation, clock: FakeClock
) -> None:
    aged(api, PART)
    api.add_events(PART, (0, "", "UPDATE_IN_PROGRESS"), (1, f"Cluster={CLUSTER}", "UPDATE_IN_PROGRESS"))
    aged(api, OWN)
    api.add_events(OWN, (2, "", "UPDATE_IN_PROGRESS"), (9, "", "UPDATE_COMPLETE"), (12, "", "UPDATE_IN_PROGRESS"))
    clock.sleep(20)
    [part] = seen(api, clock).stacks
    assert [(each.title, each.started) for each in part.stacks] == [(OWN, fake.START.replace(second=2))]


def test_another_stack_of_the_name_of_a_deleted_one_is_followed(api: FakeCloudFormation, clock: FakeClock) -> None:
    fake.created(api, NETWORK, 0, 9)
    api.add_events(NETWORK, (11, "", "DELETE_IN_PROGRESS"), (12, "", "DELETE_COMPLETE"))
    fake.created(api, NETWORK, 21, 40, number=1)
    tracker = Tracker(fake.deployment(api))
    actions = []
    for _ in range(4):
        clock.sleep(10)
        current = tracker.read(clock.now())
        [network] = current.stacks
        actions.append((network.action, network.stack_id == arn(NETWORK, 1), current.existing))
    assert actions == [("CREATE", False, 1), ("DELETE", False, 0), *[("CREATE", True, 1)] * 2]


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
