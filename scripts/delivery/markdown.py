"""GitHub's Markdown: tables, text that stands as it is, and the summary of a job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file to which a step appends what is shown on the page of its job.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary
"""


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; cells show their text as it is."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(escaped, row))} |"


def escaped(text: str) -> str:
    """Return text that stands in a cell or a line as it is."""
    for character in ("\\", "|", "<", "*", "_", "`"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def summarize(text: str) -> None:
    """Append Markdown to the summary of the job that this runs in; elsewhere do nothing."""
    if name := os.environ.get(SUMMARY):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
