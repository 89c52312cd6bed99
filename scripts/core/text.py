"""Text that a terminal shows and does not obey."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

_PICTURES = {**{chr(code): chr(0x2400 + code) for code in range(0x20)}, "\x7f": "\N{SYMBOL FOR DELETE}"}
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What is no character to be seen: controls (C0, C1), formats such as those that turn the direction of text, halves of
characters. Line ends and tabs may stay (https://www.unicode.org/reports/tr44/#General_Category_Values)."""


_RUNNER_COMMAND = re.compile(r"(^[ \t]*:(?=:)|##(?=\[))", re.MULTILINE)


def fit(text: str) -> str:
    """Return text that a terminal shows and does not obey; it has the same length.

    Users who name a job or write a file choose what an administrator's terminal is sent: colours, titles, links, the
    clipboard (OSC 52), lines that overwrite others. A control is shown by its picture, the rest as U+FFFD.
    """
    return _UNFIT.sub(lambda match: _PICTURES.get(match[0], "\N{REPLACEMENT CHARACTER}"), text)


def fit_renderable(shown: RenderableType) -> RenderableType:
    """Return something for a console with `fit` text: text and styled text; tables are made of these."""
    from rich.text import Text

    if isinstance(shown, str):
        return Text(fit(shown))
    if isinstance(shown, Text) and (plain := fit(shown.plain)) != shown.plain:
        shown = shown.copy()
        shown.plain = plain
    return shown


def obeyed_by_no_runner(text: str) -> str:
    """Return text of whole lines that GitHub's runners do not obey: no workflow command starts in it.

    Elsewhere it stays as it is. A command starts at the start of a line, whatever space is before it, or at ``##[``
    (https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands).
    """
    return _RUNNER_COMMAND.sub(r"\1 ", text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


def echo(text: str = "", *, err: bool = False, end: str = "\n", to_runner: bool = False) -> None:
    """Print text for people that fits a terminal, to standard output or error; `to_runner`: a runner may obey it."""
    shown = fit(text) if to_runner else obeyed_by_no_runner(fit(text))
    print(shown, end=end, file=sys.stderr if err else sys.stdout, flush=True)
