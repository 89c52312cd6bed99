"""What a destruction would do, and what it did, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.account.backups import vault_name
from scripts.account.deployment import Deployment
from scripts.change.destroy.model import ORDER, Backup, DestroyOutcome, DestroyPlan
from scripts.core import screen
from scripts.watch.inventory import screen as inventory_screen
from scripts.watch.inventory.model import Inventory, Leftover, Resource
from scripts.watch.inventory.resources import KEPT, LEFT

if TYPE_CHECKING:
    from rich.console import Console


def show_plan(
    deployment: Deployment, present: Inventory, plan: DestroyPlan, console: Console, *, blockers_first: bool
) -> None:
    """Print what would be deleted, what holds data or stays, what all resources cost, and what blocks the deletion."""
    if blockers_first:
        _show_blockers(plan, console)
    if plan.empty:
        console.print(f"There is no {' and no '.join(plan.parts)} of {present.deployment} to delete.")
    for name in plan.stacks:
        note = " (its termination protection is removed)" if name in plan.unprotected else ""
        console.print(f"To delete: stack {name}{note}")
    for each in plan.left_behind:
        console.print(f"To delete: {each.id}, which {each.stack} kept{_cost(each)}")
    for each in plan.sweep:
        console.print(f"To remove: {each.id} ({each.reason}){_cost(each)}")
    for text in plan.remarks:
        console.print(text, style="bold")
    staying = {KEPT, LEFT, *(deployment.stack_name(part) for part in ORDER)} - {*plan.stacks}
    deleted = {each.id for each in (*plan.left_behind, *plan.sweep)}
    data: dict[str, list[Resource]] = {"Holds data": [], "Stays": []}
    for resource in present.resources:
        if resource.holds_data:
            stays = (resource.root or resource.stack) in staying and resource.id not in deleted
            data["Stays" if stays else "Holds data"].append(resource)
    for title, resources in data.items():
        for resource in inventory_screen.lines(resources):
            kind, stack = resource.type.rpartition("::")[2], resource.root or resource.stack
            console.print(f"{title}: {kind} {resource.id} of {stack}{_cost(resource)}")
    total = f"{len(present.resources):,} resources, {screen.dollars(present.dollars_per_month)} a month"
    console.print(f"{total}. All of them: ./ultracluster inventory {deployment.name}")
    for refusal in present.not_listed:
        console.print(f"Not listed: {refusal}")
    if not blockers_first:
        _show_blockers(plan, console)


def _show_blockers(plan: DestroyPlan, console: Console) -> None:
    """Print what blocks the deletion: as text the last paragraph, which .github/workflows/destroy.yaml copies."""
    if plan.blockers:
        console.print()
    for text in plan.blockers:
        console.print(f"Blocked: {text}", style="bold red")


def show_outcome(deployment: Deployment, outcome: DestroyOutcome, console: Console) -> None:
    """Print what was deleted, what was not, how long it took, and what is left, with its costs."""
    left = outcome.left or []
    console.print()
    deleted = ", ".join(outcome.deleted) or "nothing"
    console.print(f"Deleted in {screen.duration(outcome.duration)}: {deleted}.")
    if outcome.in_progress:
        console.print(f"AWS continues to delete: {', '.join(outcome.in_progress)}.")
    for backup in outcome.backups:
        monthly = backup.dollars_per_month_at_most
        amount = "" if monthly is None else f" at most {screen.dollars(monthly)} a month"
        console.print(f"Backup: {backup.id}. It costs{amount} until you delete it:")
        console.print(f"  {deployment.command(*_deletion(deployment, backup))}")
        if backup.kind == "ebs":
            text = "Its /home for a later cluster of this deployment"
            console.print(f"{text}: ./ultracluster restore {deployment.name}")
    for failure in outcome.failures:
        console.print(f"Not done: {failure}", style="bold red")
    for title, group in (
        ("Left over; --sweep removes what holds no data:", [each for each in left if not each.kept_on_purpose]),
        ("Kept on purpose:", [each for each in left if each.kept_on_purpose]),
    ):
        if group:
            console.print(title, style="bold")
        for each in group:
            marked = f"{each.id} *" if each.holds_data else each.id
            console.print(f"  {marked}: {each.reason}{_cost(each)}")
    if any(each.holds_data for each in left):
        console.print("* holds data.")
    for kind in ("volume", "snapshot"):
        shown = {each.id for each in outcome.backups}
        if names := [each.id for each in left if each.type == f"AWS::EC2::{kind.title()}" and each.id not in shown]:
            console.print(f"To delete the {kind}s permanently, with their data:", style="bold")
            for name in names:
                console.print(f"  {deployment.command('ec2', f'delete-{kind}', f'--{kind}-id', name)}")


def _deletion(deployment: Deployment, backup: Backup) -> list[str]:
    """Return the words after ``aws`` that delete a backup."""
    if backup.kind == "efs":
        vault = ["--backup-vault-name", vault_name(deployment)]
        return ["backup", "delete-recovery-point", *vault, "--recovery-point-arn", backup.id]
    if backup.kind == "rds":
        return ["rds", "delete-db-snapshot", "--db-snapshot-identifier", backup.id]
    if backup.kind == "ebs":
        return ["ec2", "delete-snapshot", "--snapshot-id", backup.id]
    return ["fsx", "delete-backup", "--backup-id", backup.id]


def _cost(item: Leftover | Resource) -> str:
    """Return what something costs, as the end of a sentence; empty: nothing, or less than a cent."""
    text = inventory_screen.cost(item.dollars_per_month)
    return {"-": "", "by use": ", paid by use"}.get(text, f", {text} a month")
