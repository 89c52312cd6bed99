"""The stacks of a pipeline, synthesized as pipeline_app.py does it, and what GitHub's tokens say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk

import pipeline_app
from config.pipeline import Pipeline, load
from config.settings import Settings
from tests.stacks.small_app import new_app

FORK = Path(__file__).parents[1] / "fork"
ACCOUNT = "123456789012"
REPOSITORY = "Acme/trn1"
CONNECTION = f"arn:aws:codeconnections:us-west-2:{ACCOUNT}:connection/0123"
ACCESS_STACK = "ultracluster-ci-access"
PIPELINE_STACK = "ultracluster-ci-pipeline"
CDK_VERSION = "2.1.0"


def pipeline(**values: object) -> Pipeline:
    """Return the pipeline of a fork that also has one inside AWS."""
    fork = load(FORK / "pipeline.yaml").model_dump()
    return Pipeline.model_validate({**fork, "connection_arn": CONNECTION, **values})


def deployments(settings: Pipeline) -> dict[str, Settings]:
    return {stage.name: stage.settings(FORK / "config") for stage in settings.stages}


def compose(app: cdk.App, settings: Pipeline, stages: dict[str, Settings] | None = None) -> None:
    pipeline_app.compose(app, settings, stages or deployments(settings), cdk_version=CDK_VERSION)


def synthesize(settings: Pipeline, outdir: Path, stages: dict[str, Settings] | None = None) -> Path:
    app = new_app(outdir)
    compose(app, settings, stages)
    app.synth()
    return outdir


@dataclass(frozen=True)
class Job:
    """A job of a workflow on GitHub.

    Attributes:
        repository: Where the workflow runs; that of a fork is the fork.
        environment: Its GitHub environment.
        ref: What it checked out.
        event: What set it off.
        immutable: Whether the repository was made after 15 July 2026, so that the subject has ids.
        audience: Whom the token is for.
    """

    repository: str = REPOSITORY
    environment: str | None = None
    ref: str = "refs/heads/main"
    event: str = "push"
    immutable: bool = True
    audience: str = "sts.amazonaws.com"

    @property
    def claims(self) -> dict[str, str]:
        """What its token says (https://docs.github.com/en/actions/reference/security/oidc)."""
        owner, name = self.repository.split("/")
        prefix = f"{owner}@123456/{name}@456789" if self.immutable else self.repository
        context = "pull_request" if self.event == "pull_request" else f"ref:{self.ref}"
        if self.environment is not None:
            context = f"environment:{self.environment}"
        claims = {"aud": self.audience, "sub": f"repo:{prefix}:{context}", "ref": self.ref, "event_name": self.event}
        environment = {} if self.environment is None else {"environment": self.environment}
        return {**claims, **environment, "repository": self.repository}


def pull_request(**values: Any) -> Job:
    return Job(**{"ref": "refs/pull/7/merge", "event": "pull_request", **values})
