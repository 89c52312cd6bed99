"""Print the versions of this project, and of what it pins and runs.

Exit code 0.
"""

from __future__ import annotations

from scripts.core import options, terminal
from scripts.core.errors import ExitCode


@options.command(
    __doc__,
    ("version", "for a report of a problem"),
    ("version -o json", "the same for programs"),
)
@options.output("json", "markdown")
def command(*, output: str) -> int:
    """Print the versions, and return the exit code."""
    from scripts.core.versions import versions

    terminal.show(versions(), output)
    return ExitCode.DONE
