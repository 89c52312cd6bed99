"""Write a page on what would be deployed, for those who have to approve it: drawing, permissions, costs, findings.

It has the architecture, all resources, who may do what to which resource, who may reach whom on which port, the
estimate, what ParallelCluster's validators and cdk-nag say, and the reasons for what is accepted. It is one file, which
loads nothing. Needs no account.

Exit code 0: written; 1: written, and ParallelCluster rejects the deployment, or cdk-nag has an open error; 2: the
settings cannot be used.
"""

from __future__ import annotations

from pathlib import Path

import click

from scripts.core import options, terminal
from scripts.core.errors import ExitCode
from scripts.core.text import echo


@options.command(
    __doc__,
    ("review research", "build/review-research.html, to open in a browser"),
    ("review research -o markdown", "the same for a comment on GitHub"),
)
@options.deployment_name
@click.option(
    "--file", type=click.Path(path_type=Path), help="Where to, in place of an earlier page; default: in build/."
)
@options.output("markdown")
def command(*, name: str, file: Path | None, output: str) -> int:
    """Write the page, or print Markdown, and return the exit code."""
    if file and output != "text":
        raise click.UsageError("--file is for the page, not for --output markdown.")

    from scripts.check import targets
    from scripts.check.review.deployment import review
    from scripts.check.review.page import markdown, page

    if file:
        targets.check_page(file, "--file")  # before a review of minutes
    elif output == "text":
        options.check_build()
    result = review(name)
    if output == "markdown":
        echo(markdown(result), end="")
    else:
        path = file or options.BUILD / f"review-{name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(result), encoding="utf-8")
        echo("\n".join([*result.lead, str(path)]))
        terminal.suggest(f"preflight {name}")
    return ExitCode.DONE if result.ok else ExitCode.FAILED
