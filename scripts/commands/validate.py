"""Validate settings by ParallelCluster's own schema and validators, without an AWS account.

Each is synthesized, taken out of its template with every reference resolved to a resource in an emulated AWS, and
handed to the pinned aws-parallelcluster as AWS's provider would do it.

Exit code 0: all are valid; 1: some are not; 2: some could not be examined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from scripts import options, terminal

if TYPE_CHECKING:
    from scripts.validation import ValidationOutcome


@options.command(
    __doc__,
    ("validate research", "one deployment"),
    ("validate", "all of config/"),
)
@click.argument("names", metavar="[DEPLOYMENT]...", type=options.DeploymentName(), nargs=-1, envvar=options.VARIABLE)
@options.output("json", "markdown")
def command(*, names: Sequence[str], output: str) -> int:
    """Examine deployments, and return the exit code. JSON has one object per line."""
    from scripts.validation import outcomes

    worst, console = 0, terminal.view(output)
    for outcome in outcomes(names or options.deployments()):
        if output == "json":
            print(outcome.model_dump_json(), flush=True)
        console.print(as_text(outcome), markup=False, soft_wrap=True)
        worst = max(worst, outcome.code)
    if worst == 0 and len(names) == 1:
        terminal.suggest(f"preflight {names[0]}")
    return worst


def as_text(outcome: ValidationOutcome) -> str:
    """Return an outcome for people."""
    if outcome.report is None:
        return f"{outcome.environment}: NOT EXAMINED\n{_indented(outcome.error)}\n"
    report = outcome.report
    queues = f"{report.queues} queue{'s' if report.queues != 1 else ''}"
    lines = [
        f"{outcome.environment}: {'REJECTED' if report.problems else 'accepted'}",
        f"  cluster {report.cluster_name}, {queues}; schema and all validators, with real types and as strings",
    ]
    for message in report.messages:
        lines.append(f"  {message.level:7} {message.validator}: {message.text}")
        if message.level == "WARNING":
            lines.append(f"          {report.verdicts[message.validator].explanation}")
    lines += [f"  FAIL    {fault}" for fault in report.problems]
    return "\n".join(lines) + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
