"""What `make test-recordings` makes of results, and that its list of expected differences can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.recordings.outcomes import Expected, Result, surprises

DOCUMENT: dict[str, Any] = {
    "commits": {"moto": "0"},
    "refused": [{"reason": "r", "names": ["resource type AWS::SQS::*"]}],
    "differs": [{"reason": "r", "tests": ["t.py::differs[*]"]}],
    "unfit": [{"reason": "r", "tests": ["t.py::unfit"]}],
    "outside": [{"reason": "r", "tests": ["t.py::outside"]}],
}
EXPECTED = Expected.of(DOCUMENT)
REFUSED = "CREATE_FAILED: Not emulated: resource type AWS::SQS::Queue Rollback requested by user."
RESULTS = [
    Result("t.py::passes", "passed", ("GetItem: 400 ResourceNotFoundException: x",)),
    Result("t.py::skips", "skipped"),
    Result("t.py::refused", "failed", (REFUSED,)),
    Result("t.py::differs[1]", "failed"),
    Result("t.py::unfit", "failed"),
    Result("t.py::outside", "failed", outside=("example.com",)),
]


def test_what_is_expected_surprises_nobody() -> None:
    assert surprises(RESULTS, EXPECTED) == []


@pytest.mark.parametrize(
    ("changed", "surprise"),
    [
        (replace(RESULTS[0], outcome="failed", failure="a\nb"), "differs: t.py::passes: b"),
        (replace(RESULTS[2], outcome="passed"), "no more: refused: resource type AWS::SQS::*"),
        (
            replace(RESULTS[2], answers=("x: Not emulated: transform X",)),
            "refused: t.py::refused: transform X",
        ),
        (replace(RESULTS[3], outcome="passed"), "no more: differs: t.py::differs[*]"),
        (replace(RESULTS[4], outcome="passed"), "no more: unfit: t.py::unfit"),
        (replace(RESULTS[5], outside=()), "differs: t.py::outside: "),
        (
            replace(
                RESULTS[3], answers=("X: 501 NotImplemented: The emulator cannot answer this request: KeyError()",)
            ),
            "fault: t.py::differs[1]: The emulator cannot answer this request: KeyError()",
        ),
        (
            replace(RESULTS[0], answers=("GetItem: 500 InternalError: x",)),
            "fault: t.py::passes: : 500 InternalError: x",
        ),
    ],
)
def test_any_other_end_is_a_surprise(changed: Result, surprise: str) -> None:
    results = [changed if each.test == changed.test else each for each in RESULTS]
    assert surprise in surprises(results, EXPECTED)


def test_of_some_tests_nothing_is_missed() -> None:
    assert surprises(RESULTS[:1], EXPECTED, complete=False) == []


@pytest.mark.parametrize(
    ("section", "entries"),
    [
        ("differ", []),
        ("differs", [{"reason": "", "tests": ["t"]}]),
        ("differs", [{"reason": "r", "tests": []}]),
        ("refused", [{"reason": "r", "tests": ["t"]}]),
        ("unfit", [{"reason": "r", "tests": ["t.py::outside"]}]),
    ],
)
def test_a_list_that_says_nothing_or_something_twice_is_refused(section: str, entries: Any) -> None:
    with pytest.raises(ValueError, match=r"allowed|unknown|twice"):
        Expected.of({**DOCUMENT, section: entries})


def test_the_list_can_be_read() -> None:
    expected = Expected.read()
    assert expected.commits.keys() == {"localstack", "moto"}
    assert all(len(commit) == 40 for commit in expected.commits.values())
    tests = [each for each in expected.expectations if each.section != "refused"]
    assert all(pattern.partition("/")[0] in expected.commits for each in tests for pattern in each.patterns)
