"""Boundaries, paths and names of roles: given to those of a scope, and heard of by what makes roles elsewhere."""

from collections.abc import Callable
from typing import Any

import jsii
from aws_cdk import Aspects, CfnResource, IAspect, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from ultracluster.domain.roles import RolesSpec, role_name

_ROLE = "AWS::IAM::Role"
_BOUNDARY = "Properties.PermissionsBoundary"


def apply_roles(scope: Construct, roles: RolesSpec | None) -> None:
    """Give all roles in a scope, with those to come, what is said of roles; None: nothing."""
    if roles is None:
        return
    if roles.permissions_boundary_arn is not None:
        arn = roles.permissions_boundary_arn
        policy = iam.ManagedPolicy.from_managed_policy_arn(scope, "PermissionsBoundary", arn)
        iam.PermissionsBoundary.of(scope).apply(policy)
    if roles.resource_prefix is not None:
        Aspects.of(scope).add(_Named(roles))


@jsii.implements(IAspect)
class _Named:
    """Puts roles under a path, and gives names that begin with a prefix to those that have none."""

    def __init__(self, roles: RolesSpec) -> None:
        self._roles = roles

    def visit(self, node: IConstruct) -> None:
        if not isinstance(node, CfnResource) or node.cfn_resource_type != _ROLE:
            return
        if self._roles.path is not None:
            node.add_property_override("Path", self._roles.path)
        stack = Stack.of(node)
        if self._roles.name_prefix is not None and stack.resolve(getattr(node, "role_name", None)) is None:
            name = role_name(self._roles.name_prefix, stack.stack_name, node.node.path, stack.region)
            node.add_property_override("RoleName", name)


class BoundaryProbe(iam.CfnRole):
    """A role that is in no template. What bounds the roles of its scope bounds it, and so tells its boundary.

    The CDK keeps boundaries nowhere: ``iam.PermissionsBoundary.of(scope)`` and ``permissions_boundary`` of stages and
    stacks are Aspects that override the property of each role (aws-cdk-lib, aws-iam/lib/permissions-boundary.ts,
    core/lib/stack.ts). Aspects of an app's own set it likewise, of an ``iam.CfnRole``. They run once the tree is whole.

    Args:
        scope: Whose boundary is asked for.
        construct_id: Its name there.
        heard: Is told of each boundary while Aspects run, in their order; None: there is none after all.
    """

    def __init__(self, scope: Construct, construct_id: str, heard: Callable[[str | None], None]) -> None:
        self._tell = heard
        self._property: str | None = None
        self._overridden: tuple[str | None] | None = None
        super().__init__(scope, construct_id, assume_role_policy_document={})

    @property
    def boundary(self) -> str | None:
        """What bounds roles of the scope; None: nothing, or Aspects have not run yet."""
        return self._property if self._overridden is None else self._overridden[0]

    @property
    def permissions_boundary(self) -> str | None:
        """The property, which Aspects of an app set."""
        return self._property

    @permissions_boundary.setter
    def permissions_boundary(self, value: str | None) -> None:
        self._property = value
        self._tell(self.boundary)

    def _should_synthesize(self) -> bool:
        return False

    def add_override(self, path: str, value: Any) -> None:
        """Take note of an override; there is no template to put it in."""
        if path == _BOUNDARY:
            self._overridden = (value,)
            self._tell(self.boundary)
