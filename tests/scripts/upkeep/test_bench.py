"""What `make bench` measures."""

from __future__ import annotations

import pytest

from scripts.check.estimate.workloads import WORKLOADS
from scripts.upkeep.bench import costs
from scripts.upkeep.bench.common import BenchError, BenchRow, environment, table
from scripts.upkeep.bench.status import AWS, DIRECT, HELP, LAUNCHING, STATUS, report, rows_of
from scripts.upkeep.bench.training import SPEEDS, checkpoint_rows, feed_rows, trace_rows


def test_what_is_measured_gets_no_account_and_no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    switches = ("AWS_PROFILE", "CDK_DEBUG", "NODE_OPTIONS", "PYTHONOPTIMIZE")
    for name in switches:
        monkeypatch.setenv(name, "x")
    assert environment().keys().isdisjoint(switches)


def test_a_table_has_a_line_for_each_row_and_says_whether_a_goal_is_met() -> None:
    rows = [BenchRow(("a", "1"), True), BenchRow(("b", "2"), False), BenchRow(("c", "3"))]
    assert table(("what", "s"), rows).splitlines() == [
        "| what | s |  |",
        "| --- | --- | --- |",
        "| a | 1 | met |",
        "| b | 2 | MISSED |",
        "| c | 3 |  |",
    ]


def test_the_command_line_is_compared_with_that_of_aws() -> None:
    samples = {
        HELP: [(0.06, 0.06)], STATUS: [(0.5, 0.8)], DIRECT: [(0.05, 0.05)], AWS: [(0.5, 0.5)],
    }  # fmt: skip
    rows = {row.cells[0]: row for row in rows_of(samples)}
    assert [rows[name].met for name in (HELP, STATUS, LAUNCHING, AWS)] == [True, False, True, None]
    assert (rows[STATUS].cells[3], rows[LAUNCHING].cells[2]) == ("1.00", "0.010")
    slow = rows_of(samples | {HELP: [(0.09, 0.09)]})
    assert [row.met for row in slow if row.cells[0] == LAUNCHING] == [False]


def test_without_the_aws_cli_no_goal_counts_as_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(BenchError, match="There is no `aws` on PATH"):
        report(1)


def test_the_program_of_costs_reads_the_jobs_that_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_JOBS", 10)
    assert [row.cells[2] for row in costs.report(1)[1]] == ["1", "1"]


def test_training_is_compared_with_the_chips_and_the_disk_of_a_node() -> None:
    """A feed of 32 processes, AWS's speed of a node, seconds of 1 GB, shares of a micro-batch."""
    assert {phase: WORKLOADS[f"bert-large-phase{phase}"].throughput(1)[0] for phase in SPEEDS} == SPEEDS
    assert [row.met for row in feed_rows({"1": 1_200.0, "2": 100.0})] == [True, False]
    assert [row.met for row in checkpoint_rows({"plain": 0.8, "checkpoint": 0.9})] == [None, True]
    assert [row.met for row in checkpoint_rows({"plain": 0.7, "checkpoint": 0.9})] == [None, False]
    assert [row.met for row in trace_rows([(0.1, 0.009), (0.1, 0.5), (0.2, 0.018)])] == [None, True]
    assert [row.met for row in trace_rows([(0.1, 0.011)])] == [None, False]
