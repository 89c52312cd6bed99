"""Validate settings by ParallelCluster's own schema and validators, without an AWS account.

Each is synthesized, taken out of its template with every reference resolved to a resource in an emulated AWS, and
handed to the pinned aws-parallelcluster as AWS's provider would do it. What settings name as existing is made there,
also in the network of an earlier deployment.

Where this computer can run nodes (docs/explanation/rehearsal.md), Slurm's controller is started on custom settings of
Slurm, which takes a second; the first time a Debian of 400 MB is made. The result says which version has judged them,
and what it could not judge.

Exit code 0: all are valid; 1: some are not; 2: some could not be examined.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from scripts.core import options, terminal


@options.command(
    __doc__,
    ("validate research", "one deployment"),
    ("validate", "all of config/"),
)
@click.argument("names", metavar="[DEPLOYMENT]...", type=options.DeploymentName(), nargs=-1, envvar=options.VARIABLE)
@options.output("json", "markdown")
def command(*, names: Sequence[str], output: str) -> int:
    """Examine deployments, and return the exit code. JSON has one object per line."""
    from scripts.check.validation import outcomes

    worst, view = 0, terminal.view(output)
    chosen = names or options.deployments()
    for outcome in outcomes(chosen):
        if output == "json":
            print(outcome.to_line(), flush=True)
        view.show(outcome.blocks())
        worst = max(worst, outcome.code)
    if worst == 0 and output == "text":
        terminal.suggest(f"preflight {chosen[0]}", "" if len(chosen) == 1 else "then the others")
    return worst
