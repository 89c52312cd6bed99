"""A plan as tables of text, for the terminal and for comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scripts.plan.findings import shown_difference
from scripts.plan.model import REPLACING, ClusterChange, ClusterPlan, Kind, Plan, ResourceChange, Source, StackPlan
from scripts.preflight.check import CheckStatus

PERMISSIONS: Final = "IAM, security groups and the like"
_LONGEST_CELL = 30


@dataclass(frozen=True)
class Section:
    """A part of the plan.

    Attributes:
        title: What it is about.
        remark: What is true of all of it.
        columns: Names of the columns.
        rows: Cells by row; none: there is nothing to show.
    """

    title: str
    remark: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def sections(plan: Plan) -> list[Section]:
    """Return the stacks and the cluster."""
    return [*map(_stack, plan.stacks), _cluster(plan.cluster)]


def verdict(plan: Plan) -> str:
    """Return the result in a sentence."""
    blocking = sum(finding.status is CheckStatus.FAIL for finding in plan.findings)
    if blocking:
        return f"{blocking} blocking issue{'s' if blocking > 1 else ''}: this cannot be deployed."
    return "Nothing would change." if plan.empty else "Nothing blocks this deployment."


def _stack(stack: StackPlan) -> Section:
    if stack.source is Source.NEW:
        return Section(stack.name, f"{stack.source}: {len(stack.changes)} resources are added")
    shown = [change for change in stack.changes if not change.metadata_only]
    hidden = len(stack.changes) - len(shown)
    others = [*stack.other, *([f"metadata of {hidden} resource{'s' if hidden > 1 else ''}"] if hidden else [])]
    remark = f"from {stack.source}" + (f" ({stack.reason})" if stack.reason else "")
    if others:
        remark += f"; also changed: {', '.join(others)}"
    elif not shown:
        remark = f"no changes, {remark}"
    rows = [
        (
            change.logical_id,
            change.type.removeprefix("AWS::"),
            change.effect + (", the old one is retained" if change.old_stays else ""),
            _because(change),
        )
        for change in shown
    ]
    return Section(stack.name, remark, ("Resource", "Type", "What happens", "Because of"), rows)


def _because(change: ResourceChange) -> str:
    """Return what causes a change, and in what else a new resource differs from the one that it replaces."""
    causes = ", ".join(change.causes)
    if change.effect not in REPLACING:
        return causes
    others = [
        "{} from {} to {}".format(each.path, *shown_difference(each.before, each.after, _LONGEST_CELL))
        for each in change.properties
        if each.path not in change.causes
    ]
    return f"{causes}; also changed: {', '.join(others)}" if others else causes


def _cluster(cluster: ClusterPlan) -> Section:
    title = f"Cluster {cluster.name}"
    if not cluster.changes:
        return Section(title, f"{'no changes' if cluster.exists else 'created'}: {cluster.source}")
    fleet = "not read" if cluster.fleet_status == "UNKNOWN" else cluster.fleet_status
    counts = Counter(change.kind for change in cluster.changes)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])
    rows = [
        (change.path, *shown_difference(change.before, change.after, _LONGEST_CELL), _answer(change))
        for change in cluster.changes
    ]
    remark = f"{summary}; from {cluster.source}; compute fleet: {fleet}"
    return Section(title, remark, ("Key", "From", "To", "ParallelCluster"), rows)


def _answer(change: ClusterChange) -> str:
    if change.passes_now is None or change.kind in (Kind.LIVE, Kind.DRAINS, Kind.TERMINATES, Kind.REFUSED):
        return change.kind
    return f"{change.kind}; {'passes now' if change.passes_now else 'not now'}"
