"""Deploy the roles of GitHub's workflows, as pipeline.yaml says, and do the workflows' own work."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts import options, terminal
from scripts.errors import ExitCode, UnusableError

if TYPE_CHECKING:
    from config.pipeline import Pipeline

_APP = ("--app", f"{options.ROOT / '.venv/bin/python'} pipeline_app.py", "--output", "build/pipeline")


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
    shutil.rmtree(options.BUILD / "pipeline", ignore_errors=True)
    return _cdk("synth", "--quiet")


@options.subcommand(
    command,
    """Deploy the roles of GitHub's workflows, after a question. Words after -- go to `cdk deploy`.

    Programs read the roles from `pipeline outputs`.

    Exit code: that of `cdk deploy`.
    """,
    ("pipeline deploy", "once, and after changes of pipeline.yaml"),
    further="of_cdk",
)
def deploy(*, of_cdk: Sequence[str]) -> int:
    """Deploy, and return the exit code."""
    code = _cdk("deploy", "--all", *of_cdk)
    if code == ExitCode.DONE:
        terminal.suggest("pipeline outputs read", "what a workflow gets")
    return code


def _cdk(*words: str) -> int:
    from scripts.plan import cdk

    line = cdk.command(*_APP, *words)
    return subprocess.run(line, cwd=options.ROOT, env=cdk.environment(), check=False).returncode


@options.subcommand(
    command,
    """Print the role of a stage as lines of outputs: role, region, environment, approval and ready.

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

    pipeline = load()
    lines = outputs_of(pipeline, stage)
    if confirm is not None:
        name = options.settings_of(lines["environment"]).name
        if confirm != name:
            raise UnusableError(f"--confirm: got {confirm!r}; allowed: {name!r}, the name of the deployment")
    print(*(f"{name}={value}" for name, value in lines.items()), sep="\n")
    for each in pipeline.missing:
        click.echo(f"::notice file={PATH.name}::{each}", err=True)
    return ExitCode.DONE


def outputs_of(pipeline: Pipeline, stage: str) -> dict[str, str]:
    """Return the outputs for a stage, or for the role of pull requests.

    Raises:
        UnusableError: There is no such stage.
    """
    from config.pipeline import PATH, READ, READ_ROLE, deploy_role

    stages = {each.name: each for each in pipeline.stages}
    if stage not in (READ, *stages):
        raise UnusableError(f"STAGE: got {stage}; allowed: {READ}, or a stage of {PATH.name}: {', '.join(stages)}")
    chosen, ready = stages.get(stage), not pipeline.missing
    role = READ_ROLE if stage == READ else deploy_role(stage)
    return {
        "role": f"arn:aws:iam::{pipeline.account}:role/{role}" if ready else "",
        "region": pipeline.region,
        "environment": chosen.environment if chosen else "",
        "approval": str(chosen is not None and chosen.approval).lower(),
        "ready": str(ready).lower(),
    }


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
    from scripts.review.checkouts import find, names
    from scripts.review.comment import comment, read_preflight

    before, comments = options.BUILD / "base", options.BUILD / "review"
    for directory in (before, comments):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    _extract(base, before)
    for name in names(before, options.ROOT):
        report = read_preflight(options.BUILD / f"preflight-{name}.json")
        text = comment(name, find(before, name), find(options.ROOT, name), report)
        (comments / f"{name}.md").write_text(text, encoding="utf-8")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(comments.glob("*.md"))}
    (options.BUILD / "review-summary.md").write_text(f"{summary(texts)}\n", encoding="utf-8")
    return ExitCode.DONE


def _extract(commit: str, directory: Path) -> None:
    """Write settings and golden templates of a commit to a directory."""
    archive = subprocess.run(
        ["git", "archive", commit, "config", "tests/snapshots"], cwd=options.ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        raise UnusableError(f"BASE: got {commit}; allowed: a commit. {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(directory, filter="data")


def summary(comments: Mapping[str, str]) -> str:
    """Return comments, by the names of their deployments, as one text: those on changes, the others in one line."""
    from scripts.review.comment import UNCHANGED

    changed = [text for text in comments.values() if UNCHANGED not in text]
    unchanged = [f"`{name}`" for name, text in comments.items() if UNCHANGED in text]
    return "\n".join([*changed, *([f"Nothing changes: {', '.join(unchanged)}."] if unchanged else [])])
