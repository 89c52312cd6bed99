"""Pages of HTML that load nothing: their Content-Security-Policy forbids it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.core.table import Table

ROOT = Path(__file__).parents[2]


def render(
    template: str, title: str, lead: Sequence[str], tables: Sequence[Table], notes: Sequence[str] = (), **values: object
) -> str:
    """Return a page of a template that extends scripts/core/page.html.

    The template's path is from the top of the checkout; `values` are what else it shows.
    """
    from jinja2 import Environment, FileSystemLoader

    pages = Environment(loader=FileSystemLoader(ROOT), autoescape=True, trim_blocks=True)
    shown = pages.get_template(template).render(title=title, lead=lead, tables=tables, notes=notes, **values)
    return f"{shown}\n"
