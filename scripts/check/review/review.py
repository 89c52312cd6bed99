"""The comments on a pull request, and their summary, as files."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from scripts.check.review.checkouts import find, names
from scripts.check.review.comment import UNCHANGED, comment, read_preflight
from scripts.core import options
from scripts.core.errors import UnusableError


def write(base: str) -> list[str]:
    """Write the comments on what this checkout changes since a commit to build/review, and the summary beside it.

    Returns:
        The deployments with a comment.

    Raises:
        UnusableError: There is no such commit, or a file of preflight is damaged.
    """
    before, comments = options.BUILD / "base", options.BUILD / "review"
    for directory in (before, comments):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    extract(base, before)
    for name in names(before, options.ROOT):
        report = read_preflight(options.BUILD / f"preflight-{name}.json")
        text = comment(name, find(before, name), find(options.ROOT, name), report)
        (comments / f"{name}.md").write_text(text, encoding="utf-8")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(comments.glob("*.md"))}
    (options.BUILD / "review-summary.md").write_text(f"{summary(texts)}\n", encoding="utf-8")
    return [*texts]


def extract(commit: str, directory: Path) -> None:
    """Write settings and golden templates of a commit to a directory.

    Raises:
        UnusableError: There is no such commit.
    """
    archive = subprocess.run(
        ["git", "archive", commit, "config", "tests/snapshots"], cwd=options.ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        raise UnusableError(f"BASE: got {commit}; allowed: a commit. {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(directory, filter="data")


def summary(comments: Mapping[str, str]) -> str:
    """Return comments, by the names of their deployments, as one text: those on changes, the others in one line."""
    changed = [text for text in comments.values() if UNCHANGED not in text]
    unchanged = [f"`{name}`" for name, text in comments.items() if UNCHANGED in text]
    return "\n".join([*changed, *([f"Nothing changes: {', '.join(unchanged)}."] if unchanged else [])])
