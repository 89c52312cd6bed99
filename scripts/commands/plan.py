"""Show what a deployment would do to what is running, without doing it.

Stacks: a CloudFormation change set, which is deleted again, or the stored templates. Cluster: ParallelCluster's own
update check. With --against two sets of templates are compared, offline.

Exit code 0: nothing blocks the deployment; 1: something does; 2: the settings or arguments cannot be used, or AWS did
not answer; 130: Ctrl-C.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

_DIRECTORY = click.Path(path_type=Path)


@options.command(
    __doc__,
    ("plan research", "what would be added, changed, replaced, removed"),
    ("plan research --diff", "and each changed line, by the CDK"),
    ("plan research -o markdown", "a comment for a pull request"),
    ("plan research --against build/base/cdk.out", "compared with other templates, offline"),
)
@argument.deployment
@click.option("--against", type=_DIRECTORY, help="Compare with this assembly, or these templates, offline.")
@click.option("--assembly", type=_DIRECTORY, help="What would be deployed; default: DEPLOYMENT is synthesized.")
@click.option("--accept-replacement", is_flag=True, help="Allow to replace resources with data or dependents.")
@click.option("--diff", is_flag=True, help="Print the CDK's own diff first.")
@options.output("json", "markdown")
def command(
    *,
    deployment: Deployment,
    against: Path | None,
    assembly: Path | None,
    accept_replacement: bool,
    diff: bool,
    output: str,
) -> int:
    """Print the plan, and return the exit code."""
    if diff and (against or output != "text"):
        raise click.UsageError("--diff compares with the account, as text.")

    from scripts.check.plan.plan import make_plan

    name = deployment.name
    if against is None and assembly is None:
        deployment.account.ask("sts", "get_caller_identity")  # bad credentials end it before a synthesis of seconds
    plan = make_plan(name, assembly, against, accepted=accept_replacement, diff=diff)
    terminal.show(plan, output)
    if against is None and plan.ok:
        terminal.suggest(f"{'status' if plan.empty else 'deploy'} {name}")
    elif against is None:
        terminal.suggest(f"plan {name}", "again, once what blocks it is fixed")
    return ExitCode.DONE if plan.ok else ExitCode.FAILED
