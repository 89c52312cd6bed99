"""The stacks of a pipeline, synthesized as pipeline_app.py does it."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk

import pipeline_app
from config.pipeline import Pipeline, load
from config.settings import Settings
from tests.stacks.small_app import new_app

FORK = Path(__file__).parents[1] / "fork"
ACCOUNT = "123456789012"
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
