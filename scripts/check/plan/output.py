"""A plan for people: on a terminal, and as a comment on a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from scripts.check.plan.findings import shown_difference
from scripts.check.plan.model import (
    REPLACING,
    ClusterChange,
    ClusterPlan,
    Effect,
    Kind,
    Plan,
    ResourceChange,
    Source,
    StackPlan,
)
from scripts.core import screen
from scripts.core.findings import CheckStatus, Finding
from scripts.core.markdown import escaped, folded, table

if TYPE_CHECKING:
    from rich.console import Console

_PERMISSIONS: Final = "IAM, security groups and the like"
_LONGEST_CELL: Final = 30
_EMPHASIZED: Final = (*REPLACING, Effect.REMOVED, Kind.TERMINATES, Kind.REFUSED)
"""Beginnings of cells that are bold."""


class Section(NamedTuple):
    """A stack or the cluster: what is true of all of it, and a table of its changes, which may be empty."""

    title: str
    remark: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def show(plan: Plan, console: Console) -> None:
    """Print a plan."""
    console.print(Text.assemble((f"Plan of {plan.deployment}", "bold"), f", {plan.region}, against {plan.against}"))
    for section in sections(plan):
        console.print(Text.assemble("\n", (section.title, "bold"), f": {section.remark}"))
        if section.rows:
            rows = screen.table(*section.columns)
            for row in section.rows:
                rows.add_row(*(Text(cell, "bold red" if cell.startswith(_EMPHASIZED) else "") for cell in row))
            console.print(rows)
    if plan.permissions:
        console.print(Text(f"\n{_PERMISSIONS}", "bold"))
    for each in plan.permissions:
        console.print(Text(f"  {each.subject}"))
        for line in each.lost:
            console.print(Text(f"    - {line}", "red"))
        for line in each.gained:
            console.print(Text(f"    + {line}", "green"))
    for finding in plan.findings:
        style = "bold red" if finding.status is CheckStatus.FAIL else "yellow"
        console.print(Text.assemble("\n", (finding.status, style), f" {finding.subject}: {finding.sentence}."))
        if finding.hint:
            console.print(Text(f"  what helps: {finding.hint}"))
        if finding.command:
            console.print(Text(f"  {finding.command}"), soft_wrap=True)
    console.print(Text(f"\n{verdict(plan)}", "bold" if plan.ok else "bold red"))


def as_markdown(plan: Plan) -> str:
    """Return a plan as GitHub's Markdown: the verdict first, then what blocks it, then what changes."""
    return "\n\n".join([f"### `plan {plan.deployment}`", f"**{verdict(plan)}**", *blocks(plan)]) + "\n"


def blocks(plan: Plan) -> Iterator[str]:
    """Yield, as Markdown, the findings of a plan, the changes of stacks and cluster, and those of permissions."""
    if plan.findings:
        yield findings_table(plan.findings)
    for section in sections(plan):
        text = f"**{section.title}**: {escaped(section.remark)}"
        if section.rows:
            text += f"\n\n{table(section.columns, [list(map(_cell, row)) for row in section.rows])}"
        yield text
    if plan.permissions:
        lines = ["```diff"]
        for each in plan.permissions:
            lines += [f"# {each.subject}", *(f"- {line}" for line in each.lost), *(f"+ {line}" for line in each.gained)]
        yield folded(f"{_PERMISSIONS}: {len(plan.permissions)}", "\n".join([*lines, "```"]))


def findings_table(findings: Sequence[Finding]) -> str:
    """Return findings as a table of Markdown."""
    rows = [
        (
            finding.status,
            escaped(": ".join(filter(None, (finding.subject, finding.sentence)))),
            escaped(finding.hint) + (f" `{finding.command}`" if finding.command else ""),
        )
        for finding in findings
    ]
    return table(("", "What", "What helps"), rows)


def verdict(plan: Plan) -> str:
    """Return the result in a sentence."""
    blocking = sum(finding.status is CheckStatus.FAIL for finding in plan.findings)
    if blocking:
        return f"{blocking} blocking issue{'s' if blocking > 1 else ''}: this cannot be deployed."
    return "Nothing would change." if plan.empty else "Nothing blocks this deployment."


def sections(plan: Plan) -> list[Section]:
    """Return the stacks and the cluster."""
    return [*map(_stack, plan.stacks), _cluster(plan.cluster)]


def _cell(text: str) -> str:
    return f"**{escaped(text)}**" if text.startswith(_EMPHASIZED) else escaped(text)


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
