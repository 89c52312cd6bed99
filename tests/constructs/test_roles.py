"""Boundaries, paths and prefixes of roles: ParallelCluster, its provider and the stack's own have what the app says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import IConstruct

import ultracluster as uc
from ultracluster.domain.roles import RolesSpec, names_of_role, role_name
from ultracluster.roles import apply_roles

pytestmark = pytest.mark.slow

ACCOUNT = "123456789012"
ARN = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
CLUSTER, NESTED, ROLE = "Custom::PclusterCluster", "AWS::CloudFormation::Stack", "AWS::IAM::Role"
CPU = uc.Queue(name="cpu", compute_resources=[uc.ComputeResource(name="nodes", instance_type="c7i.large", max_count=2)])


@jsii.implements(cdk.IAspect)
class OwnAspect:
    """What companies write that know no ``iam.PermissionsBoundary``."""

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, iam.CfnRole):
            node.permissions_boundary = ARN


def stack(**options: Any) -> cdk.Stack:
    made = cdk.Stack(cdk.App(analytics_reporting=False, **options), "Training")
    iam.Role(made, "Own", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    return made


def with_cluster(made: cdk.Stack, **options: Any) -> uc.ParallelCluster:
    return uc.ParallelCluster(made, "Cluster", vpc=ec2.Vpc(made, "Vpc", max_azs=1), queues=[CPU], **options)


class Found:
    """What a template says of roles."""

    def __init__(self, made: cdk.Stack) -> None:
        template = assertions.Template.from_stack(made).to_json()
        self.template = template

        def of_type(kind: str) -> dict[str, dict[str, Any]]:
            return {
                key: each.get("Properties", {}) for key, each in template["Resources"].items() if each["Type"] == kind
            }

        [cluster] = of_type(CLUSTER).values()
        self.cluster = cluster["ClusterConfiguration"].get("Iam", {})
        self.roles = of_type(ROLE)
        nested = {str(each["TemplateURL"]): each.get("Parameters", {}) for each in of_type(NESTED).values()}
        [self.provider] = [each for url, each in nested.items() if "custom_resource/cluster.yaml" in url]
        self.policies = [each for url, each in nested.items() if "policies/policies.yaml" in url]

    @property
    def boundaries(self) -> list[Any]:
        """All boundaries that there are, of whatever makes roles."""
        named = [each.get("PermissionsBoundaryPolicy") for each in self.policies]
        return [self.cluster.get("PermissionsBoundary"), *named, *self.of_roles]

    @property
    def of_roles(self) -> list[Any]:
        return [each.get("PermissionsBoundary") for each in self.roles.values()]


def by_stack(made: cdk.Stack) -> None:
    iam.PermissionsBoundary.of(made).apply(iam.ManagedPolicy.from_managed_policy_arn(made, "B", ARN))


def by_cluster_afterwards(made: cdk.Stack) -> None:
    policy = iam.ManagedPolicy.from_managed_policy_arn(made, "B", ARN)
    iam.PermissionsBoundary.of(made.node.find_child("Cluster")).apply(policy)


def by_own_aspect(made: cdk.Stack) -> None:
    cdk.Aspects.of(made).add(OwnAspect())


def by_policy_of_the_stack(made: cdk.Stack) -> None:
    everything = iam.PolicyStatement(actions=["*"], resources=["*"])
    iam.PermissionsBoundary.of(made).apply(iam.ManagedPolicy(made, "B", statements=[everything]))


@pytest.mark.parametrize("context", [{}, {"@aws-cdk/core:aspectStabilization": True}], ids=["", "stabilized"])
@pytest.mark.parametrize("apply", [by_stack, by_cluster_afterwards, by_own_aspect, by_policy_of_the_stack])
def test_a_boundary_of_the_scope_is_that_of_parallelcluster_and_of_its_provider(
    apply: Callable[[cdk.Stack], None], context: dict[str, Any]
) -> None:
    made = stack(context=context)
    with_cluster(made)
    apply(made)
    found = Found(made)
    expected: Any = ARN
    if apply is by_policy_of_the_stack:
        [expected] = [{"Ref": key} for key in found.template["Resources"] if key.startswith("B")]
    own = 0 if apply is by_cluster_afterwards else 1
    assert found.boundaries.count(expected) == 3 + own, found.boundaries
    assert "CustomLambdaRole" in found.provider
    assert found.boundaries.count(None) == 1 - own


def test_a_boundary_of_the_app_by_its_name_is_honoured() -> None:
    made = cdk.Stack(
        cdk.App(analytics_reporting=False), "Training", permissions_boundary=cdk.PermissionsBoundary.from_name("b")
    )
    with_cluster(made)
    found = Found(made)
    assert {str(each) for each in found.boundaries} == {str(found.cluster["PermissionsBoundary"])}
    assert ":policy/b" in str(found.cluster)


def test_without_a_boundary_or_when_it_is_cleared_aws_makes_the_role_of_the_provider() -> None:
    plain, cleared = stack(), stack()
    with_cluster(plain)
    iam.PermissionsBoundary.of(with_cluster(cleared)).clear()
    for made in (plain, cleared):
        found = Found(made)
        assert (found.provider, found.policies, found.cluster) == ({}, [], {})
        assert found.of_roles == [None], "the probe is in no template"


def test_a_boundary_with_a_path_is_refused_before_awss_template_does() -> None:
    made = stack()
    with_cluster(made)
    arn = f"arn:aws:iam::{ACCOUNT}:policy/cloud/boundary"
    iam.PermissionsBoundary.of(made).apply(iam.ManagedPolicy.from_managed_policy_arn(made, "B", arn))
    with pytest.raises(RuntimeError, match=r"permissions boundary: got 'arn:.*cloud/boundary'; allowed: the ARN of a"):
        assertions.Template.from_stack(made)


def test_options_of_roles_reach_all_that_makes_roles() -> None:
    made = stack()
    policy = iam.ManagedPolicy.from_managed_policy_arn(made, "B", ARN)
    roles = uc.Roles(permissions_boundary_arn=policy, path="/parallelcluster/lab/", name_prefix="lab-")
    cluster = with_cluster(made, roles=roles)
    apply_roles(made, cluster.spec.roles)
    found = Found(made)
    assert set(found.boundaries) == {ARN}
    assert found.cluster["ResourcePrefix"] == "/parallelcluster/lab/lab-"
    assert {each["Path"] for each in found.roles.values()} == {"/parallelcluster/lab/"}
    names = [str(each["RoleName"]) for each in found.roles.values()]
    assert all(each.startswith("lab-Training-") for each in names)
    assert len(set(names)) == len(names) == 2
    assert found.policies[0]["IAMRoleAndPolicyPrefix"] == "lab-"


def test_the_provider_may_bound_roles_that_exist_or_take_boundaries_off_but_never_both() -> None:
    """With options of roles that have no boundary, it takes off the one that there was."""
    may = {}
    for boundary in (None, ARN):
        made = stack()
        with_cluster(made, roles=uc.Roles(permissions_boundary_arn=boundary))
        text = str(Found(made).template)
        may[boundary] = [each for each in ("Put", "Delete") if f"iam:{each}RolePermissionsBoundary" in text]
    assert may == {None: ["Delete"], ARN: ["Put"]}


def test_names_of_roles_fit_and_differ_by_stack_place_and_region() -> None:
    names = {
        role_name("x" * 10, stack_name, place, region)
        for stack_name in ("a" * 60, "b")
        for place in ("one", "two")
        for region in ("us-west-2", "us-east-1")
    }
    assert len(names) == 8
    assert max(map(len, names)) <= 64
    roles = RolesSpec(path="/parallelcluster/lab/", name_prefix="lab-")
    assert names_of_role(roles, "a-team", "Homes") == "parallelcluster/lab/lab-a-team-*"
    assert names_of_role(None, "a-team", "Homes") == "a-team-Homes*"
