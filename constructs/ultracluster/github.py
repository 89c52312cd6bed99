"""A role for the jobs of a repository on GitHub, without any key that could leak."""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

ISSUER = "token.actions.githubusercontent.com"
"""GitHub's OpenID Connect provider, and the prefix of conditions on its claims."""
AUDIENCE = "sts.amazonaws.com"
"""What aws-actions/configure-aws-credentials asks tokens for."""


class GitHubRole(Construct):
    """Define a role that jobs of one repository may assume, by what GitHub's token says of them.

    Since January 2026 STS checks the claims repository, ref and environment beside the subject
    (https://aws.amazon.com/about-aws/whats-new/2026/01/aws-sts-supports-validation-identity-provider-claims/). They are
    compared by StringEquals: a claim that is absent does not match, and upper and lower case differ.

    The subject is compared in two forms: repositories that were made, renamed or moved after 15 July 2026 have ids in
    theirs, ``repo:OWNER@1/NAME@2:...``, older ones have none. No name has an ``@`` in it, and the claim repository is
    compared whole, so any id may be there
    (https://docs.github.com/en/actions/reference/security/oidc#immutable-subject-claims).

    Attributes:
        role: The role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        provider_arn: str,
        role_name: str,
        repository: str,
        contexts: Sequence[str],
        claims: Mapping[str, str] | None = None,
        policies: Mapping[str, iam.PolicyDocument],
        max_session_duration: Duration,
        description: str,
    ) -> None:
        """Define the role.

        Args:
            scope: The stack.
            construct_id: Name within it.
            provider_arn: IAM's identity provider for GitHub.
            role_name: Name of the role, which workflows know.
            repository: OWNER/NAME, as GitHub writes it.
            contexts: Ends of the subjects that are let in: ``environment:NAME``, or for jobs without an environment
                ``pull_request`` or ``ref:refs/heads/BRANCH``.
            claims: Further claims of the token that have to have these values.
            policies: What the role may do.
            max_session_duration: How long credentials of the role are good for, 1 to 12 hours.
            description: What the role is for.
        """
        super().__init__(scope, construct_id)
        owner, _, name = repository.partition("/")
        subjects = [f"repo:{each}:{context}" for context in contexts for each in (repository, f"{owner}@*/{name}@*")]
        exact = {"aud": AUDIENCE, "repository": repository, **(claims or {})}
        conditions = {
            "StringEquals": {f"{ISSUER}:{claim}": value for claim, value in exact.items()},
            "StringLike": {f"{ISSUER}:sub": subjects},
        }
        self.role = iam.Role(
            self,
            "Resource",
            assumed_by=iam.WebIdentityPrincipal(provider_arn, conditions),
            role_name=role_name,
            description=description,
            inline_policies=dict(policies),
            max_session_duration=max_session_duration,
        )
