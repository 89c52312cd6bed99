"""The pipeline inside AWS, for those who may not deploy from GitHub's runners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import Duration, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from config.pipeline import Pipeline, Stage
from config.settings import Settings
from stacks.composition import compose
from stacks.operating_permissions import WILDCARDS, ask_head_node
from ultracluster.acknowledgements import acknowledge, acknowledge_wildcards
from ultracluster.domain.roles import RolesSpec
from ultracluster.roles import apply_roles

_RUNTIMES = {"python": "3.12", "nodejs": "24"}
"""Of the image that CodeBuild calls standard:8.0, Ubuntu 24.04. The CDK's own steps install its command line by npm.

https://github.com/aws/aws-codebuild-docker-images/blob/master/ubuntu/standard/8.0/runtimes.yml
"""
_BUILD_LIMIT = Duration.minutes(30)
"""What is built here takes minutes. Stacks are made by CloudFormation's own actions, which wait by themselves."""
_WILDCARDS = {
    "Action::s3:": "the CDK grants reading and writing by the beginnings of actions, on the pipeline's own bucket",
    "Resource::<Artifacts": "every file in the pipeline's own bucket",
    "Resource::arn:*:iam::": "only roles that `cdk bootstrap` tagged for publishing files and for deployment",
    "Resource::arn:aws:codebuild:": "reports of the pipeline's own projects",
    "Resource::arn:aws:logs:": "logs of the pipeline's own projects",
}


class PipelineStack(cdk.Stack):
    """A pipeline that updates itself, then deploys and checks stage after stage."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        pipeline: Pipeline,
        connection_arn: str,
        deployments: Mapping[str, Settings],
        reviewing: Mapping[str, Any],
        checking: Mapping[str, Any],
        cdk_version: str,
        **stack_options: Any,
    ) -> None:
        super().__init__(scope, construct_id, **stack_options)
        apply_roles(self, RolesSpec(permissions_boundary_arn=pipeline.permissions_boundary_arn))
        self._reviewing = reviewing
        self._checking = checking
        self._source = pipelines.CodePipelineSource.connection(
            pipeline.repository, pipeline.branch, connection_arn=connection_arn
        )
        made = pipelines.CodePipeline(
            self,
            "Pipeline",
            artifact_bucket=self._bucket(),
            pipeline_type=codepipeline.PipelineType.V2,
            synth=pipelines.ShellStep(
                "Synth",
                input=self._source,
                commands=["./ultracluster pipeline synth"],
                primary_output_directory="build/pipeline",
            ),
            cli_version=cdk_version,
            publish_assets_in_parallel=False,
            code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(build_image=codebuild.LinuxBuildImage.STANDARD_8_0),
                partial_build_spec=codebuild.BuildSpec.from_object(
                    {"phases": {"install": {"runtime-versions": _RUNTIMES}}}
                ),
                timeout=_BUILD_LIMIT,
            ),
        )
        for stage in pipeline.stages:
            settings = deployments[stage.name]
            # It names no account: stacks are those of the pipeline's own, with their names and templates as `make
            # deploy` has them, but for tags Name, which start with the name of the stage.
            deployment = cdk.Stage(scope, stage.name)
            compose(deployment, settings)
            made.add_stage(
                deployment,
                pre=self._before(stage),
                post=[self._check(stage, settings)],
            )
        made.build_pipeline()
        self._acknowledge()

    def _bucket(self) -> s3.Bucket:
        """Return the bucket that hands files from step to step. An approval may take 7 days, nothing takes longer."""
        bucket = s3.Bucket(
            self,
            "Artifacts",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(30))],
        )
        acknowledge(bucket, "S1", "templates and the repository's own files, for a month")
        return bucket

    def _before(self, stage: Stage) -> list[pipelines.Step]:
        """Return the plan, which fails on a blocker, and the approval by someone who has read it."""
        changes = pipelines.CodeBuildStep(
            "Changes",
            input=self._source,
            commands=[f"./ultracluster plan {stage.deployment}"],
            role_policy_statements=_statements(self._reviewing),
        )
        if not stage.approval:
            return [changes]
        approve = pipelines.ManualApprovalStep("Approve", comment="Read the log of Changes first")
        approve.add_step_dependency(changes)
        return [changes, approve]

    def _check(self, stage: Stage, settings: Settings) -> pipelines.CodeBuildStep:
        """Return the step after a deployment: it protects stacks, which CodePipeline does not, and checks them.

        https://github.com/aws/aws-cdk/issues/17871
        """
        protected = [settings.stack_name(part) for part in settings.parts if part in settings.termination_protection]
        protect = "aws cloudformation update-termination-protection --enable-termination-protection --stack-name"
        statements = [*_statements(self._checking), *ask_head_node(self, settings)]
        if protected:
            arns = [
                self.format_arn(service="cloudformation", resource="stack", resource_name=f"{name}/*")
                for name in protected
            ]
            action = "cloudformation:UpdateTerminationProtection"
            statements.append(iam.PolicyStatement(actions=[action], resources=arns))
        return pipelines.CodeBuildStep(
            "Check",
            input=self._source,
            commands=[*(f"{protect} {name}" for name in protected), f"./ultracluster status {stage.deployment}"],
            role_policy_statements=statements,
        )

    def _acknowledge(self) -> None:
        """Give the reasons for what AwsSolutions finds, most of it in what CDK Pipelines makes by itself."""
        acknowledge_wildcards(self, _WILDCARDS | WILDCARDS)
        for construct in self.node.find_all():
            if isinstance(construct, codebuild.CfnProject):
                acknowledge(construct, "CB4", "it writes templates and the repository's own files, encrypted by S3")


def _statements(policy: Mapping[str, Any]) -> list[iam.PolicyStatement]:
    return [iam.PolicyStatement.from_json(each) for each in policy["Statement"]]
