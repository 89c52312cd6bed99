"""What `make bench` measures, and the page that has the figures."""

from __future__ import annotations

import pytest

from scripts.upkeep.bench import costs
from scripts.upkeep.bench.common import ROOT, BenchError, BenchRow, environment, table
from scripts.upkeep.bench.developer import slowest_tests
from scripts.upkeep.bench.status import AWS, DIRECT, HELP, LAUNCHING, PCLUSTER, STATUS, report, rows_of


def test_what_is_measured_does_not_get_the_arguments_of_make_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "AWS_PROFILE"):
        monkeypatch.setenv(name, "x")
    assert {"ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "AWS_PROFILE"}.isdisjoint(environment())


def test_parts_that_are_written_have_a_place_on_the_page() -> None:
    page = (ROOT / "docs/explanation/performance.md").read_text(encoding="utf-8")
    for part in ("synth", "controller", "status", "tests", "clone"):
        assert f"<!-- make bench: {part} -->" in page


def test_a_table_has_a_line_for_each_row_and_says_whether_a_goal_is_met() -> None:
    rows = [BenchRow(("a", "1"), True), BenchRow(("b", "2"), False), BenchRow(("c", "3"))]
    assert table(("what", "s"), rows).splitlines() == [
        "| what | s |  |",
        "| --- | --- | --- |",
        "| a | 1 | met |",
        "| b | 2 | MISSED |",
        "| c | 3 |  |",
    ]


def test_the_slowest_tests_of_several_runs_are_one_list() -> None:
    output = "12.50s call     tests/a.py::test_a[x y]\n0.10s setup    tests/a.py::test_b\n3 passed in 13.00s\n" * 6
    listed = slowest_tests(output)
    assert len(listed) == 10
    assert listed[0] == ("12.50", "call", "tests/a.py::test_a[x y]")


def test_the_command_line_is_compared_with_that_of_aws() -> None:
    samples = {
        HELP: [(0.06, 0.06)], STATUS: [(0.5, 0.8)], DIRECT: [(0.05, 0.05)], PCLUSTER: [(1.0, 1.0)], AWS: [(0.5, 0.5)],
    }  # fmt: skip
    rows = {row.cells[0]: row for row in rows_of(samples)}
    assert [rows[name].met for name in (HELP, STATUS, LAUNCHING, AWS)] == [True, False, True, None]
    assert (rows[PCLUSTER].cells[3], rows[LAUNCHING].cells[2]) == ("2.00", "0.010")
    slow = rows_of(samples | {HELP: [(0.09, 0.09)]})
    assert [row.met for row in slow if row.cells[0] == LAUNCHING] == [False]


def test_without_the_aws_cli_no_goal_counts_as_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(BenchError, match="There is no `aws` on PATH"):
        report(1)


def test_the_program_of_costs_reads_the_jobs_that_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_JOBS", 10)
    assert [row.cells[2] for row in costs.report(1)[1]] == ["1", "1"]
