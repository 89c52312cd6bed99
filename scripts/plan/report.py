"""A change plan as tables of text, which the terminal and a comment show alike, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.plan.findings import shown_difference
from scripts.plan.model import (
    REPLACING,
    ClusterChange,
    ClusterPlan,
    Kind,
    Plan,
    ResourceChange,
    Source,
    StackPlan,
)
from scripts.preflight.check import Finding, Status

_LONGEST_CELL = 30
NOTHING = "no changes"
_NO_RIGHTS = frozenset({"Description", "GroupDescription", "Metadata", "Path", "PolicyName", "Roles", "Tags", "VpcId"})
"""Properties that say nothing of rights."""
_WORDS: Mapping[str, str] = {
    "Effect": "",
    "Action": "",
    "NotAction": "all but",
    "Resource": "on",
    "NotResource": "on all but",
    "Principal": "to",
    "NotPrincipal": "to all but",
    "Condition": "if",
}
"""Elements of a statement, and how they are told.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements.html
"""


@dataclass(frozen=True)
class Section:
    """A part of the plan.

    Attributes:
        title: What it is about.
        remark: What is to be said of all of it.
        columns: Names of the columns.
        rows: Cells by row; none: there is nothing to show.
    """

    title: str
    remark: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Rights:
    """What changes in who may do or reach what.

    Attributes:
        subject: The resource, or the key of the cluster's configuration.
        lost: What is no longer so, line by line.
        gained: What will be so.
    """

    subject: str
    lost: Sequence[str]
    gained: Sequence[str]


def sections(plan: Plan) -> list[Section]:
    """Return the stacks and the cluster."""
    return [*map(_stack, plan.stacks), _cluster(plan.cluster)]


def rights(plan: Plan) -> list[Rights]:
    """Return what changes in IAM, security groups and the like."""
    found = [
        _rights(f"{stack.name}/{change.logical_id} ({change.effect})", change)
        for stack in plan.stacks
        for change in stack.changes
        if change.security
    ]
    found += [
        _difference(f"cluster {plan.cluster.name}: {change.path}", change.before, change.after)
        for change in plan.cluster.changes
        if change.security
    ]
    return [each for each in found if each.lost or each.gained]


def verdict(plan: Plan) -> str:
    """Return what comes out of it, in a sentence."""
    faults = sum(finding.status is Status.FAIL for finding in plan.findings)
    if faults:
        return f"{faults} thing{'s' if faults > 1 else ''} must be settled before this can be deployed."
    return "Nothing would change." if plan.empty else "Nothing stands against this deployment."


def document(plan: Plan) -> dict[str, Any]:
    """Return all of it as JSON has it; docs/plan.md has the schema."""
    return {
        "environment": plan.environment,
        "region": plan.region,
        "against": plan.against,
        "ok": plan.ok,
        "empty": plan.empty,
        "findings": [_finding(finding) for finding in plan.findings],
        "stacks": [
            {
                "name": stack.name,
                "source": stack.source,
                "reason": stack.reason,
                "other": list(stack.other),
                "changes": [_resource(change) for change in stack.changes],
            }
            for stack in plan.stacks
        ],
        "cluster": {
            "name": plan.cluster.name,
            "exists": plan.cluster.exists,
            "source": plan.cluster.source,
            "fleet_status": plan.cluster.fleet_status,
            "changes": [_key(change) for change in plan.cluster.changes],
        },
        "rights": [
            {"subject": each.subject, "lost": list(each.lost), "gained": list(each.gained)} for each in rights(plan)
        ],
    }


def _stack(stack: StackPlan) -> Section:
    remark = f"from {stack.source}" if stack.source is not Source.NEW else stack.source
    if stack.reason:
        remark += f" ({stack.reason})"
    if stack.source is Source.NEW:
        return Section(stack.name, f"{remark}: {len(stack.changes)} resources are added")
    told = [change for change in stack.changes if not change.metadata_only]
    silent = len(stack.changes) - len(told)
    others = [*stack.other, *([f"metadata of {silent} resource{'s' if silent > 1 else ''}"] if silent else [])]
    if others:
        remark += f"; changed, too: {', '.join(others)}"
    elif not told:
        remark = f"{NOTHING}, {remark}"
    rows = [
        (
            change.logical_id,
            change.type.removeprefix("AWS::"),
            change.effect + (", the old one stays" if change.stays else ""),
            _because(change),
        )
        for change in told
    ]
    return Section(stack.name, remark, ("Resource", "Type", "What happens", "Because of"), rows)


def _because(change: ResourceChange) -> str:
    """Return what causes a change, and what else a new resource will have otherwise than the one it replaces."""
    causes = ", ".join(change.causes)
    if change.effect not in REPLACING:
        return causes
    others = [
        "{} from {} to {}".format(each.path, *shown_difference(each.before, each.after, _LONGEST_CELL))
        for each in change.properties
        if each.path not in change.causes
    ]
    return f"{causes}; changed, too: {', '.join(others)}" if others else causes


def _cluster(cluster: ClusterPlan) -> Section:
    title = f"Cluster {cluster.name}"
    if not cluster.changes:
        happens = NOTHING if cluster.exists else "it is made"
        return Section(title, f"{happens}: {cluster.source}")
    remark = f"from {cluster.source}; compute fleet: {cluster.fleet_status}"
    if cluster.fleet_status == "UNKNOWN":
        remark += ", not asked or not to be read"
    counts = Counter(change.kind for change in cluster.changes)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])
    rows = [
        (change.path, *shown_difference(change.before, change.after, _LONGEST_CELL), _answer(change))
        for change in cluster.changes
    ]
    return Section(title, f"{summary}; {remark}", ("Key", "From", "To", "ParallelCluster"), rows)


def _answer(change: ClusterChange) -> str:
    if change.passes_now is None or change.kind in (Kind.LIVE, Kind.DRAINS, Kind.TERMINATES, Kind.REFUSED):
        return change.kind
    return f"{change.kind}; {'passes now' if change.passes_now else 'not now'}"


def _rights(subject: str, change: ResourceChange) -> Rights:
    parts = [_difference("", each.before, each.after) for each in change.properties if each.path not in _NO_RIGHTS]
    lost = [line for part in parts for line in part.lost]
    return Rights(subject, lost, [line for part in parts for line in part.gained])


def _difference(subject: str, before: Any, after: Any) -> Rights:
    old, new = list(_lines(before)), list(_lines(after))
    return Rights(subject, [each for each in old if each not in new], [each for each in new if each not in old])


def _lines(value: Any) -> Iterator[str]:
    """Yield what a value says, each statement of a policy and each item of a list on its own."""
    match value:
        case None:
            return
        case {"Statement": list(statements)}:
            yield from map(_statement, statements)
        case list(items):
            yield from map(_statement, items)
        case dict():
            yield json.dumps(value, sort_keys=True)
        case _:
            yield str(value)


def _statement(statement: Any) -> str:
    """Return a statement of a policy in words, and anything else as it is."""
    if not isinstance(statement, Mapping) or "Effect" not in statement:
        return _listed(statement)
    parts = [f"{word} {_listed(statement[key])}".strip() for key, word in _WORDS.items() if key in statement]
    return " ".join(parts)


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_listed, value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "status": finding.status,
        "subject": finding.subject,
        "sentence": finding.sentence,
        "hint": finding.hint,
        "command": finding.command,
    }


def _resource(change: ResourceChange) -> dict[str, Any]:
    return {
        "logical_id": change.logical_id,
        "type": change.type,
        "physical_id": change.physical_id,
        "effect": change.effect,
        "causes": list(change.causes),
        "old_stays": change.stays,
        "security": change.security,
        "properties": [each._asdict() for each in change.properties],
    }


def _key(change: ClusterChange) -> dict[str, Any]:
    return {
        "path": change.path,
        "before": change.before,
        "after": change.after,
        "kind": change.kind,
        "passes_now": change.passes_now,
        "security": change.security,
        "reason": change.reason,
        "ways": list(change.ways),
        "command": change.command,
    }
