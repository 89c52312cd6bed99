"""What `make bench ARGS='--only tests'` makes of the output of pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from scripts.bench import developer
from scripts.bench.common import ROOT, Sample, environment

OUTPUT = """\
============================= slowest 10 durations =============================
12.50s call     tests/a.py::test_slow[a b]
0.70s setup    tests/a.py::test_slow[a b]
(8 durations < 0.005s hidden.  Use -vv to show these durations.)
41 passed in 30.00s
============================= slowest 10 durations =============================
101.00s call     tests/b.py::test_slower
"""


def test_slowest_tests_of_both_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: Sequence[str], *, variables: Mapping[str, str]) -> Sample:
        assert "--durations=10" in variables["PYTEST_ADDOPTS"]
        return Sample(500, 170, OUTPUT)

    monkeypatch.setattr(developer, "run", run)
    monkeypatch.setattr(developer, "conditions", lambda what: what)
    text, rows = developer.tests()
    assert [row.met for row in rows] == [False, True]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    first = lines.index("| Of | wall s | phase | test |") + 2
    assert lines[first : first + 2] == [
        "| `make test` | 101.00 | call | tests/b.py::test_slower |",
        "| `make test` | 12.50 | call | tests/a.py::test_slow[a b] |",
    ]


def test_what_is_measured_does_not_get_the_arguments_of_make_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "AWS_PROFILE"):
        monkeypatch.setenv(name, "x")
    assert {"ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "AWS_PROFILE"}.isdisjoint(environment())


def test_parts_that_are_written_have_a_place_on_the_page() -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    for part in ("synth", "controller", "status", "feed", "tests", "clone"):
        assert f"<!-- make bench: {part} -->" in page
