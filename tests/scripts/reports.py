"""Reports as people get them."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console

from scripts.core.markdown import joined, of_blocks
from scripts.core.report import Block
from scripts.core.view import View


def shown(blocks: Iterable[Block], width: int = 80) -> str:
    """Return what a terminal shows."""
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True, markup=False)
    View(console).show(blocks)
    return console.export_text()


def as_markdown(blocks: Iterable[Block]) -> str:
    """Return what a page has, without its title."""
    return joined(of_blocks(blocks))
