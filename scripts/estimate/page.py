"""An estimate as one file that loads nothing, with bars of time and cost by number of nodes."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from scripts.estimate import figures
from scripts.estimate.estimate import Estimate
from scripts.estimate.tables import tables


def page(estimate: Estimate) -> str:
    """Return the page of an estimate."""
    pages = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
    shown = tables(estimate)
    if estimate.run:
        shown = [shown[-1], *shown[:-1]]
    return pages.get_template("page.html").render(estimate=estimate, tables=shown, figures=figures) + "\n"
