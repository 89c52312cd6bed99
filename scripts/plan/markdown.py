"""The change plan as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scripts.plan.model import REPLACING, Effect, Kind, Plan
from scripts.plan.report import Rights, Section, rights, sections, verdict
from scripts.preflight.check import Finding

_EMPHASIZED = (*REPLACING, Effect.REMOVED, Kind.TERMINATES, Kind.REFUSED)
"""Beginnings of cells that nobody may overlook."""


class Block(NamedTuple):
    """A part of a comment that can be cut after any line.

    Attributes:
        lines: What it says.
        end: What closes it, also if it was cut.
    """

    lines: Sequence[str]
    end: Sequence[str] = ()


def as_markdown(plan: Plan) -> str:
    """Return a plan as GitHub's Markdown: the verdict first, then what stands against it, then what changes."""
    parts = [Block([f"### Changes of `{plan.environment}`"]), Block([f"**{verdict(plan)}**"]), *blocks(plan)]
    return joined(parts)


def joined(parts: Sequence[Block]) -> str:
    """Return blocks as one text, an empty line between them."""
    return "\n\n".join("\n".join([*part.lines, *part.end]) for part in parts) + "\n"


def blocks(plan: Plan) -> Iterator[Block]:
    """Yield what stands against a plan, what changes in stacks and cluster, and what changes in rights."""
    if plan.findings:
        yield findings_block(plan.findings)
    yield from map(_section, sections(plan))
    if found := rights(plan):
        yield _rights(found)


def findings_block(findings: Sequence[Finding]) -> Block:
    """Return findings as a table."""
    rows = [
        (
            finding.status,
            escaped(": ".join(filter(None, (finding.subject, finding.sentence)))),
            escaped(finding.hint) + (f" `{finding.command}`" if finding.command else ""),
        )
        for finding in findings
    ]
    return Block([*table(("", "What", "What helps"), rows)])


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose cells are Markdown."""
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(row)} |"


def escaped(text: str) -> str:
    """Return text that stands in a cell as it is."""
    for character in ("\\", "|", "<", "*", "_", "`"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _section(section: Section) -> Block:
    lines = [f"**{section.title}**: {escaped(section.remark)}"]
    if section.rows:
        lines += ["", *table(section.columns, [list(map(_cell, row)) for row in section.rows])]
    return Block(lines)


def _cell(text: str) -> str:
    return f"**{escaped(text)}**" if text.startswith(_EMPHASIZED) else escaped(text)


def _rights(found: Sequence[Rights]) -> Block:
    lines = [f"<details><summary>IAM, security groups and the like: {len(found)}</summary>", "", "```diff"]
    for each in found:
        lines += [f"# {each.subject}", *(f"- {line}" for line in each.lost), *(f"+ {line}" for line in each.gained)]
    return Block(lines, ("```", "", "</details>"))
