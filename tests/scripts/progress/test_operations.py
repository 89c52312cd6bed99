"""The events of a stack since the start of its last operation, and what they show."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from scripts.progress.operations import StackOperation, operation
from scripts.stacks import StackEvent, events
from tests.scripts.progress.fake_cloudformation import NETWORK, START, FakeClock, FakeCloudFormation

TOPIC = "Topic=AWS::SNS::Topic"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(10_000_000)


def read(api: FakeCloudFormation, since: datetime | None = None) -> list[StackEvent]:
    return list(events(api, NETWORK, since))


def shown(api: FakeCloudFormation, since: datetime | None = None) -> StackOperation:
    shown_operation = operation(read(api, since))
    assert shown_operation
    return shown_operation


def test_events_of_earlier_operations_are_not_read(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    api.add_events(NETWORK, *((1, f"R{number}=AWS::SNS::Topic", "CREATE_COMPLETE") for number in range(2_000)))
    api.add_events(
        NETWORK, (100, "", "CREATE_COMPLETE"), (200, "", "UPDATE_IN_PROGRESS"), (201, TOPIC, "UPDATE_IN_PROGRESS")
    )
    assert [each.status for each in read(api)] == ["UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"]
    assert len(api.counted()) == 1


def test_a_nested_stack_is_read_since_its_parent_started(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"), (9, "", "CREATE_COMPLETE"), (20, "", "UPDATE_IN_PROGRESS"))
    api.add_events(NETWORK, (21, TOPIC, "UPDATE_FAILED"), (30, "", "UPDATE_ROLLBACK_IN_PROGRESS"), reason="no")
    api.add_events(NETWORK, (40, "", "UPDATE_ROLLBACK_COMPLETE"))
    last = shown(api, START + timedelta(seconds=15))
    assert (last.action, last.status) == ("UPDATE", "UPDATE_ROLLBACK_COMPLETE")
    assert (last.started, last.ended) == (START + timedelta(seconds=20), START + timedelta(seconds=40))
    assert [each.reason for each in last.failures] == ["no"]


def test_a_creation_that_is_rolled_back_is_one_operation(api: FakeCloudFormation) -> None:
    api.add_events(
        NETWORK, (0, "", "CREATE_IN_PROGRESS"), (1, TOPIC, "CREATE_IN_PROGRESS"), (5, TOPIC, "CREATE_COMPLETE")
    )
    api.add_events(
        NETWORK, (2, "Bad=AWS::SNS::Topic", "CREATE_IN_PROGRESS"), (6, "Bad=AWS::SNS::Topic", "CREATE_FAILED")
    )
    api.add_events(NETWORK, (7, "", "ROLLBACK_IN_PROGRESS"), (8, TOPIC, "DELETE_IN_PROGRESS"))
    last = shown(api)
    assert (last.action, last.ended, last.rolls_back, last.deletes) == ("CREATE", None, True, True)
    topic, bad = last.by_id["Topic"], last.by_id["Bad"]
    assert (topic.is_in_progress, topic.seconds_at(START + timedelta(seconds=30))) == (True, 22)
    assert (bad.is_in_progress, bad.seconds_at(START)) == (False, 4)


def test_the_time_of_a_resource_starts_again_with_each_piece_of_work(api: FakeCloudFormation) -> None:
    kept = "Kept=AWS::SNS::Topic"
    api.add_events(
        NETWORK, (0, "", "UPDATE_IN_PROGRESS"), (1, TOPIC, "UPDATE_IN_PROGRESS"), (5, TOPIC, "UPDATE_COMPLETE")
    )
    api.add_events(NETWORK, (2, kept, "CREATE_IN_PROGRESS"), (4, kept, "CREATE_COMPLETE"))
    api.add_events(NETWORK, (10, "", "UPDATE_ROLLBACK_IN_PROGRESS"), (20, TOPIC, "UPDATE_IN_PROGRESS"))
    api.add_events(NETWORK, (27, TOPIC, "UPDATE_COMPLETE"), (30, kept, "DELETE_SKIPPED"))
    last = shown(api)
    assert {name: each.seconds_at(START) for name, each in last.by_id.items()} == {"Topic": 7, "Kept": 0}


def test_what_was_cancelled_because_of_another_is_no_failure(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    api.add_events(NETWORK, (1, TOPIC, "CREATE_FAILED"), reason="Resource creation cancelled")
    api.add_events(NETWORK, (1, "Bad=AWS::SNS::Topic", "CREATE_FAILED"), reason="Topic name is taken")
    last = shown(api)
    assert [each.logical_id for each in last.failures] == ["Bad"]


def test_no_operation_without_its_start(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "REVIEW_IN_PROGRESS"))
    assert operation(read(api)) is None
