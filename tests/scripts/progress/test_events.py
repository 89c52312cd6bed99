"""Events are read once each, a few pages at a time, and back to the beginning of the operation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scripts.progress.events import History, operation
from tests.scripts.progress.fake_cloudformation import NETWORK, START, FakeClock, FakeCloudFormation

TOPIC = "Topic=AWS::SNS::Topic"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(10_000_000)


def many(api: FakeCloudFormation, begin: float, count: int) -> None:
    api.add_events(
        NETWORK, *((begin + number / 1000, f"R{number}=AWS::SNS::Topic", "UPDATE_COMPLETE") for number in range(count))
    )


def test_20_000_events_of_the_past_are_not_read(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    many(api, 1, 20_000)
    api.add_events(
        NETWORK, (100, "", "CREATE_COMPLETE"), (200, "", "UPDATE_IN_PROGRESS"), (201, TOPIC, "UPDATE_IN_PROGRESS")
    )
    history = History(NETWORK)
    history.read_newest(api)
    assert history.is_complete
    assert [each.status for each in history.events.values()] == ["UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"]
    assert len(api.counted()) == 1


def test_a_burst_is_read_before_what_is_older(api: FakeCloudFormation, clock: FakeClock) -> None:
    clock.time = START + timedelta(seconds=50)
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    many(api, 1, 450)
    many(api, 60, 250)
    history = History(NETWORK)
    history.read_newest(api)
    clock.time = START + timedelta(seconds=100)
    history.read_newest(api)
    history.read_gap(api)
    assert sum(each.time > START + timedelta(seconds=50) for each in history.events.values()) == 200
    history.read_gap(api)
    assert sum(each.time > START + timedelta(seconds=50) for each in history.events.values()) == 250
    assert len(history.gaps) == 1
    while not history.is_complete:
        history.read_gap(api)
    assert len(history.events) == 701


def test_a_new_operation_takes_the_place_of_the_one_before(api: FakeCloudFormation, clock: FakeClock) -> None:
    clock.time = START + timedelta(seconds=50)
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    many(api, 1, 300)
    api.add_events(NETWORK, (60, "", "UPDATE_IN_PROGRESS"), (61, TOPIC, "UPDATE_IN_PROGRESS"))
    history = History(NETWORK)
    history.read_newest(api)
    clock.time = START + timedelta(seconds=100)
    history.read_newest(api)
    assert history.is_complete
    assert len(history.events) == 2


def test_a_nested_stack_is_read_since_its_parent_began(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"), (9, "", "CREATE_COMPLETE"), (20, "", "UPDATE_IN_PROGRESS"))
    api.add_events(NETWORK, (21, TOPIC, "UPDATE_FAILED"), (30, "", "UPDATE_ROLLBACK_IN_PROGRESS"), reason="no")
    api.add_events(NETWORK, (40, "", "UPDATE_ROLLBACK_COMPLETE"))
    history = History(NETWORK, START + timedelta(seconds=15))
    history.read_newest(api)
    found = operation(history.events.values())
    assert found
    assert (found.action, found.status, found.seconds(START)) == ("UPDATE", "UPDATE_ROLLBACK_COMPLETE", 20)
    assert [each.reason for each in found.failures] == ["no"]


def test_a_creation_that_is_rolled_back_is_one_operation(api: FakeCloudFormation) -> None:
    api.add_events(
        NETWORK, (0, "", "CREATE_IN_PROGRESS"), (1, TOPIC, "CREATE_IN_PROGRESS"), (5, TOPIC, "CREATE_COMPLETE")
    )
    api.add_events(
        NETWORK, (2, "Bad=AWS::SNS::Topic", "CREATE_IN_PROGRESS"), (6, "Bad=AWS::SNS::Topic", "CREATE_FAILED")
    )
    api.add_events(NETWORK, (7, "", "ROLLBACK_IN_PROGRESS"), (8, TOPIC, "DELETE_IN_PROGRESS"))
    history = History(NETWORK)
    history.read_newest(api)
    found = operation(history.events.values())
    assert found
    assert (found.action, found.in_progress, found.rolls_back, found.deletes) == ("CREATE", True, True, True)
    topic, bad = found.resources["Topic"], found.resources["Bad"]
    assert (topic.in_progress, topic.seconds(START + timedelta(seconds=30))) == (True, 22)
    assert (bad.in_progress, bad.seconds(START)) == (False, 4)


def test_the_time_of_a_resource_starts_again_with_each_piece_of_work(api: FakeCloudFormation) -> None:
    kept = "Kept=AWS::SNS::Topic"
    api.add_events(
        NETWORK, (0, "", "UPDATE_IN_PROGRESS"), (1, TOPIC, "UPDATE_IN_PROGRESS"), (5, TOPIC, "UPDATE_COMPLETE")
    )
    api.add_events(NETWORK, (2, kept, "CREATE_IN_PROGRESS"), (4, kept, "CREATE_COMPLETE"))
    api.add_events(NETWORK, (10, "", "UPDATE_ROLLBACK_IN_PROGRESS"), (20, TOPIC, "UPDATE_IN_PROGRESS"))
    api.add_events(NETWORK, (27, TOPIC, "UPDATE_COMPLETE"), (30, kept, "DELETE_SKIPPED"))
    history = History(NETWORK)
    history.read_newest(api)
    found = operation(history.events.values())
    assert found
    assert {name: each.seconds(START) for name, each in found.resources.items()} == {"Topic": 7, "Kept": 0}


def test_what_was_cancelled_because_of_another_is_no_failure(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "CREATE_IN_PROGRESS"))
    api.add_events(NETWORK, (1, TOPIC, "CREATE_FAILED"), reason="Resource creation cancelled")
    api.add_events(NETWORK, (1, "Bad=AWS::SNS::Topic", "CREATE_FAILED"), reason="Topic name is taken")
    history = History(NETWORK)
    history.read_newest(api)
    found = operation(history.events.values())
    assert found
    assert [each.logical_id for each in found.failures] == ["Bad"]


def test_no_operation_without_its_start(api: FakeCloudFormation) -> None:
    api.add_events(NETWORK, (0, "", "REVIEW_IN_PROGRESS"))
    history = History(NETWORK)
    history.read_newest(api)
    assert history.exists
    assert operation(history.events.values()) is None


def test_events_of_one_millisecond_are_in_the_order_of_the_answer(api: FakeCloudFormation) -> None:
    api.add_events(
        NETWORK, (0, "", "CREATE_IN_PROGRESS"), (1, TOPIC, "CREATE_IN_PROGRESS"), (1, TOPIC, "CREATE_COMPLETE")
    )
    history = History(NETWORK)
    history.read_newest(api)
    found = operation(history.events.values())
    assert found
    assert found.resources["Topic"].status == "CREATE_COMPLETE"
