"""Deploy: synthesize the settings, show what would change, ask, and let the CDK deploy exactly that.

A stack that could not be rolled back (UPDATE_ROLLBACK_FAILED) is led out first: the command says which configuration
is in force, and continues the roll-back if you agree. With --yes it does that only where nothing that runs is changed:
ParallelCluster's stack has gone back already, or the update never reached it.

An operation on the deployment's stacks that is in progress is followed to its end first if it is your own, from this
checkout, or that of an earlier job of the same pipeline. The command is refused if somebody else's is in progress, or
somebody else has deployed since the plan was made. When the CDK has ended, what is deployed is compared with what was
planned. That holds for what others do with the console, `aws` or `cdk`, too; but nothing refuses theirs.

Words after -- go to `cdk deploy`: --verbose, --debug, --ci, --no-color, --progress bar|events, --concurrency STACKS.

What the CDK prints is for people. With -o json all of that goes to standard error, and the result ends the command on
standard output: stacks, their status and outputs, and what blocks the deployment. `plan -o json` has what would change.
The stacks' outputs are in build/outputs-DEPLOYMENT.json, too.

Exit code: the CDK's own once it was started, but 1 where that is 0 and a stack is not as planned; before that 1: there
is a blocker, somebody else deploys, what was followed failed, or the answer was no; 2: the settings or arguments cannot
be used, AWS did not answer, or nobody can be asked; 130: Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ENDED
from scripts.core.text import echo

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

_OF_CDK = {
    "--verbose": 0, "-v": 0, "--debug": 0, "--ci": 0, "--no-color": 0, "--progress": 1, "--concurrency": 1,
}  # fmt: skip
"""Arguments of the CDK that change neither what is deployed nor where, with how many values they take.

https://docs.aws.amazon.com/cdk/v2/guide/ref-cli-cmd-deploy.html
"""


@options.changing
@options.command(
    __doc__,
    ("deploy research", "the plan, a question, the deployment"),
    ("deploy research --yes", "in a pipeline"),
    ("deploy research --yes -o json | jq .stacks[].outputs", "the outputs, for programs"),
    ("deploy research -- --concurrency 4", "up to four stacks at once"),
    further="of_cdk",
)
@argument.deployment
@click.option("--accept-replacement", is_flag=True, help="Allow to replace resources with data or dependents.")
@options.yes
@options.output("json", "markdown")
def command(*, deployment: Deployment, of_cdk: Sequence[str], accept_replacement: bool, yes: bool, output: str) -> int:
    """Deploy, and return the exit code."""
    from scripts.change.deploy import run, with_stacks

    _check(of_cdk)
    options.check_build()
    terminal.require_answers(given=yes, output=output)
    console = terminal.console(to_stderr=output != "text")
    result = run(deployment, of_cdk, console, accepted=accept_replacement, asks=not yes)
    is_ended = result.exit_code in ENDED
    if output != "text" and not is_ended:
        terminal.show(with_stacks(result, deployment), output)
    if result.outcome == "deployed":
        terminal.suggest(f"status {deployment.name}")
    if result.outcome == "failed" and not is_ended:
        hint = f"./ultracluster diagnose {result.deployment}; the same command deploys the rest"
        for way in result.ways_out:
            echo(f"\n{way.sentence}.", err=True)
            hint = f"./ultracluster diagnose {result.deployment}; {way.steps}"
        if result.conflicts:
            hint = "agree with them; the same command plans again"
        echo(f"\nhint: {hint}", err=True)
    return result.exit_code


def _check(of_cdk: Sequence[str]) -> None:
    """Reject arguments of the CDK that could change what is deployed."""
    words = list(of_cdk)
    while words:
        word, _, value = words.pop(0).partition("=")
        if word not in _OF_CDK:
            raise click.UsageError(f"after --: got {word}; allowed: {', '.join(_OF_CDK)}")
        if _OF_CDK[word] and not value:
            if not words:
                raise click.UsageError(f"after --: {word} needs a value.")
            words.pop(0)
