"""Print what a change of this repository does to a configuration, as a comment for its pull request.

Two checkouts are compared, offline: their settings and their golden templates. The comment is GitHub's Markdown, and
begins with a marker by which a workflow finds it again. Exit code 0: printed; 2: the arguments cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNUSABLE = 2


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m scripts review_comment", description=__doc__)
    parser.add_argument("environment", metavar="ENV", help="file name in config/ of either checkout, without .yaml")
    parser.add_argument("--before", type=Path, required=True, metavar="DIRECTORY", help="a checkout without the change")
    parser.add_argument(
        "--after", type=Path, default=ROOT, metavar="DIRECTORY", help="one with it (default: where this program is)"
    )
    parser.add_argument(
        "--preflight", type=Path, metavar="FILE", help="what preflight --json printed; none or empty: it was not run"
    )
    return parser.parse_args()


def main() -> int:
    """Print the comment that the command line asks for, and return the exit code."""
    given = arguments()

    from scripts.review.checkouts import find, names
    from scripts.review.comment import DocumentError, comment, read_preflight

    known = names(given.before, given.after)
    if given.environment not in known:
        there = ", ".join(known) or "none"
        print(f"no such file in config/ of either checkout: {given.environment}; there is {there}", file=sys.stderr)
        return UNUSABLE
    try:
        preflight = read_preflight(given.preflight) if given.preflight else None
    except DocumentError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    before, after = (find(checkout, given.environment) for checkout in (given.before, given.after))
    print(comment(given.environment, before, after, preflight), end="")
    return 0
