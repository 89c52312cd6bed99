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

    pinned = versions()
    if output == "json":
        print(pinned.to_json())
    else:
        shown = pinned.model_dump(by_alias=True)
        width = max(map(len, shown))
        lines = "\n".join(f"{name:{width}}  {version}" for name, version in shown.items())
        terminal.view(output).print(lines, soft_wrap=True)
    return ExitCode.DONE
