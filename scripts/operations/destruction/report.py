"""What a destruction would do, and what came of it, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scripts.deployment import Deployment
from scripts.operations.destruction.destroy import Outcome
from scripts.operations.destruction.plan import Plan
from scripts.operations.inventory import report as inventory_report
from scripts.operations.inventory.leftovers_model import Found
from scripts.operations.inventory.resources import Inventory

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console


def show_plan(deployment: Deployment, present: Inventory, plan: Plan, console: Console, now: datetime) -> None:
    """Print what there is, what of it would go, and what stands against that."""
    inventory_report.show(present, console, now)
    console.print()
    if plan.empty:
        console.print(
            f"There is no {' and no '.join(plan.parts)} of {deployment.settings.name} to delete.", markup=False
        )
    for name in plan.stacks:
        note = " (its termination protection is taken away)" if name in plan.unprotected else ""
        console.print(f"To delete: stack {name}{note}", markup=False)
    for one in plan.left_behind:
        console.print(f"To delete: {one.id}, which {one.stack} left behind", markup=False)
    for one in plan.sweep:
        console.print(f"To sweep: {one.id} ({one.reason})", markup=False)
    for each in plan.remarks:
        console.print(each, markup=False, style="bold")
    for each in plan.obstacles:
        console.print(f"Stands against it: {each}", markup=False, style="bold red")


def show_outcome(outcome: Outcome, console: Console) -> None:
    """Print what was deleted, what was not, what is left, and how long it took."""
    from scripts.operations import screen

    console.print()
    took = screen.duration(outcome.duration)
    console.print(f"Deleted in {took}: {', '.join(outcome.deleted) or 'nothing'}.", markup=False)
    for each in outcome.backups:
        console.print(f"Backup: {each}. It costs until you delete it.", markup=False)
    for each in outcome.failures:
        console.print(f"Not done: {each}", markup=False, style="bold red")
    for title, found in (
        ("Left over; --sweep removes what holds no data:", [each for each in outcome.left if not each.kept]),
        ("Kept on purpose:", [each for each in outcome.left if each.kept]),
    ):
        if found:
            console.print(title, style="bold")
        for one in found:
            console.print(f"  {one.id}{' *' if one.data else ''}: {one.reason}", markup=False, soft_wrap=True)


def document(deployment: Deployment, present: Inventory, plan: Plan, outcome: Outcome | None) -> dict[str, Any]:
    """Return all of it as docs/schemas/destroy.json describes it."""
    return {
        "deployment": deployment.settings.name,
        "plan": {
            "parts": list(plan.parts),
            "stacks": list(plan.stacks),
            "file_systems": list(plan.file_systems),
            "left_behind": [_found(each) for each in plan.left_behind],
            "unprotected": list(plan.unprotected),
            "sweep": [_found(each) for each in plan.sweep],
            "obstacles": list(plan.obstacles),
            "remarks": list(plan.remarks),
        },
        "before": inventory_report.document(present),
        "outcome": None if outcome is None else _outcome(outcome),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "deleted": outcome.deleted,
        "backups": outcome.backups,
        "failures": outcome.failures,
        "left": [_found(each) for each in outcome.left],
        "seconds": round(outcome.duration.total_seconds()),
    }


def _found(found: Found) -> dict[str, Any]:
    return {
        "type": found.type,
        "id": found.id,
        "reason": found.reason,
        "kept_on_purpose": found.kept,
        "holds_data": found.data,
    }
