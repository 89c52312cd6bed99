"""Roles of IAM: what bounds all that a deployment makes, where they are, and how their names begin."""

import hashlib
from typing import Annotated, ClassVar

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import OptionalPolicyArn, default, text

PAGE = "https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html"
_NAME, _DIGEST = 64, 12
"""Characters of a role's name at most (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html)."""

RolePath = Annotated[
    str,
    text(r"^/parallelcluster/([\w+=,.@-]+/)*$", "/parallelcluster/, or below it such as /parallelcluster/lab/"),
]
RolePrefix = Annotated[str, text(r"^[\w+=,.@-]{1,10}$", "1 to 10 of A-Z, a-z, 0-9 and _.,+@=-, such as lab-")]


class RolesSpec(Spec):
    """What all roles have: those of stacks, those that ParallelCluster makes, and that of ParallelCluster's provider.

    The provider gets a role of its own then, with the permissions that AWS publishes for it.
    """

    aws: ClassVar = "Iam"

    permissions_boundary_arn: Annotated[OptionalPolicyArn, Setting(Change.AT_ONCE, ".PermissionsBoundary")] = default(
        None
    )
    """Managed policy beyond which no role may do anything, whatever its own policies say; None: none. It must allow
    what nodes and provider need. To take it off, deploy once with None here; then these options may go, too."""
    path: Annotated[RolePath | None, Setting(Change.NEW_CLUSTER, ".ResourcePrefix")] = None
    """Path of all roles, from which the provider's permissions follow; None: /parallelcluster/CLUSTER/ of the
    cluster's, / of others."""
    name_prefix: Annotated[RolePrefix | None, Setting(Change.NEW_CLUSTER, ".ResourcePrefix")] = None
    """How the names of all roles begin; None: CloudFormation's names, which begin with that of the stack."""

    @property
    def resource_prefix(self) -> str | None:
        """What ParallelCluster calls both."""
        return f"{self.path or ''}{self.name_prefix or ''}" or None


def role_name(prefix: str, stack: str, place: str, region: str) -> str:
    """Return a name for a role of a stack that begins with a prefix: one in the account, the same in each synthesis.

    Args:
        prefix: How it begins.
        stack: Name of the stack.
        place: What the role is within the stack.
        region: Of the stack; roles are in all Regions.
    """
    digest = hashlib.sha256(f"{stack} {place} {region}".encode()).hexdigest()[:_DIGEST]
    return f"{_begin(prefix, stack)}-{digest}"


def names_of_role(roles: RolesSpec | None, stack: str, logical_id: str) -> str:
    """Return a pattern of what IAM calls a role of a stack, with its path, by the beginning of its logical id."""
    if roles is None:
        return f"{stack}-{logical_id}*"
    name = f"{stack}-{logical_id}*" if roles.name_prefix is None else f"{_begin(roles.name_prefix, stack)}-*"
    return f"{(roles.path or '/').removeprefix('/')}{name}"


def _begin(prefix: str, stack: str) -> str:
    return f"{prefix}{stack}"[: _NAME - _DIGEST - 1].rstrip("-")
