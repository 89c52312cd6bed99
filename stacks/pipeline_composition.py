"""How the stacks of the pipeline are put together; its app and the tests share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk

from config.pipeline import Pipeline
from config.settings import Settings
from stacks.pipeline_access_stack import PipelineAccessStack
from stacks.pipeline_stack import PipelineStack


def compose_pipeline(
    app: cdk.App,
    pipeline: Pipeline,
    deployments: Mapping[str, Settings],
    *,
    reviewing: Mapping[str, Any],
    checking: Mapping[str, Any],
    deploying: Mapping[str, Any],
    cdk_version: str,
) -> None:
    """Add to an app what GitHub needs to deploy and, if there is a connection, the pipeline inside AWS.

    Args:
        app: Where to.
        pipeline: Settings with nothing missing.
        deployments: What each stage deploys, by its name. The pipeline's own stacks use the bootstrap of the first.
        reviewing: IAM policy of what programs read in pull requests, and before a deployment.
        checking: The same after a deployment inside AWS.
        deploying: IAM policy of what they read when they deploy, destroy and diagnose.
        cdk_version: Version of the CDK command line that is pinned.
    """
    env = cdk.Environment(account=pipeline.account, region=pipeline.region)
    qualifier = deployments[pipeline.stages[0].name].bootstrap.qualifier
    PipelineAccessStack(
        app,
        "ultracluster-ci-access",
        pipeline=pipeline,
        deployments=deployments,
        reviewing=reviewing,
        deploying=deploying,
        env=env,
        synthesizer=cdk.DefaultStackSynthesizer(qualifier=qualifier),
        description=f"Trn1 UltraCluster: roles for the workflows of {pipeline.repository}",
    )
    if pipeline.connection_arn is not None:
        PipelineStack(
            app,
            "ultracluster-ci-pipeline",
            pipeline=pipeline,
            connection_arn=pipeline.connection_arn,
            deployments=deployments,
            reviewing=reviewing,
            checking=checking,
            cdk_version=cdk_version,
            env=env,
            synthesizer=cdk.DefaultStackSynthesizer(qualifier=qualifier),
            description=f"Trn1 UltraCluster: deploys {pipeline.branch} of {pipeline.repository}",
        )
