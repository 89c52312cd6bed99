"""Expressions of workflows: values, conditions, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.delivery.workflows.expressions import ExpressionError, evaluate, holds, interpolate, resolve
from scripts.delivery.workflows.steps import status_functions

CONTEXTS = {
    "steps": {"target": {"outputs": {"ready": "true", "role": ""}}},
    "inputs": {"everything": False, "stage": "dev"},
    "github": {"event": {"number": 1}, "labels": ["a", "B"]},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ("null", None),
        ("steps.target.outputs.ready", "true"),
        ("steps.TARGET.outputs.ready == 'TRUE'", True),
        ("steps.nowhere.outputs.ready", None),
        ("steps.nowhere.outputs.ready == ''", True),
        ("steps.nowhere != true", True),
        ("!inputs.everything", True),
        ("inputs.everything && '--all' || '--yes'", "--yes"),
        ("(true || false) && 'b'", "b"),
        ("true || false && false", True),
        ("hashFiles('a', 'b')", ""),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert evaluate(text, CONTEXTS) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a ==", "cannot be read at 'its end'"),
        ("a b", "cannot be read at 'b'"),
        ("(a", "cannot be read at 'its end'"),
        ("a ? b", "cannot be read at"),
        ("== a", "cannot be read at"),
        ("a > b", "cannot be read at '> b'"),
        ("unknown('a')", "got function unknown; allowed: hashfiles"),
    ],
)
def test_what_is_no_expression(text: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(text, CONTEXTS)


def test_texts_with_expressions() -> None:
    text = "${{ inputs.stage }}-${{ inputs.everything }}-${{ steps.nowhere }}-${{ github.event.number }}"
    assert interpolate(text, CONTEXTS) == "dev-false--1"
    assert resolve("${{ inputs.everything }}", CONTEXTS) is False
    assert resolve("${{ github.labels }}", CONTEXTS) == ["a", "B"]
    assert resolve("${{ inputs.stage }}/${{ inputs.stage }}", CONTEXTS) == "dev/dev"
    assert resolve(["left alone"], CONTEXTS) == ["left alone"]


@pytest.mark.parametrize(
    ("condition", "after_success", "after_failure"),
    [
        (None, True, False),
        ("inputs.stage == 'dev'", True, False),
        ("${{ inputs.stage == 'prod' }}", False, False),
        ("always()", True, True),
        ("failure()", False, True),
        ("failure() && steps.target.outputs.ready == 'false'", False, False),
        ("success() || failure()", True, True),
        ("cancelled()", False, False),
        (False, False, False),
    ],
)
def test_conditions(condition: Any, after_success: bool, after_failure: bool) -> None:
    assert holds(condition, CONTEXTS, status_functions(ok=True)) is after_success
    assert holds(condition, CONTEXTS, status_functions(ok=False)) is after_failure
