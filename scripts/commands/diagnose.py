"""Find out why a deployment failed, or what keeps its cluster from running jobs, and what to do.

It follows the newest operation that failed through the nested stacks and the cluster's own stack, also if that is
deleted, to the first failure, and reads the logs that belong to it. Of a running cluster it looks at the fleet, at the
head node and at what Slurm answers, and reads the logs of the last hours. What blocks now comes first, what is over
last. It says what was read, from when to when, and what was not. Nothing is changed.

Exit code 0: no known cause still holds, which is no proof that all is well; 1: a cause, or a failure of unknown cause,
or a permission to read is missing; 2: arguments, settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.command(
    __doc__,
    ("diagnose research", "the cause, its evidence, what to do"),
    ("diagnose research -o json | jq .causes[0]", "the same for programs"),
)
@argument.deployed
@options.output("json", "markdown")
def command(*, deployment: Deployment, output: str) -> int:
    """Print the diagnosis, and return the exit code."""
    from scripts.watch.diagnose.diagnose import diagnose

    diagnosis = diagnose(deployment)
    terminal.show(diagnosis, output)
    if not diagnosis.failed:
        terminal.suggest(f"status {deployment.name}")
    elif diagnosis.operation:
        terminal.suggest(f"plan {deployment.name}", "once the cause is removed")
    return ExitCode.FAILED if diagnosis.failed else ExitCode.DONE
