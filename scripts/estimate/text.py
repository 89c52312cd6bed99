"""The plan on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from scripts.estimate.tables import tables
from scripts.pages import Table

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.estimate.plan import Plan

NARROWEST = 124
"""Columns that the widest table takes; a narrower terminal wraps its lines."""


def show(plan: Plan, console: Console) -> None:
    """Print a plan."""
    console.print(f"[bold]Plan of {plan.name}[/bold], {plan.region}, {plan.zone_id}", highlight=False)
    for table in tables(plan):
        console.print()
        _show(table, console)
    for remark in plan.remarks:
        console.print(Text(f"Note: {remark}"))


def _show(table: Table, console: Console) -> None:
    console.print(Text(table.title, style="bold"))
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for column in table.columns:
        shown.add_column(Text(column.title), justify="right" if column.right else "left", vertical="bottom")
    for index, row in enumerate(table.rows):
        if index == len(table.rows) - table.sums:
            shown.add_section()
        shown.add_row(*map(Text, row))
    console.print(shown)
    for note in table.notes:
        console.print(Text(note, style="dim"))
