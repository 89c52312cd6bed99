"""The summary of a job."""

from __future__ import annotations

import os
from pathlib import Path

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file to which a step appends what is shown on the page of its job.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary
"""


def summarize(text: str) -> None:
    """Append Markdown to the summary of the job that this runs in; elsewhere do nothing."""
    if name := os.environ.get(SUMMARY):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
