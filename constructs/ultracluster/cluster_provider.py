"""The provider of ParallelCluster's custom resource: AWS's own stack, which calls ParallelCluster."""

from collections.abc import Iterable
from typing import Any

from aws_cdk import CfnStack, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultracluster.acknowledgements import acknowledge_managed_policy, acknowledge_wildcards
from ultracluster.domain.parallelcluster_versions import policies_template, provider_template
from ultracluster.domain.roles import RolesSpec, role_name
from ultracluster.domain.violations import Path

_POLICIES = ("ParallelClusterClusterPolicy1", "ParallelClusterClusterPolicy2", "DefaultParallelClusterIamAdminPolicy")
"""Outputs of AWS's template of policies whose ARNs its provider attaches to its role."""
_WILDCARDS = {
    "Action::s3:*Object": "as AWS's own template gives it to the provider",
    "Resource::arn:<AWS::Partition>:events:": "as AWS's own template gives it to the provider",
    "Resource::arn:<AWS::Partition>:iam:": "roles of clusters, and their boundaries alone",
    "Resource::arn:<AWS::Partition>:s3:": "the provider's bucket, whose name CloudFormation makes",
}
_OF_MUNGE_KEY = {("munge_key_secret_arn",), ("MungeKeySecretArn",)}
_KNOWN_OF_STACK = 16
"""Characters of a stack's name with which CloudFormation's names of its buckets begin in any case: it cuts longer ones
(https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-physical-ids.html)."""


class ClusterProvider:
    """The provider of a cluster, in the cluster's scope; it may see the secrets of the configuration.

    By default AWS's template makes its role. It takes neither a boundary nor a path for that, so where roles have one,
    the provider gets a role that is made here: with the policies that AWS publishes for it, by a stack of AWS's, and
    what AWS's template adds to them.

    Attributes:
        stack: AWS's stack.
    """

    def __init__(self, scope: Construct, *, name: str, version: str, secrets: iam.ManagedPolicy | None) -> None:
        self._scope, self._name, self._version, self._secrets = scope, name, version, secrets
        self._role: iam.CfnRole | None = None
        self.stack = CfnStack(
            scope,
            # Another version gets another provider, which CloudFormation refuses to put in the place of the first.
            f"Provider{version.replace('.', '')}",
            template_url=self._published(provider_template(version)),
            parameters=None if secrets is None else {"AdditionalIamPolicies": secrets.managed_policy_arn},
        )
        self._access = Construct(scope, "ProviderAccess")

    @property
    def has_role(self) -> bool:
        """Whether its role is made here."""
        return self._role is not None

    def set_roles(self, roles: RolesSpec) -> None:
        """Let the provider have a role as all roles are to be; a later call changes it."""
        boundary, is_new = roles.permissions_boundary_arn, self._role is None
        if is_new:
            self._make_role(roles)
        assert self._role is not None  # noqa: S101 - made above
        parameters = {"EnableIamAdminAccess": "true"}
        if boundary is not None:
            parameters["PermissionsBoundaryPolicy"] = boundary
        if roles.name_prefix is not None:
            parameters["IAMRoleAndPolicyPrefix"] = roles.name_prefix
        self._policies.parameters = parameters
        self._role.permissions_boundary = boundary
        self._role.policies = [
            iam.CfnRole.PolicyProperty(policy_name="Provider", policy_document=self._document(boundary))
        ]
        if is_new:
            partition = Stack.of(self._scope).resolve(Stack.of(self._scope).partition)
            known = partition if isinstance(partition, str) else "<AWS::Partition>"
            reasons = {each.replace("<AWS::Partition>", known): reason for each, reason in _WILDCARDS.items()}
            acknowledge_wildcards(self._access, reasons)

    def _make_role(self, roles: RolesSpec) -> None:
        stack, version = Stack.of(self._scope), self._version
        self._policies = CfnStack(
            self._access,
            f"Policies{version.replace('.', '')}",
            template_url=self._published(policies_template(version)),
        )
        basic = f"arn:{stack.partition}:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
        attached = [basic, *(self._policies.get_att(f"Outputs.{each}").to_string() for each in _POLICIES)]
        if self._secrets is not None:
            attached.append(self._secrets.managed_policy_arn)
        name = None
        if roles.name_prefix is not None:
            name = role_name(roles.name_prefix, stack.stack_name, self._access.node.path, stack.region)
        lambda_may = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
        self._role = iam.CfnRole(
            self._access,
            "Role",
            assume_role_policy_document={"Version": "2012-10-17", "Statement": [lambda_may]},
            managed_policy_arns=attached,
            path=roles.path,
            role_name=name,
            description=f"ParallelCluster's provider of {self._name}",
        )
        acknowledge_managed_policy(self._role, basic, "as AWS's own template gives it to the provider")
        self.stack.parameters = {"CustomLambdaRole": self._role.attr_arn}

    def _document(self, boundary: str | None) -> dict[str, Any]:
        """Return what AWS's provider may do beside those policies, and to bound roles that exist already.

        https://github.com/aws/aws-parallelcluster, cloudformation/custom_resource/cluster.yaml, EventsPolicy and
        S3Policy. Its bucket, of the logical id PclusterCustomResourceBucket, has a name of CloudFormation's.
        """
        stack = Stack.of(self._scope)
        begins = "" if Token.is_unresolved(stack.stack_name) else stack.stack_name.lower()[:_KNOWN_OF_STACK]
        bucket = f"arn:{stack.partition}:s3:::{begins}*-pclustercustomresource*"
        roles = f"arn:{stack.partition}:iam::{stack.account}:role/parallelcluster/*"
        statements: list[dict[str, Any]] = [
            {
                "Effect": "Allow",
                "Action": [f"events:{each}" for each in ("PutRule", "DeleteRule", "PutTargets", "RemoveTargets")],
                "Resource": f"arn:{stack.partition}:events:{stack.region}:{stack.account}:rule/*",
            },
            {
                "Effect": "Allow",
                "Action": ["s3:*Object", "s3:ListBucket", "s3:ListBucketVersions"],
                "Resource": [bucket, f"{bucket}/*"],
            },
        ]
        if boundary is None:
            statements.append({"Effect": "Allow", "Action": "iam:DeleteRolePermissionsBoundary", "Resource": roles})
        else:
            only = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
            action = "iam:PutRolePermissionsBoundary"
            statements.append({"Effect": "Allow", "Action": action, "Resource": roles, "Condition": only})
        return {"Version": "2012-10-17", "Statement": statements}

    def _published(self, key: str) -> str:
        stack = Stack.of(self._scope)
        return f"https://{stack.region}-aws-parallelcluster.s3.{stack.region}.{stack.url_suffix}/{key}"


def secrets_policy(
    scope: Construct, secrets: Iterable[tuple[Path, str]], munge_key_key: kms.IKey | None = None
) -> iam.ManagedPolicy | None:
    """Return the permission to see the secrets of a configuration, which its validators read; None: it has none.

    They describe a password and read a Munge key (aws-parallelcluster 3.16.1, ``directory_service_validators.py``,
    ``secret_validators.py``).

    Args:
        scope: Where the policy is.
        secrets: Places and ARNs of the secrets.
        munge_key_key: The customer's key that encrypts the Munge key.
    """
    arns: dict[str, set[str]] = {}
    for place, arn in secrets:
        action = "GetSecretValue" if place[-1:] in _OF_MUNGE_KEY else "DescribeSecret"
        arns.setdefault(f"secretsmanager:{action}", set()).add(arn)
    if not arns:
        return None
    statements = [
        iam.PolicyStatement(actions=[action], resources=sorted(named)) for action, named in sorted(arns.items())
    ]
    if munge_key_key is not None:
        via = {"StringEquals": {"kms:ViaService": f"secretsmanager.{Stack.of(scope).region}.amazonaws.com"}}
        statements.append(
            iam.PolicyStatement(actions=["kms:Decrypt"], resources=[munge_key_key.key_arn], conditions=via)
        )
    return iam.ManagedPolicy(scope, "ProviderSecrets", statements=statements)
