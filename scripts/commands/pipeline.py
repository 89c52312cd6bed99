"""Deploy the roles of GitHub's workflows, as pipeline.yaml says, and do the workflows' own work."""

from __future__ import annotations

from collections.abc import Sequence

import click

from scripts.core import options, terminal
from scripts.core.errors import ExitCode, UnusableError
from scripts.core.text import echo

_APPROVAL = "--require-approval"


@click.group("pipeline", cls=options.Group, help=__doc__)
def command() -> None:
    """Group what workflows and their owner need."""


@options.subcommand(
    command,
    """Write the templates of pipeline.yaml to build/pipeline, for review.

    Programs read STACK.template.json there.

    Exit code: that of `cdk synth`.
    """,
    ("pipeline synth", "before `pipeline deploy`"),
)
def synth() -> int:
    """Synthesize, and return the exit code."""
    options.check_build()

    from scripts.change.pipeline import synthesize

    code = synthesize()
    if code == ExitCode.DONE:
        terminal.suggest("pipeline deploy", "with credentials of the account, once build/pipeline is reviewed")
    return code


@options.changing
@options.subcommand(
    command,
    """Deploy the roles of GitHub's workflows, after a question. Words after -- go to `cdk deploy`.

    The CDK shows what changes of permissions, and asks. With --yes it does not ask: review build/pipeline before, which
    `pipeline synth` writes.

    Programs read the roles from `pipeline outputs`.

    Exit code: that of `cdk deploy`; before that 1: somebody else's operation on the stacks is in progress; after it 1:
    somebody else has changed them meanwhile.
    """,
    ("pipeline deploy", "once, and after changes of pipeline.yaml"),
    ("pipeline deploy --yes", "without a terminal, after a review of what `pipeline synth` writes"),
    further="of_cdk",
)
@options.yes
def deploy(*, of_cdk: Sequence[str], yes: bool) -> int:
    """Deploy, and return the exit code."""
    terminal.require_answers(given=yes or any(each.startswith(_APPROVAL) for each in of_cdk))
    options.check_build()

    from scripts.change import pipeline
    from scripts.change.deploy import report

    code, conflicts = pipeline.deploy(*((_APPROVAL, "never") if yes else ()), *of_cdk)
    report(conflicts)
    if code == ExitCode.DONE:
        terminal.suggest("pipeline outputs read", "what a workflow gets")
    return code


@options.subcommand(
    command,
    """Print the role of a stage as lines of outputs: role, region, deployment, approval and ready.

    STAGE is one of pipeline.yaml; `read` is the role of pull requests. `ready` is false, and a notice says why, as long
    as pipeline.yaml names no repository and account: pull requests are reviewed without AWS then, and nothing is
    deployed.

    Exit code 0: printed; 2: the arguments or settings cannot be used.
    """,
    ("pipeline outputs dev >> $GITHUB_OUTPUT", "in a workflow"),
)
@click.argument("stage")
@click.option("--confirm", metavar="NAME", help="Only if this is the name of the stage's deployment.")
def outputs(*, stage: str, confirm: str | None) -> int:
    """Print the outputs, and a notice of what is missing, and return the exit code."""
    from config.pipeline import PATH, load
    from scripts.change.pipeline import outputs_of

    pipeline = load(folder=options.CONFIG)
    lines = outputs_of(pipeline, stage)
    if confirm is not None:
        name = options.settings_of(lines["deployment"]).name
        if confirm != name:
            raise UnusableError(f"--confirm: got {confirm!r}; allowed: {name!r}, the name of the deployment")
    echo("\n".join(f"{name}={value}" for name, value in lines.items()))
    for each in pipeline.missing:
        echo(f"::notice file={PATH.name}::{each}", err=True, to_runner=True)
    return ExitCode.DONE


@options.subcommand(
    command,
    """Write the comments on a pull request to build/review, and its summary to build/review-summary.md.

    Settings and golden templates of this checkout are compared with those of the commit BASE, offline. What
    `preflight DEPLOYMENT -o json` has written to build/preflight-DEPLOYMENT.json goes into the comments.

    Exit code 0: written; 2: there is no such commit, or a file of preflight is damaged.
    """,
    ("pipeline review main", "what a branch changes"),
)
@click.argument("base")
def review(*, base: str) -> int:
    """Write comments and summary, and return the exit code."""
    options.check_build()

    from scripts.check.review.review import write

    changed = write(base)
    for path in (*(options.BUILD / "review" / f"{name}.md" for name in changed), options.BUILD / "review-summary.md"):
        echo(str(path))
    if changed:
        terminal.suggest(f"plan {changed[0]}", "what it would do to what is running; comments are in build/review")
    return ExitCode.DONE
