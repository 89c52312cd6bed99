"""The provider of ParallelCluster's custom resource: AWS's own stack, which calls ParallelCluster."""

from typing import TYPE_CHECKING

from aws_cdk import CfnStack, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.cluster_configuration import secret_arns
from ultracluster.domain.parallelcluster_versions import provider_template

if TYPE_CHECKING:  # to import it takes a twentieth of a second
    from aws_cdk import aws_secretsmanager as secretsmanager


def cluster_provider(
    scope: Construct,
    spec: ClusterSpec,
    munge_key: "secretsmanager.ISecret | None",
    password: "secretsmanager.ISecret | None",
) -> CfnStack:
    """Return the provider of a cluster, in the cluster's scope; it may see the secrets of the configuration."""
    stack = Stack.of(scope)
    host = f"{stack.region}-aws-parallelcluster.s3.{stack.region}.{stack.url_suffix}"
    key = None if munge_key is None else munge_key.encryption_key
    policy = _policy(scope, spec, key, None if password is None else password.secret_full_arn)
    return CfnStack(
        scope,
        # Another version gets another provider, which CloudFormation refuses to put in the place of the first.
        f"Provider{spec.parallelcluster_version.replace('.', '')}",
        template_url=f"https://{host}/{provider_template(spec.parallelcluster_version)}",
        parameters=None if policy is None else {"AdditionalIamPolicies": policy.managed_policy_arn},
    )


def _policy(
    scope: Construct, spec: ClusterSpec, munge_key_key: kms.IKey | None, password_arn: str | None
) -> iam.ManagedPolicy | None:
    """Return the permission to see the secrets of the configuration, which its validators read; None: it has none.

    They describe a password and read a Munge key (aws-parallelcluster 3.16.1, ``directory_service_validators.py``,
    ``secret_validators.py``).
    """
    arns: dict[str, set[str]] = {}
    for place, arn in secret_arns(spec):
        action = "GetSecretValue" if place == ("munge_key_secret_arn",) else "DescribeSecret"
        arns.setdefault(f"secretsmanager:{action}", set()).add(arn)
    if password_arn is not None:
        arns.setdefault("secretsmanager:DescribeSecret", set()).add(password_arn)
    if not arns:
        return None
    statements = [
        iam.PolicyStatement(actions=[action], resources=sorted(named)) for action, named in sorted(arns.items())
    ]
    if munge_key_key is not None:
        via = {"StringEquals": {"kms:ViaService": f"secretsmanager.{spec.region}.amazonaws.com"}}
        statements.append(
            iam.PolicyStatement(actions=["kms:Decrypt"], resources=[munge_key_key.key_arn], conditions=via)
        )
    return iam.ManagedPolicy(scope, "ProviderSecrets", statements=statements)
