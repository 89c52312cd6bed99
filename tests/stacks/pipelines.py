"""The stacks of a pipeline, synthesized as pipeline_app.py does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def lets_in(policy: Mapping[str, Any], claims: Mapping[str, str], provider: object) -> bool:
    """Tell whether a role's trust policy lets a token of GitHub in, as STS decides it.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html

    Args:
        policy: The trust policy.
        claims: Of the token.
        provider: The account's provider for such tokens: its ARN, or in a template what refers to it.
    """
    effects = {each["Effect"] for each in policy["Statement"] if _is_about(each, claims, provider)}
    return effects == {"Allow"}


def _is_about(statement: Mapping[str, Any], claims: Mapping[str, str], provider: object) -> bool:
    return (
        "sts:AssumeRoleWithWebIdentity" in _listed(statement["Action"])
        and provider in _listed(statement["Principal"].get("Federated", []))
        and all(_holds(operator, values, claims) for operator, values in statement["Condition"].items())
    )


def _holds(operator: str, values: Mapping[str, Any], claims: Mapping[str, str]) -> bool:
    """Tell whether a condition holds; of a claim that is absent none does.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    comparisons: dict[str, Callable[[str, str], bool]] = {"StringEquals": str.__eq__, "StringLike": fnmatchcase}
    fits = comparisons[operator]
    given = {key: claims.get(key.removeprefix(f"{ISSUER}:")) for key in values}
    return all(
        (claim := given[key]) is not None and any(fits(claim, each) for each in _listed(expected))
        for key, expected in values.items()
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
