"""The stacks of a pipeline, synthesized as pipeline_app.py does it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

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
ISSUER = "token.actions.githubusercontent.com"


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


def lets_in(policy: Mapping[str, Any], claims: Mapping[str, str]) -> bool:
    """Tell whether a role's trust policy lets a token of GitHub in, as STS decides it.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    [statement] = policy["Statement"]
    assert statement["Condition"].keys() == {"StringEquals", "StringLike"}
    subjects = statement["Condition"]["StringLike"][f"{ISSUER}:sub"]
    exact = statement["Condition"]["StringEquals"].items()
    is_known = any(fnmatchcase(claims.get("sub", ""), subject) for subject in subjects)
    return is_known and all(claims.get(key.removeprefix(f"{ISSUER}:")) == value for key, value in exact)
