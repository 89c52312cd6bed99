"""The change plan as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scripts.change_plan.model import Plan
from scripts.change_plan.report import rights, sections, verdict


def as_markdown(plan: Plan) -> str:
    """Return a plan as GitHub's Markdown: the verdict first, then what stands against it, then what changes."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield f"### Changes of `{plan.environment}`"
    yield ""
    yield f"**{verdict(plan)}**"
    if plan.findings:
        yield ""
        rows = [
            (
                finding.status,
                _escaped(f"{finding.subject}: {finding.sentence}"),
                _escaped(finding.hint) + (f" `{finding.command}`" if finding.command else ""),
            )
            for finding in plan.findings
        ]
        yield from _table(("", "What", "What helps"), rows)
    for section in sections(plan):
        yield ""
        yield f"**{section.title}**: {_escaped(section.remark)}"
        if section.rows:
            yield ""
            yield from _table(section.columns, [list(map(_escaped, row)) for row in section.rows])
    found = rights(plan)
    if found:
        yield ""
        yield f"<details><summary>IAM, security groups and the like: {len(found)}</summary>"
        yield ""
        yield "```diff"
        for each in found:
            yield f"# {each.subject}"
            yield from (f"- {line}" for line in each.lost)
            yield from (f"+ {line}" for line in each.gained)
        yield "```"
        yield ""
        yield "</details>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(row)} |"


def _escaped(text: str) -> str:
    """Return text that stands in a cell as it is."""
    for character in ("\\", "|", "<", "*", "_", "`"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
