"""A plan as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scripts.markdown import escaped, folded, table
from scripts.plan.model import REPLACING, Effect, Kind, Plan
from scripts.plan.permissions import PermissionChange
from scripts.plan.sections import PERMISSIONS, Section, sections, verdict
from scripts.preflight.check import Finding

_EMPHASIZED = (*REPLACING, Effect.REMOVED, Kind.TERMINATES, Kind.REFUSED)
"""Beginnings of cells that are bold."""


def as_markdown(plan: Plan) -> str:
    """Return a plan as GitHub's Markdown: the verdict first, then what blocks it, then what changes."""
    return "\n\n".join([f"### Plan of `{plan.environment}`", f"**{verdict(plan)}**", *blocks(plan)]) + "\n"


def blocks(plan: Plan) -> Iterator[str]:
    """Yield the findings of a plan, the changes of stacks and cluster, and those of permissions."""
    if plan.findings:
        yield findings_table(plan.findings)
    yield from map(_section, sections(plan))
    if plan.permissions:
        yield _permissions(plan.permissions)


def findings_table(findings: Sequence[Finding]) -> str:
    """Return findings as a table."""
    rows = [
        (
            finding.status,
            escaped(": ".join(filter(None, (finding.subject, finding.sentence)))),
            escaped(finding.hint) + (f" `{finding.command}`" if finding.command else ""),
        )
        for finding in findings
    ]
    return table(("", "What", "What helps"), rows)


def _section(section: Section) -> str:
    text = f"**{section.title}**: {escaped(section.remark)}"
    if not section.rows:
        return text
    return f"{text}\n\n{table(section.columns, [list(map(_cell, row)) for row in section.rows])}"


def _cell(text: str) -> str:
    return f"**{escaped(text)}**" if text.startswith(_EMPHASIZED) else escaped(text)


def _permissions(changes: Sequence[PermissionChange]) -> str:
    lines = ["```diff"]
    for each in changes:
        lines += [f"# {each.subject}", *(f"- {line}" for line in each.lost), *(f"+ {line}" for line in each.gained)]
    return folded(f"{PERMISSIONS}: {len(changes)}", "\n".join([*lines, "```"]))
