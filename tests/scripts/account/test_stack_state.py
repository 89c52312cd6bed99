"""What each status of a stack means, and that it is decided in one module only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import botocore.session
import pytest

from scripts.account.stack_state import ResourceState, StackState
from scripts.core.options import ROOT

IS = {
    "REVIEW_IN_PROGRESS": {"is_in_review", "has_nothing", "was_never_complete"},
    "CREATE_IN_PROGRESS": {"is_in_progress", "starts", "was_never_complete"},
    "CREATE_COMPLETE": {"is_ready", "has_succeeded", "can_detect_drift"},
    "CREATE_FAILED": {"has_failed", "was_never_complete"},
    "ROLLBACK_IN_PROGRESS": {"is_in_progress", "has_failed", "is_rolling_back", "was_never_complete"},
    "ROLLBACK_COMPLETE": {"has_failed", "has_nothing", "was_never_complete"},
    "ROLLBACK_FAILED": {"has_failed", "has_nothing", "was_never_complete"},
    "UPDATE_IN_PROGRESS": {"is_in_progress", "starts"},
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": {"is_in_progress"},
    "UPDATE_COMPLETE": {"is_ready", "has_succeeded", "can_detect_drift"},
    "UPDATE_FAILED": {"has_failed"},
    "UPDATE_ROLLBACK_IN_PROGRESS": {"is_in_progress", "has_failed", "is_rolling_back"},
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": {"is_in_progress", "has_failed", "is_rolling_back"},
    "UPDATE_ROLLBACK_COMPLETE": {"has_failed", "is_as_before", "is_ready", "can_detect_drift"},
    "UPDATE_ROLLBACK_FAILED": {"has_failed", "is_stuck", "can_detect_drift"},
    "IMPORT_IN_PROGRESS": {"is_in_progress", "starts"},
    "IMPORT_COMPLETE": {"is_ready", "has_succeeded"},
    "IMPORT_ROLLBACK_IN_PROGRESS": {"is_in_progress", "has_failed", "is_rolling_back"},
    "IMPORT_ROLLBACK_COMPLETE": {"has_failed", "is_as_before", "is_ready"},
    "IMPORT_ROLLBACK_FAILED": {"has_failed"},
    "DELETE_IN_PROGRESS": {"is_in_progress", "starts", "is_leaving", "is_being_deleted"},
    "DELETE_COMPLETE": {"has_succeeded", "is_leaving", "is_gone"},
    "DELETE_FAILED": {"has_failed", "is_leaving"},
}
"""Predicates that are true of each status of a stack."""

IS_OF_RESOURCE = {
    "CREATE_IN_PROGRESS": {"is_in_progress"},
    "CREATE_FAILED": {"has_failed"},
    "CREATE_COMPLETE": set(),
    "ROLLBACK_IN_PROGRESS": {"is_in_progress"},
    "ROLLBACK_FAILED": {"has_failed"},
    "ROLLBACK_COMPLETE": set(),
    "UPDATE_IN_PROGRESS": {"is_in_progress"},
    "UPDATE_FAILED": {"has_failed"},
    "UPDATE_COMPLETE": set(),
    "UPDATE_ROLLBACK_IN_PROGRESS": {"is_in_progress"},
    "UPDATE_ROLLBACK_FAILED": {"has_failed"},
    "UPDATE_ROLLBACK_COMPLETE": set(),
    "IMPORT_IN_PROGRESS": {"is_in_progress"},
    "IMPORT_FAILED": {"has_failed"},
    "IMPORT_COMPLETE": set(),
    "IMPORT_ROLLBACK_IN_PROGRESS": {"is_in_progress"},
    "IMPORT_ROLLBACK_FAILED": {"has_failed"},
    "IMPORT_ROLLBACK_COMPLETE": set(),
    "EXPORT_IN_PROGRESS": {"is_in_progress"},
    "EXPORT_FAILED": {"has_failed"},
    "EXPORT_COMPLETE": set(),
    "EXPORT_ROLLBACK_IN_PROGRESS": {"is_in_progress"},
    "EXPORT_ROLLBACK_FAILED": {"has_failed"},
    "EXPORT_ROLLBACK_COMPLETE": set(),
    "DELETE_IN_PROGRESS": {"is_in_progress"},
    "DELETE_FAILED": {"has_failed", "is_undeletable"},
    "DELETE_COMPLETE": {"is_gone", "is_released"},
    "DELETE_SKIPPED": {"is_released"},
}
"""Predicates that are true of each status of a resource."""
NEW = {
    "MOVE_IN_PROGRESS": {"is_in_progress"},
    "MOVE_FAILED": {"has_failed"},
    "MOVE_ROLLBACK_IN_PROGRESS": {"is_in_progress", "has_failed", "is_rolling_back"},
    "MOVE_COMPLETE": set(),
}
"""Predicates that are true of statuses that CloudFormation does not have yet."""
OTHERS = {
    "check/plan/change_sets.py": r"(CREATE|DELETE)_(PENDING|IN_PROGRESS|COMPLETE)",  # of change sets
    "core/options.py": "_ULTRACLUSTER_COMPLETE",  # a variable of the shell's completion
    # What the first deployment must see, word for word: a predicate would take another one for it.
    "rehearse/prove/rungs.py": "UPDATE_COMPLETE|UPDATE_ROLLBACK_COMPLETE|UPDATE_ROLLBACK_FAILED",
    "upkeep/bench/status.py": "_ULTRACLUSTER_COMPLETE",
    "watch/drift/detection.py": r"DETECTION_\w+",  # of the detection
    "watch/inventory/removal.py": "DELETE_CHILD_VOLUMES_AND_SNAPSHOTS",  # an option of FSx
    "watch/progress/tracker.py": "EXECUTE_IN_PROGRESS",  # of change sets
}
"""Words of the same form that are no statuses of stacks and resources, or decide nothing, by file in scripts/."""
LIKE_A_STATUS = re.compile(
    r"(?=[A-Z_|.*^$()]+$).*(IN_PROGRESS|ROLLBACK|_COMPLETE|_FAILED|_SKIPPED)|_?(CREATE|UPDATE|DELETE|IMPORT|REVIEW)_[A-Z_]*$"
)


def predicates(state: type[StackState | ResourceState]) -> set[str]:
    names = {name for each in state.__mro__ for name, value in vars(each).items() if isinstance(value, property)}
    return {name for name in names if name.startswith(("is_", "has_", "was_", "can_", "starts"))}


@pytest.mark.parametrize(
    ("state", "shape", "table"),
    [(StackState, "StackStatus", IS), (ResourceState, "ResourceStatus", IS_OF_RESOURCE)],
)
def test_every_status_of_cloudformation_means_what_is_said_here(
    state: type[StackState | ResourceState], shape: str, table: dict[str, set[str]]
) -> None:
    model = botocore.session.get_session().get_service_model("cloudformation").shape_for(shape)
    assert sorted(model.enum) == sorted(state) == sorted(table)
    assert {each: {name for name in predicates(state) if getattr(each, name)} for each in state} == table
    assert predicates(state) == set().union(*table.values())


@pytest.mark.parametrize("status", NEW)
def test_a_status_of_a_newer_aws_is_text_and_in_progress_or_failed_by_its_name(status: str) -> None:
    state = StackState(status)
    assert (f"{state}", state, state.operation) == (status, status, "MOVE")
    assert {name for name in predicates(StackState) if getattr(state, name)} == NEW[status]
    assert status not in [*StackState]


def compared(path: Path) -> Iterator[str]:
    """Yield what a file has of statuses: literals, and members of the enumerations in comparisons."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and LIKE_A_STATUS.match(node.value):
            yield node.value
        if isinstance(node, ast.Compare):
            members = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
            yield from (
                ast.unparse(each) for each in members if re.match(r"(Stack|Resource)State\.[A-Z]", ast.unparse(each))
            )


def test_no_other_module_decides_by_the_text_of_a_status() -> None:
    """All else in scripts/ asks predicates, so that two commands cannot differ on what a status means."""
    scripts = ROOT / "scripts"
    found = {
        (name, text)
        for path in scripts.rglob("*.py")
        if (name := path.relative_to(scripts).as_posix()) != "account/stack_state.py"
        for text in compared(path)
    }
    assert {(name, text) for name, text in found if not re.fullmatch(OTHERS.get(name, "-"), text)} == set()
    assert {name for name, _ in found} == {*OTHERS}
