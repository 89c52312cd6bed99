"""What a deployment would do: the plan, as programs and people get it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import computed_field

from scripts.check.plan.findings import shown_difference
from scripts.check.plan.model import (
    REPLACING,
    ClusterChange,
    ClusterPlan,
    Effect,
    Kind,
    PeopleChange,
    ResourceChange,
    Source,
    StackPlan,
)
from scripts.check.plan.permissions import UNRELATED, PermissionChange, permission_change
from scripts.core.document import DeploymentName, Result
from scripts.core.figures import counted
from scripts.core.findings import CheckStatus, Finding
from scripts.core.report import Block, Changes, Conclusion, Folded, Gap, Line, Table, Toned, columns

_NOTHING_BLOCKS: Final = "Nothing blocks this deployment."
_PERMISSIONS: Final = "IAM, security groups and the like"
_LONGEST_CELL: Final = 30
_OF_PEOPLE: Final = ("What", "Name", "What happens")
_EMPHASIZED: Final = (*REPLACING, Effect.REMOVED, Kind.TERMINATES, Kind.REFUSED)
"""Beginnings of cells that are bold."""


class Plan(Result):
    """What a deployment would do.

    Attributes:
        region: Region of the stacks.
        against: What it was compared with: the account, or a directory.
        stacks: In the order of their deployment.
        cluster: What happens to the cluster.
        people: What happens to people and what they have, on an account with a cluster.
        findings: What blocks it (FAIL), and what needs attention (WARN).
    """

    deployment: DeploymentName
    region: str
    against: str
    stacks: tuple[StackPlan, ...]
    cluster: ClusterPlan
    people: tuple[PeopleChange, ...] = ()
    findings: tuple[Finding, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether nothing blocks it."""
        return not self.blockers

    @property
    def blockers(self) -> list[str]:
        """What blocks it, a sentence each after what it is about."""
        return [f"{each.subject}: {each.sentence}" for each in self.findings if each.status is CheckStatus.FAIL]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def empty(self) -> bool:
        """Whether the deployment would change nothing at all."""
        return not any(stack.changes or stack.other or stack.source is Source.NEW for stack in self.stacks)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def permissions(self) -> list[PermissionChange]:
        """What changes in IAM, security groups and the like."""
        changes = [
            permission_change(
                f"{stack.name}/{change.logical_id} ({change.effect})",
                [(each.path, each.before, each.after) for each in change.properties if each.path not in UNRELATED],
            )
            for stack in self.stacks
            for change in stack.changes
            if change.security
        ]
        changes += [
            permission_change(
                f"cluster {self.cluster.name}: {change.path}",
                [(change.path.rpartition(".")[2], change.before, change.after)],
            )
            for change in self.cluster.changes
            if change.security
        ]
        return [each for each in changes if each.lost or each.gained]

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        blocking = sum(each.status is CheckStatus.FAIL for each in self.findings)
        if blocking:
            return f"{counted(blocking, 'blocking issues')}: this cannot be deployed."
        if self.empty:
            return "Nothing would change."
        unknown = sum(each.status is CheckStatus.UNKNOWN for each in self.findings)
        return f"Nothing that was looked at blocks this deployment; {unknown} unknown." if unknown else _NOTHING_BLOCKS

    def blocks(self) -> Iterator[Block]:
        """Yield it for people; what blocks it, and the verdict, are its conclusions."""
        yield Line([Toned(f"Plan of {self.deployment}", "strong"), f", {self.region}, against {self.against}"])
        yield from self.changed()
        if self.findings:
            yield Conclusion([part for each in self.findings for part in (Gap(), each)])
        yield Conclusion([Gap(), Line(Toned(self.verdict, "strong" if self.ok else "bad"))])

    def changed(self) -> Iterator[Block]:
        """Yield what changes in stacks and cluster, and who may do what then."""
        for stack in self.stacks:
            yield from _stack(stack)
        yield from _cluster(self.cluster)
        if self.people:
            rows = [
                (each.what, each.name, ": ".join(filter(None, (each.effect, ", ".join(each.keys)))))
                for each in self.people
            ]
            yield from _section("People", "at once on the head node, within a minute on others", _OF_PEOPLE, rows)
        if self.permissions:
            changes = [Changes(each.subject, each.lost, each.gained) for each in self.permissions]
            yield Folded(f"{_PERMISSIONS}: {len(changes)}", changes)


def _section(
    title: str, remark: str, titles: Sequence[str] = (), rows: Sequence[Sequence[str]] = ()
) -> Iterator[Block]:
    """Yield what is true of all of a stack or the cluster, and its changes."""
    yield Gap()
    yield Line([Toned(title, "strong"), f": {remark}"])
    yield Table("", columns(*titles), [list(map(_cell, row)) for row in rows])


def _cell(text: str) -> str:
    return Toned(text, "bad") if text.startswith(_EMPHASIZED) else text


def _stack(stack: StackPlan) -> Iterator[Block]:
    if stack.source is Source.NEW:
        return _section(stack.name, f"{stack.source}: {len(stack.changes)} resources are added")
    shown = [change for change in stack.changes if not change.metadata_only]
    hidden = len(stack.changes) - len(shown)
    others = [*stack.other, *([f"metadata of {counted(hidden, 'resources')}"] if hidden else [])]
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
    return _section(stack.name, remark, ("Resource", "Type", "What happens", "Because of"), rows)


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


def _cluster(cluster: ClusterPlan) -> Iterator[Block]:
    title = f"Cluster {cluster.name}"
    if not cluster.changes:
        return _section(title, f"{'no changes' if cluster.exists else 'created'}: {cluster.source}")
    fleet = "not read" if cluster.fleet_status == "UNKNOWN" else cluster.fleet_status
    counts = Counter(change.kind for change in cluster.changes)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])
    rows = [
        (change.path, *shown_difference(change.before, change.after, _LONGEST_CELL), _answer(change))
        for change in cluster.changes
    ]
    remark = f"{summary}; from {cluster.source}; compute fleet: {fleet}"
    return _section(title, remark, ("Key", "From", "To", "ParallelCluster"), rows)


def _answer(change: ClusterChange) -> str:
    if change.passes_now is None or change.kind in (Kind.LIVE, Kind.DRAINS, Kind.TERMINATES, Kind.REFUSED):
        return change.kind
    return f"{change.kind}; {'passes now' if change.passes_now else 'not now'}"
