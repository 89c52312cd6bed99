"""The roles of GitHub's workflows: the CDK on their app, and what workflows read of them."""

from __future__ import annotations

import shutil

from config.pipeline import PATH, READ, READ_ROLE, Pipeline, deploy_role
from scripts import options
from scripts.errors import UnusableError
from scripts.plan.cdk import run

_APP = ("--app", "python3 pipeline_app.py", "--output", "build/pipeline")


def synthesize() -> int:
    """Write the templates of the roles to build/pipeline, and return the CDK's exit code."""
    shutil.rmtree(options.BUILD / "pipeline", ignore_errors=True)
    return cdk("synth", "--quiet")


def cdk(*words: str) -> int:
    """Run the CDK on the app of the roles, and return its exit code."""
    return run(*_APP, *words)


def outputs_of(pipeline: Pipeline, stage: str) -> dict[str, str]:
    """Return the outputs for a stage, or for the role of pull requests.

    Raises:
        UnusableError: There is no such stage.
    """
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
