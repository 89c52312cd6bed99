"""`costs`: sums of what sacct printed, hours that nodes ran by CloudWatch, prices, and all outputs of the command.

What sacct itself prints, and that node seconds are those of Slurm's log: tests/end_to_end/slurm/test_costs.py.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from config.settings import Settings, load
from scripts.account.deployment import Deployment
from scripts.core import options
from scripts.core.options import CONFIG
from scripts.use.costs import costs, summary
from scripts.use.costs.costs import Summary
from scripts.use.costs.report import CostReport
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from ultracluster.domain import metrics

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
KIND = "trn1-dy-trn1-32xl"
TWO = "trn1-dy-trn1-32xl-[1-2],trn1-st-trn1-32xl-4"


@pytest.mark.parametrize(
    ("nodes", "counts"),
    [
        ("a-dy-b-7", {"a-dy-b": 1}),
        ("a-dy-b-[1-3,7,9-10]", {"a-dy-b": 6}),
        ("a-dy-b-[1-3],a-st-b-2,c-2-dy-d-[8,10]", {"a-dy-b": 3, "a-st-b": 1, "c-2-dy-d": 2}),
        ("a-dy-b-[0998-1001]", {"a-dy-b": 4}),
    ],
)
def test_lists_of_nodes(nodes: str, counts: dict[str, int]) -> None:
    assert summary.kinds(nodes) == counts


def summarize(by: str, *lines: str, **more: Any) -> dict[str, Any]:
    return summary.summarize([line.split("|") for line in lines], by, **{"cpus": {}, "shared": set(), **more})


def test_jobs_that_had_no_node_or_no_time_are_left_out_and_names_that_do_not_fit_have_no_kind() -> None:
    lines = [
        f"1|ada|a|trn1|500|3|12|10|{TWO}|COMPLETED",
        "2|ada|a|trn1|400|2|8|10|other[1-2]|NODE_FAIL",
        "2|ada|a|trn1|600|4|8|1|None assigned|RUNNING",
        "3|bob|a|trn1|Unknown|0|0|0|None assigned|PENDING",
        f"4|bob|a|trn1|700|3|12|0|{TWO}|COMPLETED",
    ]
    ada = ("ada",)
    assert summarize("user", *lines) == {
        "sums": [[ada, KIND, 20], [ada, "trn1-st-trn1-32xl", 10], [ada, "other", 20], [ada, "", 4]],
        "counts": [[ada, 2, 3]],
        "first": 400,
        "queues": ["trn1"],
        "cut": 0,
        "unknown": 0,
        "unreadable": 0,
    }


@pytest.mark.parametrize(
    "line",
    [
        "1|ada|a|trn1|500|3|12|10|x-1",
        "1|ada|a|trn1|500|3|12|10|x-1|COMPLETED|",
        "x|ada|a|trn1|500|3|12|10|x-1|COMPLETED",
        "1|ada|a|trn1|500||12|10|x-1|COMPLETED",
        "1|ada|a|trn1|500|3|12|10|x-[y]|COMPLETED",
        "",
    ],
)
def test_a_record_that_cannot_be_read_is_counted_and_ends_nothing(line: str) -> None:
    good = f"7|bob|a|trn1|500|3|12|10|{TWO}|COMPLETED"
    assert summarize("user", good, line, good) == summarize("user", good, good) | {"unreadable": 1}
    [note] = report(settings(), [], {}, unreadable=2).notes
    assert note == "Not counted: 2 records of Slurm's accounting that cannot be read."


def test_a_job_has_the_share_of_its_cpus_of_nodes_that_jobs_share() -> None:
    line = f"1|ada|a|trn1|500|3|64|10|{TWO}|COMPLETED"
    cpus = {KIND: 128, "trn1-st-trn1-32xl": 64}  # of 320
    assert summarize("queue", line, cpus=cpus, shared={"trn1"})["sums"] == [
        [("trn1",), KIND, 4],
        [("trn1",), "trn1-st-trn1-32xl", 2],
    ]
    assert summarize("queue", line, cpus=cpus, shared={"other"})["sums"][0][2] == 20
    assert summarize("queue", line, shared={"trn1"})["sums"][0][2] == 20, "CPUs of nodes that are gone"


@pytest.mark.parametrize(
    ("job", "state", "end", "seconds", "told"),
    [
        (7, "RUNNING", 1600, 600, (1, 0)),  # lost with its head node, and still open
        (7, "CANCELLED", 1600, 600, (1, 0)),  # the next head node's controller ended it when it started
        (7, "SUSPENDED", 900, 0, (1, 0)),
        (7, "RUNNING", None, 0, (0, 1)),
        (7, "CANCELLED", None, 5000, (0, 0)),
        (7, "CANCELLED by 1000", 1600, 5000, (0, 0)),
        (7, "COMPLETED", 1600, 5000, (0, 0)),
        (7, "RUNNING", 9000, 5000, (0, 0)),  # its cluster runs beside this one, during an upgrade
        (1_000_001, "RUNNING", 1600, 5000, (0, 0)),  # of this cluster
    ],
)
def test_a_run_that_was_lost_with_its_head_node_ends_with_the_nodes_of_its_cluster(
    job: int, state: str, end: int | None, seconds: int, told: tuple[int, int]
) -> None:
    line = f"{job}|ada|a|trn1|1000|1|4|5000|other1|{state}"
    found = summarize("user", line, before=[(1, 1_000_000, end)])
    assert sum(row[2] for row in found["sums"]) == seconds
    assert (found["cut"], found["unknown"]) == told


def test_the_last_nodes_of_a_cluster_ended_with_the_last_hour_in_which_some_ran() -> None:
    ran = {MARCH: (2.0, 60.0), MARCH + HOUR: (0.5, 60.0), MARCH + 2 * HOUR: (0.0, 60.0)}
    later = MARCH + 3 * HOUR
    assert costs.last_end(ran, later) == (MARCH + 2 * HOUR).timestamp()
    assert costs.last_end({MARCH: (0.0, 60.0)}, later) == MARCH.timestamp()
    assert costs.last_end({}, later) is None
    just_after = MARCH + 2 * HOUR + timedelta(minutes=3)  # the newest hour has no value yet
    assert costs.last_end(ran, just_after) == just_after.timestamp()


def test_earlier_clusters_ended_before_the_window_too_and_half_known_hours_are_left_out() -> None:
    """Of the last hour CloudWatch has the mean and not yet the number of samples."""
    known = {"Average": [MARCH, MARCH + HOUR], "SampleCount": [MARCH]}

    def pages(*, MetricDataQueries: list[Any], StartTime: datetime, EndTime: datetime, **_: str) -> list[Any]:
        results = []
        for query in MetricDataQueries:
            hours = [each for each in known[query["MetricStat"]["Stat"]] if StartTime <= each < EndTime]
            results.append({"Id": query["Id"], "Timestamps": hours, "Values": [2.0] * len(hours)})
        return [{"MetricDataResults": results}]

    cloudwatch = SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=pages))
    given = settings(cluster={"generation": 2, "queues": [_queue("trn1", "trn1.32xlarge")]})
    account = SimpleNamespace(client=lambda _: cloudwatch)
    deployment = cast(Deployment, SimpleNamespace(settings=given, account=account))
    for days, end in ((300, (MARCH + HOUR).timestamp()), (500, None)):
        [(_, _, ended)] = costs.clusters_before(deployment, MARCH + timedelta(days=days))
        assert ended == end


# --- what nodes cost ---


def settings(**changes: Any) -> Settings:
    raw = {
        "name": "trn1",
        "region": "us-west-2",
        "zone_id": "usw2-az4",
        "cluster": {"queues": [_queue("trn1", "trn1.32xlarge")]},
    }
    return Settings.model_validate(raw | changes)


def _queue(name: str, *types: str) -> dict[str, Any]:
    resources = [{"name": each.replace(".", "-"), "instance_type": each, "max_count": 4} for each in types]
    return {"name": name, "compute_resources": resources}


def report(
    given: Settings,
    sums: list[tuple[str, str, float]],
    ran: Mapping[str, float],
    silent: timedelta = timedelta(),
    unreadable: int = 0,
) -> CostReport:
    prices = {"trn1.32xlarge": Decimal("21.5"), "trn1.2xlarge": Decimal("1.5")}
    of_names = [((key,), kind, seconds) for key, kind, seconds in sums]
    found = Summary(of_names, {key: (1, 2) for key, _, _ in of_names}, MARCH, unreadable=unreadable)
    hours = {queue: Decimal(value) for queue, value in ran.items()}
    window = (MARCH, MARCH + 24 * HOUR)
    return costs.report(given.name, given, prices, found, (hours, silent), window=window, by="user")


def test_sums_agree_with_node_hours_and_what_is_left_is_unattributed() -> None:
    one = report(
        settings(), [("ada", "trn1-dy-trn1-32xlarge", 7200), ("bob", "trn1-st-trn1-32xlarge", 3600)], {"trn1": 4}
    )
    assert [(each.name, each.node_hours, each.usd) for each in one.costs] == [
        ("ada", 2, 43),
        ("bob", 1, Decimal("21.5")),
    ]
    assert (one.jobs.jobs, one.jobs.runs, one.jobs.node_hours, one.jobs.usd) == (2, 4, 3, Decimal("64.5"))
    assert (one.unattributed_node_hours, one.unattributed_usd) == (1, Decimal("21.5"))
    assert one.notes == ()


def test_a_job_on_nodes_of_several_prices_costs_what_they_do() -> None:
    mixed = settings(cluster={"queues": [_queue("a", "trn1.32xlarge", "trn1.2xlarge")]})
    sums: list[tuple[str, str, float]] = [("ada", "a-dy-trn1-32xlarge", 3600), ("ada", "a-dy-trn1-2xlarge", 7200)]
    both = report(mixed, sums, {"a": 4})
    assert both.jobs.usd == Decimal("24.5")
    assert (both.unattributed_node_hours, both.unattributed_usd) == (1, None), "of which nodes is not known"


def test_what_is_not_known_is_not_zero() -> None:
    unknown = report(settings(), [("ada", "gone-dy-x", 3600)], {"trn1": 1}, silent=2 * HOUR)
    assert (unknown.jobs.usd, unknown.ran_node_hours, unknown.unattributed_node_hours) == (None, None, None)
    assert "of 2.0 h CloudWatch has no NodesRunning" in unknown.notes[0]
    assert "No price is known of gone-dy-x (1.00 node hours)" in unknown.notes[1]
    idle = report(settings(cluster={"queues": [_queue("a", "trn1n.32xlarge")]}), [], {"a": 2})
    assert (idle.ran_usd, idle.unattributed_usd) == (None, None)
    assert idle.unpriced_node_hours == {"queue a without a job": 2}


def test_hours_without_a_price_are_told_and_leave_the_other_sums_alone() -> None:
    """Of a queue that was renamed, of a compute resource that was, and of a type without a known price."""
    sums: list[tuple[str, str, float]] = [
        ("ada", "trn1-dy-trn1-32xlarge", 7200),
        ("ada", "gone-dy-x", 3600),
        ("bob", "gone-dy-x", 3600),
        ("eve", "trn1-dy-before", 3600),
    ]
    queues = [_queue("trn1", "trn1.32xlarge"), _queue("new", "trn1n.32xlarge")]
    one = report(settings(cluster={"queues": queues}), sums, {"trn1": 4, "gone": 3, "new": 5})
    assert {each.name: (each.node_hours, each.usd) for each in one.costs} == {
        "ada": (3, 43),
        "bob": (1, None),
        "eve": (1, None),
    }
    assert (one.jobs.node_hours, one.jobs.usd) == (5, Decimal(43))
    assert one.unpriced_node_hours == {
        "gone-dy-x": 2,
        "trn1-dy-before": 1,
        "queue gone without a job": 1,
        "queue new without a job": 5,
    }
    assert (one.ran_node_hours, one.ran_usd) == (12, Decimal(86))
    assert (one.unattributed_node_hours, one.unattributed_usd) == (7, Decimal("21.5"))


def test_more_node_hours_of_jobs_than_ran_are_told() -> None:
    sums: list[tuple[str, str, float]] = [("ada", "trn1-dy-trn1-32xlarge", 7200)]
    assert "Jobs have 1.00 node hours more than ran" in report(settings(), sums, {"trn1": 1}).notes[0]
    assert not report(settings(), sums, {"trn1": 1.99}).notes


def test_nodes_of_queues_that_the_settings_no_longer_have_ran_too(operated: Operated) -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for queue, value in (("trn1", 1), ("gone", 2)):
        put(operated, now - 2 * HOUR, value, queue)
    deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
    found = Summary([], {}, None, queues=["gone", "", "\n", ":x", "é"])  # CloudWatch refuses a request with the others
    ran, silent = costs.running(deployment, now - 2 * HOUR, now - HOUR, found)
    assert ({queue: float(hours) for queue, hours in ran.items()}, silent) == ({"gone": 2, "trn1": 1}, timedelta())


NOON = MARCH + 12 * HOUR


@pytest.mark.parametrize(
    ("hours", "node_hours"),
    [
        ({0: (4, 60), 1: (4, 60), 2: (4, 60)}, 12),
        ({0: (4, 15)}, 1),  # a cluster that ran for a quarter of an hour
        ({0: (4, 15), 1: (2, 60), 2: (4, 30)}, 5),  # it starts in the first hour and ends in the last
        ({0: (4, 60), 1: (4, 50), 2: (4, 60)}, 12),  # in between the head node started again
        ({}, 0),
    ],
)
def test_node_hours_of_hours_in_which_a_cluster_starts_or_ends(
    hours: dict[int, tuple[float, float]], node_hours: float
) -> None:
    found = {NOON + hour * HOUR: values for hour, values in hours.items()}
    assert float(costs.node_hours(found, MARCH, MARCH + 24 * HOUR)) == pytest.approx(node_hours)


def test_node_hours_are_cut_to_the_window() -> None:
    found = {NOON + hour * HOUR: (4.0, 60.0) for hour in range(3)}
    window = NOON + HOUR / 2, NOON + 2.25 * HOUR
    assert float(costs.node_hours(found, *window)) == pytest.approx(4 * 1.75)


# --- an account ---

SACCT = f"""\
7|ada|research|trn1|1|2|256|7200|{KIND}-[1-2]|COMPLETED|
7|ada|research|trn1|1|2|256|3600|{KIND}-[1-2]|COMPLETED|
8|bob|ops|trn1|1|1|128|1800|{KIND}-3|RUNNING|
"""


@pytest.fixture
def slurm(operated: Operated, tmp_path: Path) -> Path:
    """Let the head node run what is sent to it, with these programs of Slurm; return their directory."""
    write(tmp_path, SACCT)
    python = Path(sys.executable).parent
    operated.shell(f'PATH={tmp_path}:{python}:$PATH; export PATH TMPDIR={tmp_path}; script=$(cat); eval "$script"')
    return tmp_path


def write(directory: Path, sacct: str, code: int = 0) -> None:
    """Write programs of Slurm; that for `sacct` prints a text whose separators it replaces."""
    partition = "PartitionName=trn1 OverSubscribe=EXCLUSIVE"
    for name, text in {"sacct": sacct, "sinfo": f"{KIND}-1|128\n", "scontrol": f"{partition}\n"}.items():
        (directory / f"{name}.txt").write_text(text, encoding="utf-8")
        command = f"exec cat {directory}/{name}.txt"
        if name == "sacct":
            command = f'exec sed "s/|/${{1#--delimiter=}}/g" {directory}/sacct.txt'
        if name == "sacct" and code:
            command = f"echo sacct: error: $(cat {directory}/sacct.txt) >&2; exit {code}"
        (directory / name).write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        (directory / name).chmod(0o755)


def put(operated: Operated, hour: datetime, value: float, queue: str = "trn1") -> None:
    """Send a value a minute, as the head node does."""
    dimensions = [{"Name": "Cluster", "Value": "trn1-16"}, {"Name": "Queue", "Value": queue}]
    metric = {"MetricName": metrics.NODES_RUNNING, "Dimensions": dimensions, "Value": value}
    data = [{**metric, "Timestamp": hour + timedelta(minutes=minute)} for minute in range(60)]
    operated.client("cloudwatch").put_metric_data(Namespace=metrics.NAMESPACE, MetricData=data)


def test_the_command(
    operated: Operated, slurm: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    write(slurm, SACCT.replace("|trn1|1|", f"|trn1|{int((now - 4 * HOUR).timestamp())}|"))
    for hours, value in ((4, 2), (3, 3), (2, 2)):
        put(operated, now - hours * HOUR, value)
    window = ["--since", f"{now - 6 * HOUR:%Y-%m-%dT%H:%M}", "--until", f"{now - HOUR:%Y-%m-%dT%H:%M}"]
    monkeypatch.setattr(options, "BUILD", tmp_path / "build")
    monkeypatch.setattr("scripts.account.remote.head_node.SECONDS_BETWEEN_POLLS", 0.05)
    monkeypatch.setattr("scripts.use.costs.costs.PART", 100)  # so that the answer comes in parts

    assert ultracluster("costs", "trn1-16", *window, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [
        (each["name"], each["jobs"], each["runs"], each["node_hours"], each["usd"]) for each in document["costs"]
    ] == [
        ("ada", 1, 2, 6, 129),
        ("bob", 1, 1, 0.5, 10.75),
    ]
    assert (document["ran_node_hours"], document["unattributed_node_hours"], document["unattributed_usd"]) == (
        7,
        0.5,
        10.75,
    )
    assert not list(slurm.glob("ultracluster-costs-*"))

    assert ultracluster("costs", "trn1-16", *window) == 0
    text = capsys.readouterr().out
    assert "unattributed" in text
    assert "139.75" in text

    assert ultracluster("costs", "trn1-16", *window, "--by", "job", "-o", "csv") == 0
    rows = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    assert rows[0] == {
        **{"job": "7", "user": "ada", "account": "research", "queue": "trn1"},
        **{"jobs": "1", "runs": "2", "node_hours": "6.0000", "usd": "129.0000"},
    }
    assert (rows[-1]["job"], rows[-1]["node_hours"]) == ("unattributed", "0.5000")

    put(operated, now - 5 * HOUR, 1)  # then a silent hour is one of a cluster that ran
    earlier = ["--since", f"{now - 6 * HOUR:%Y-%m-%dT%H:%M}", "--until", f"{now:%Y-%m-%dT%H:%M}"]
    assert ultracluster("costs", "trn1-16", *earlier, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["ran_node_hours"], document["unattributed_usd"]) == (None, None), "the last hour is not known"


def test_what_cannot_be_shown(operated: Operated, slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(slurm, "Slurm accounting storage is disabled", code=1)
    assert ultracluster("costs", "trn1-16", "--since", "2026-01-01") == 1
    error = capsys.readouterr().err
    assert "Slurm accounting storage is disabled" in error
    assert "`accounting`" in error
    assert ultracluster("costs", "trn1-16", "--since", "2026-02-01", "--until", "2026-02-01") == 2
    assert "allowed: --since before --until" in capsys.readouterr().err
