"""A review as a page of HTML, and as GitHub's Markdown."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.core.markdown import folded, of_table
from scripts.core.options import ROOT

if TYPE_CHECKING:
    from scripts.check.review.deployment import Review

MERMAID: Final = ROOT / "node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
"""Mermaid in one file, without what it would load. It lays out by measuring text, so it has to run in the browser."""
_START: Final = """
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "neutral" });
"""


def page(review: Review) -> str:
    """Return a review as one file that loads nothing: scripts are in it, and only these may run."""
    from jinja2 import Environment, FileSystemLoader

    mermaid = MERMAID.read_text(encoding="utf-8").replace("\r\n", "\n").replace("</script", "<\\/script")
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (mermaid, _START)]
    pages = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
    shown = pages.get_template("page.html").render(
        title=f"Review of {review.deployment_name}",
        lead=review.lead,
        tables=review.tables,
        notes=review.notes,
        drawing=review.drawing,
        mermaid=mermaid,
        start=_START,
        scripts=" ".join(f"'sha256-{each}'" for each in hashes),
    )
    return f"{shown}\n"


def markdown(review: Review) -> str:
    """Return a review as Markdown."""
    lead = "\n".join(f"- {line}" for line in review.lead)
    tables = (folded(each.title, of_table(each)) for each in review.tables)
    return "\n\n".join([f"### `review {review.deployment_name}`", lead, as_block(review.drawing), *tables]) + "\n"


def as_block(drawing: str) -> str:
    """Return a drawing as the block of Markdown that GitHub draws."""
    return f"```mermaid\n{drawing}```"
