"""What a destruction would do, and what came of it, for people and as JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from scripts.deployment import Deployment
from scripts.destroy.outcome import Backup, Outcome
from scripts.destroy.plan import Plan
from scripts.inventory import report as inventory_report
from scripts.inventory.costs import Costs
from scripts.inventory.leftovers_model import Found
from scripts.inventory.resources import Inventory

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console


def show_plan(deployment: Deployment, present: Inventory, plan: Plan, console: Console, now: datetime) -> None:
    """Print what there is, what of it would go, and what stands against that."""
    costs = _costs(present)
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
        console.print(f"To delete: {one.id}, which {one.stack} left behind{_cost(one, costs)}", markup=False)
    for one in plan.sweep:
        console.print(f"To sweep: {one.id} ({one.reason}){_cost(one, costs)}", markup=False)
    for each in plan.remarks:
        console.print(each, markup=False, style="bold")
    for each in plan.obstacles:
        console.print(f"Stands against it: {each}", markup=False, style="bold red")


def show_outcome(deployment: Deployment, outcome: Outcome, console: Console) -> None:
    """Print what was deleted, what was not, how long it took, and what is left, with its costs."""
    from scripts import screen

    left = outcome.left or []
    console.print()
    took = screen.duration(outcome.duration)
    console.print(f"Deleted in {took}: {', '.join(outcome.deleted) or 'nothing'}.", markup=False)
    for backup in outcome.backups:
        amount = "" if backup.monthly is None else f" at most {screen.dollars(backup.monthly)} a month"
        console.print(f"Backup: {backup.id}. It costs{amount} until you delete it:", markup=False)
        console.print(f"  {deployment.command('fsx', 'delete-backup', '--backup-id', backup.id)}", markup=False)
    for each in outcome.failures:
        console.print(f"Not done: {each}", markup=False, style="bold red")
    for title, found in (
        ("Left over; --sweep removes what holds no data:", [each for each in left if not each.kept]),
        ("Kept on purpose:", [each for each in left if each.kept]),
    ):
        if found:
            console.print(title, style="bold")
        for one in found:
            console.print(
                f"  {one.id}{' *' if one.data else ''}: {one.reason}{_cost(one, outcome.costs)}", markup=False
            )
    if any(one.data for one in left):
        console.print("* holds data.")
    for kind in ("volume", "snapshot"):
        if names := [one.id for one in left if one.type == f"AWS::EC2::{kind.title()}"]:
            console.print(f"To delete the {kind}s for good, with all that is in them:", style="bold")
            for name in names:
                console.print(f"  {deployment.command('ec2', f'delete-{kind}', f'--{kind}-id', name)}", markup=False)


def _cost(found: Found, costs: Costs) -> str:
    """Return what a leftover costs, after what is said of it; empty: nothing, or less than a cent."""
    monthly = costs.get((found.type, found.id), Decimal(0))
    text = inventory_report.cost(monthly)
    return {"-": "", "by use": ", paid by use"}.get(text, f", {text} a month")


def _costs(present: Inventory) -> Costs:
    return {(each.type, each.id): each.monthly for each in present.resources}


def document(deployment: Deployment, present: Inventory, plan: Plan, outcome: Outcome | None) -> dict[str, Any]:
    """Return all of it as docs/schemas/destroy.json describes it."""
    before = _costs(present)
    return {
        "deployment": deployment.settings.name,
        "plan": {
            "parts": list(plan.parts),
            "stacks": list(plan.stacks),
            "file_systems": list(plan.file_systems),
            "left_behind": [_found(each, before) for each in plan.left_behind],
            "unprotected": list(plan.unprotected),
            "sweep": [_found(each, before) for each in plan.sweep],
            "obstacles": list(plan.obstacles),
            "remarks": list(plan.remarks),
        },
        "before": inventory_report.document(present),
        "outcome": None if outcome is None else _outcome(outcome),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "deleted": outcome.deleted,
        "backups": [_backup(each) for each in outcome.backups],
        "failures": outcome.failures,
        "left": None if outcome.left is None else [_found(each, outcome.costs) for each in outcome.left],
        "seconds": round(outcome.duration.total_seconds()),
    }


def _backup(backup: Backup) -> dict[str, Any]:
    return {"id": backup.id, "dollars_per_month_at_most": inventory_report.number(backup.monthly)}


def _found(found: Found, costs: Costs) -> dict[str, Any]:
    return {
        "type": found.type,
        "id": found.id,
        "reason": found.reason,
        "kept_on_purpose": found.kept,
        "holds_data": found.data,
        "dollars_per_month": inventory_report.number(costs.get((found.type, found.id), Decimal(0))),
    }
