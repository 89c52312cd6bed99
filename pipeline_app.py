"""Entry point of the CDK for the pipeline that deploys: reads pipeline.yaml; `make pipeline-deploy`."""

import json
import sys
from pathlib import Path

import aws_cdk as cdk

from config import pipeline
from config.settings import SettingsError
from scripts import permissions
from stacks.pipeline_composition import compose_pipeline

ROOT = Path(__file__).parent


def main() -> None:
    """Synthesize the stacks of the pipeline."""
    app = cdk.App(analytics_reporting=False)
    try:
        settings = pipeline.load(ROOT / "pipeline.yaml")
        deployments = {stage.name: stage.settings(ROOT / "config") for stage in settings.stages}
    except SettingsError as error:
        sys.exit(str(error))
    if settings.missing:
        sys.exit("\n".join(f"pipeline.yaml: {each}" for each in settings.missing))
    cdk_version = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]["aws-cdk"]
    compose_pipeline(
        app,
        settings,
        deployments,
        reviewing=permissions.reviewing(),
        checking=permissions.checking(),
        deploying=permissions.deploying(),
        cdk_version=cdk_version,
    )
    app.synth()


if __name__ == "__main__":
    main()
