"""Print the comments on a pull request for the summary of its run: those on changes, the others in one line.

Exit code 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path


def summary(comments: Mapping[str, str]) -> str:
    """Return comments, by the names of their configurations, as one text."""
    from scripts.review.comment import UNCHANGED

    changed = [text for text in comments.values() if UNCHANGED not in text]
    unchanged = [f"`{name}`" for name, text in comments.items() if UNCHANGED in text]
    return "\n".join([*changed, *([f"Nothing changes: {', '.join(unchanged)}."] if unchanged else [])])


def main() -> int:
    """Print the summary, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts review_summary", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIRECTORY", help="where ENV.md is for each configuration")
    files = sorted(parser.parse_args().directory.glob("*.md"))
    print(summary({path.stem: path.read_text(encoding="utf-8") for path in files}))
    return 0
