"""The newest events of log streams are read in few calls, however old they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scripts.account import log_streams
from scripts.account.deployment import Deployment
from scripts.account.log_streams import Source, Stream

NOW = datetime(2026, 11, 21, 13, tzinfo=UTC)


class Logs:
    """A client of CloudWatch Logs that has events by their age in minutes, and counts calls."""

    def __init__(self, *ages: float) -> None:
        self.ages = list(ages)
        self.calls = 0

    def get_paginator(self, name: str) -> Logs:
        assert name == "filter_log_events"
        return self

    def paginate(self, **options: Any) -> Iterator[dict[str, Any]]:
        times = {round((NOW - timedelta(minutes=age)).timestamp() * 1000): age for age in self.ages}
        wanted = sorted(time for time in times if options["startTime"] <= time <= options["endTime"])
        size = options["PaginationConfig"]["PageSize"]
        for first in range(0, max(len(wanted), 1), size):
            self.calls += 1
            page = [
                {"eventId": str(time), "timestamp": time, "logStreamName": "a.b.c", "message": f"{times[time]:g}\n"}
                for time in wanted[first : first + size]
            ]
            yield {"events": page, **({"nextToken": "more"} if first + size < len(wanted) else {})}


def source(logs: Logs) -> Source:
    account = SimpleNamespace(client=lambda _: logs)
    stream = Stream("a.b.c", "a", "b", "c", None)
    return Source(cast("Deployment", SimpleNamespace(account=account)), "group", [stream])


@pytest.mark.parametrize("count", [1, 5, 7, 11])
def test_the_last_events_are_searched_in_longer_and_longer_periods(count: int) -> None:
    logs = Logs(6000, 3000, 1000, 300, 90, 30, 26, 24, 6, 4, 1)
    events, is_whole = source(logs).last(count, NOW - timedelta(days=7), NOW)
    assert [each.message for each in events][-count:] == [f"{age:g}" for age in logs.ages[-count:]]
    assert is_whole
    assert logs.calls <= 7


def test_of_too_many_events_the_newest_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_streams, "EVENTS_PER_CALL", 10)
    monkeypatch.setattr(log_streams, "MOST_CALLS", 4)
    logs = Logs(3, *(15 - number / 100 for number in range(100)))
    events, is_whole = source(logs).last(100, NOW - timedelta(hours=1), NOW)
    assert ([each.message for each in events], is_whole) == (["3"], False)
