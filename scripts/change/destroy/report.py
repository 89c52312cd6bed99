"""What a destruction would do, and what it did, for people."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.account.backups import vault_name
from scripts.account.deployment import Deployment
from scripts.change.destroy.model import ORDER, Backup, DestroyOutcome, DestroyPlan
from scripts.check.estimate.products import table_dates
from scripts.core.figures import counted, dollars, duration
from scripts.core.report import Block, Command, Conclusion, Gap, Line, Toned
from scripts.watch.inventory.model import Inventory, Leftover, Resource, summed
from scripts.watch.inventory.resources import KEPT, LEFT


def planned(deployment: Deployment, present: Inventory, plan: DestroyPlan) -> Iterator[Block]:
    """Yield what would be deleted, what holds data or stays, what all resources cost, and what blocks the deletion.

    What blocks it is the last paragraph of text, which .github/workflows/destroy.yaml copies.
    """
    if plan.empty:
        yield Line(f"There is no {' and no '.join(plan.parts)} of {present.deployment} to delete.")
    for name in plan.stacks:
        note = " (its termination protection is removed)" if name in plan.unprotected else ""
        yield Line(f"To delete: stack {name}{note}")
    for each in plan.left_behind:
        yield Line(f"To delete: {each.id}, which {each.stack} kept{_cost(each)}")
    for each in plan.sweep:
        yield Line(f"To remove: {each.id} ({each.reason}){_cost(each)}")
    yield from (Line(Toned(text, "strong")) for text in plan.remarks)
    staying = {KEPT, LEFT, *(deployment.stack_name(part) for part in ORDER)} - {*plan.stacks}
    deleted = {each.id for each in (*plan.left_behind, *plan.sweep)}
    data: dict[str, list[Resource]] = {"Holds data": [], "Stays": []}
    for resource in present.resources:
        if resource.holds_data:
            stays = (resource.root or resource.stack) in staying and resource.id not in deleted
            data["Stays" if stays else "Holds data"].append(resource)
    for title, resources in data.items():
        for resource in summed(resources):
            kind, stack = resource.type.rpartition("::")[2], resource.root or resource.stack
            yield Line(f"{title}: {kind} {resource.id} of {stack}{_cost(resource)}")
    monthly = f"{dollars(present.dollars_per_month)} a month, by prices of {table_dates()}"
    found = counted(len(present.resources), "resources")
    yield Line(f"{found}, {monthly}. All of them: ./ultracluster inventory {deployment.name}")
    yield from (Line(f"Not listed: {refusal}") for refusal in present.not_listed)
    if plan.blockers:
        yield Conclusion([Gap(), *(Line(Toned(f"Blocked: {text}", "bad")) for text in plan.blockers)])


def done(deployment: Deployment, outcome: DestroyOutcome) -> Iterator[Block]:
    """Yield what was deleted, what was not, how long it took, and what is left, with its costs."""
    left = outcome.left or []
    yield Gap()
    yield Line(f"Deleted in {duration(outcome.duration)}: {', '.join(outcome.deleted) or 'nothing'}.")
    if outcome.in_progress:
        yield Line(f"AWS continues to delete: {', '.join(outcome.in_progress)}.")
    for backup in outcome.backups:
        monthly = backup.dollars_per_month_at_most
        amount = "" if monthly is None else f" at most {dollars(monthly)} a month, by prices of {table_dates()},"
        yield Line(f"Backup: {backup.id}. It costs{amount} until you delete it:")
        yield Command(deployment.command(*_deletion(deployment, backup)))
        if backup.kind == "ebs":
            text = "Its /home for a later cluster of this deployment"
            yield Line(f"{text}: ./ultracluster restore {deployment.name}")
    yield from (Line(Toned(f"Not done: {failure}", "bad")) for failure in outcome.failures)
    for title, group in (
        ("Left over; --sweep removes what holds no data:", [each for each in left if not each.kept_on_purpose]),
        ("Kept on purpose:", [each for each in left if each.kept_on_purpose]),
    ):
        if group:
            yield Line(Toned(title, "strong"))
        for each in group:
            marked = f"{each.id} *" if each.holds_data else each.id
            yield Line(f"{marked}: {each.reason}{_cost(each)}", level=1)
    if any(each.holds_data for each in left):
        yield Line("* holds data.")
    for kind in ("volume", "snapshot"):
        shown = {each.id for each in outcome.backups}
        if names := [each.id for each in left if each.type == f"AWS::EC2::{kind.title()}" and each.id not in shown]:
            yield Line(Toned(f"To delete the {kind}s permanently, with their data:", "strong"))
            for name in names:
                yield Command(deployment.command("ec2", f"delete-{kind}", f"--{kind}-id", name))


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
    return {"-": "", "by use": ", paid by use"}.get(item.cost, f", {item.cost} a month")
