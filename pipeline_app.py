"""Entry point of the CDK for the pipeline that deploys: reads pipeline.yaml; `./ultracluster pipeline deploy`."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk

from config import files, pipeline
from config.pipeline import Pipeline
from config.settings import Settings, SettingsError
from scripts.check import permissions
from stacks.pipeline_access_stack import PipelineAccessStack
from stacks.pipeline_stack import PipelineStack

ROOT = Path(__file__).parent


def compose(app: cdk.App, settings: Pipeline, deployments: Mapping[str, Settings], *, cdk_version: str) -> None:
    """Add to an app what GitHub needs to deploy and, if there is a connection, the pipeline inside AWS.

    Deployments are by the name of their stage. The pipeline's own stacks use the bootstrap of the first.
    """
    env = cdk.Environment(account=settings.account, region=settings.region)
    qualifier = deployments[settings.stages[0].name].bootstrap.qualifier
    PipelineAccessStack(
        app,
        "ultracluster-ci-access",
        pipeline=settings,
        deployments=deployments,
        reviewing=permissions.reviewing(),
        deploying=permissions.deploying(),
        env=env,
        synthesizer=cdk.DefaultStackSynthesizer(qualifier=qualifier),
        description=f"Trn1 UltraCluster: roles for the workflows of {settings.repository}",
    )
    if settings.connection_arn is not None:
        PipelineStack(
            app,
            "ultracluster-ci-pipeline",
            pipeline=settings,
            connection_arn=settings.connection_arn,
            deployments=deployments,
            reviewing=permissions.reviewing(),
            checking=permissions.checking(),
            cdk_version=cdk_version,
            env=env,
            synthesizer=cdk.DefaultStackSynthesizer(qualifier=qualifier),
            description=f"Trn1 UltraCluster: deploys {settings.branch} of {settings.repository}",
        )


def main() -> None:
    """Synthesize the stacks of the pipeline."""
    app = cdk.App(analytics_reporting=False)
    folder = files.folder(os.environ)
    try:
        settings = pipeline.load(ROOT / "pipeline.yaml", folder)
        deployments = {stage.name: stage.settings(folder) for stage in settings.stages}
    except SettingsError as error:
        sys.exit(str(error))
    if settings.missing:
        sys.exit("\n".join(f"pipeline.yaml: {each}" for each in settings.missing))
    packages = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    compose(app, settings, deployments, cdk_version=packages["dependencies"]["aws-cdk"])
    app.synth()


if __name__ == "__main__":
    main()
