"""The roles that GitHub's runners assume, without a key. A person deploys this stack, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from config.pipeline import READ_ROLE, Pipeline, Stage, deploy_role
from config.settings import Settings
from stacks.operating_permissions import WILDCARDS, ask_head_node, stop_and_destroy
from ultracluster.acknowledgements import acknowledge_wildcards
from ultracluster.domain.roles import RolesSpec
from ultracluster.roles import apply_roles

_ISSUER = "token.actions.githubusercontent.com"
"""GitHub's OpenID Connect provider, and the prefix of conditions on its claims."""
_AUDIENCE = "sts.amazonaws.com"
"""What aws-actions/configure-aws-credentials asks tokens for."""
_READ_SESSION = Duration.hours(1)
_DEPLOY_SESSION = Duration.hours(6)
"""As long as a job of GitHub may run. The CDK's own roles are assumed by this one, and such sessions last an hour at
most; the CDK renews them as long as this one lasts (docs/adr/0012).

https://docs.github.com/en/actions/reference/limits,
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html#iam-term-role-chaining
"""


class PipelineAccessStack(cdk.Stack):
    """The role of pull requests, which only reads, and one for the deployment of each stage."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        pipeline: Pipeline,
        deployments: Mapping[str, Settings],
        reviewing: Mapping[str, Any],
        deploying: Mapping[str, Any],
        **stack_options: Any,
    ) -> None:
        super().__init__(scope, construct_id, **stack_options)
        apply_roles(self, RolesSpec(permissions_boundary_arn=pipeline.permissions_boundary_arn))
        self._pipeline = pipeline
        self._provider_arn = pipeline.oidc_provider_arn or self._provider()
        self._read_role(reviewing)
        for stage in pipeline.stages:
            self._deploy_role(stage, deployments[stage.name], deploying)
        acknowledge_wildcards(self, WILDCARDS)

    def _provider(self) -> str:
        url = f"https://{_ISSUER}"
        return iam.OidcProviderNative(self, "GitHub", url=url, client_ids=[_AUDIENCE]).oidc_provider_arn

    def _read_role(self, reviewing: Mapping[str, Any]) -> None:
        self._role(
            "Read",
            READ_ROLE,
            contexts=["pull_request", f"ref:{self._ref}"],
            claims={},
            policies={"Look": iam.PolicyDocument.from_json(reviewing)},
            session=_READ_SESSION,
            description="Pull requests and scheduled checks: looks, changes nothing",
        )

    def _deploy_role(self, stage: Stage, settings: Settings, deploying: Mapping[str, Any]) -> None:
        operate = [*ask_head_node(self, settings), *stop_and_destroy(self, settings)]
        self._role(
            f"Deploy{stage.name}",
            deploy_role(stage.name),
            contexts=[f"environment:{stage.name}"],
            claims={"environment": stage.name, "ref": self._ref},
            policies={
                "Look": iam.PolicyDocument.from_json(deploying),
                "Operate": iam.PolicyDocument(statements=operate),
                "Cdk": self._cdk_roles(settings.bootstrap.qualifier, "deploy", "file-publishing", "lookup"),
            },
            session=_DEPLOY_SESSION,
            description=f"Deploys {settings.name}, for stage {stage.name}",
        )

    def _role(
        self,
        construct_id: str,
        role_name: str,
        *,
        contexts: Sequence[str],
        claims: Mapping[str, str],
        policies: Mapping[str, iam.PolicyDocument],
        session: Duration,
        description: str,
    ) -> None:
        """Define a role that jobs of the repository may assume, by what GitHub's token says of them.

        Since January 2026 STS checks the claims repository, ref and environment beside the subject
        (https://aws.amazon.com/about-aws/whats-new/2026/01/aws-sts-supports-validation-identity-provider-claims/). They
        are compared by StringEquals: a claim that is absent does not match, and upper and lower case differ.

        The subject ends in a context: ``environment:NAME``, or for jobs without an environment ``pull_request`` or
        ``ref:refs/heads/BRANCH``. It is compared in two forms: repositories that were made, renamed or moved after 15
        July 2026 have ids in theirs, ``repo:OWNER@1/NAME@2:...``, older ones have none. No name has an ``@`` in it, and
        the claim repository is compared whole, so any id may be there
        (https://docs.github.com/en/actions/reference/security/oidc#immutable-subject-claims).
        """
        repository = self._pipeline.repository
        owner, _, name = repository.partition("/")
        subjects = [f"repo:{each}:{context}" for context in contexts for each in (repository, f"{owner}@*/{name}@*")]
        exact = {"aud": _AUDIENCE, "repository": repository, **claims}
        conditions = {
            "StringEquals": {f"{_ISSUER}:{claim}": value for claim, value in exact.items()},
            "StringLike": {f"{_ISSUER}:sub": subjects},
        }
        iam.Role(
            Construct(self, construct_id),
            "Resource",
            assumed_by=iam.WebIdentityPrincipal(self._provider_arn, conditions),
            role_name=role_name,
            description=description,
            inline_policies=dict(policies),
            max_session_duration=session,
        )

    @property
    def _ref(self) -> str:
        return f"refs/heads/{self._pipeline.branch}"

    def _cdk_roles(self, qualifier: str, *names: str) -> iam.PolicyDocument:
        """Return the permission to assume roles that `cdk bootstrap` made in the stages' account and Region."""
        arns = [
            self.format_arn(
                service="iam",
                region="",
                resource="role",
                resource_name=f"cdk-{qualifier}-{name}-role-{self.account}-{self._pipeline.region}",
            )
            for name in names
        ]
        return iam.PolicyDocument(statements=[iam.PolicyStatement(actions=["sts:AssumeRole"], resources=arns)])
