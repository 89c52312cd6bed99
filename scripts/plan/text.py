"""A plan on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from scripts.plan.model import Effect, Kind, Plan
from scripts.plan.sections import PERMISSIONS, Section, sections, verdict
from scripts.preflight.check import CheckStatus
from scripts.screen import table

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.preflight.check import Finding

_STYLES: Mapping[str, str] = {
    Effect.ADDED: "green",
    Effect.MAY_BE_REPLACED: "bold yellow",
    Effect.REPLACED: "bold red",
    Effect.REMOVED: "bold red",
    Kind.LIVE: "green",
    Kind.DRAINS: "yellow",
    Kind.TERMINATES: "yellow",
    Kind.FLEET_STOPPED: "bold yellow",
    Kind.LOGIN_NODES_STOPPED: "bold yellow",
    Kind.ALL_STOPPED: "bold yellow",
    Kind.REFUSED: "bold red",
}


def show(plan: Plan, console: Console) -> None:
    """Print a plan."""
    console.print(Text.assemble((f"Plan of {plan.environment}", "bold"), f", {plan.region}, against {plan.against}"))
    for section in sections(plan):
        console.print()
        _show_section(section, console)
    _show_permissions(plan, console)
    for finding in plan.findings:
        console.print()
        _show_finding(finding, console)
    console.print()
    console.print(Text(verdict(plan), "bold" if plan.ok else "bold red"))


def _show_section(section: Section, console: Console) -> None:
    console.print(Text.assemble((section.title, "bold"), f": {section.remark}"))
    if not section.rows:
        return
    rows = table(*section.columns)
    for row in section.rows:
        rows.add_row(*(Text(cell, _style(cell)) for cell in row))
    console.print(rows)


def _show_permissions(plan: Plan, console: Console) -> None:
    if plan.permissions:
        console.print()
        console.print(Text(PERMISSIONS, "bold"))
    for each in plan.permissions:
        console.print(Text(f"  {each.subject}"))
        for sign, style, lines in (("-", "red", each.lost), ("+", "green", each.gained)):
            for line in lines:
                console.print(Text(f"    {sign} {line}", style))


def _show_finding(finding: Finding, console: Console) -> None:
    style = "bold red" if finding.status is CheckStatus.FAIL else "yellow"
    console.print(Text.assemble((finding.status, style), f" {finding.subject}: {finding.sentence}."))
    if finding.hint:
        console.print(Text(f"  what helps: {finding.hint}"))
    if finding.command:
        console.print(Text(f"  {finding.command}"), soft_wrap=True)


def _style(cell: str) -> str:
    return next(
        (style for text, style in _STYLES.items() if cell == text or cell.startswith((f"{text},", f"{text};"))), ""
    )
