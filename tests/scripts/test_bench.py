"""What `make bench` measures, and the page that has the figures."""

from __future__ import annotations

import pytest

from scripts.bench.common import ROOT, environment


def test_what_is_measured_does_not_get_the_arguments_of_make_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "AWS_PROFILE"):
        monkeypatch.setenv(name, "x")
    assert {"ARGS", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "AWS_PROFILE"}.isdisjoint(environment())


def test_parts_that_are_written_have_a_place_on_the_page() -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    for part in ("synth", "controller", "status", "feed", "tests", "clone"):
        assert f"<!-- make bench: {part} -->" in page
