"""What is left of a deployment although its stack is gone: found by tag, by name, and by what deleted stacks kept.

Whatever could belong to somebody else is not found: names are compared whole, with the random parts that AWS and
ParallelCluster append, so that nothing of ``trn1-16-2`` is taken for something of ``trn1-16``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from scripts.deployment import Deployment
from scripts.operations import leftovers_by_name, stacks
from scripts.operations.leftovers_model import EXISTS, PREFIX, Found, is_refusal


def find(
    deployment: Deployment, cluster_names: Sequence[str] | None = None, missing: list[str] | None = None
) -> list[Found]:
    """Return what is left of a deployment although its stack is gone, in the order in which it can be removed.

    About 25 calls, one more for each deleted stack of the last 90 days, which CloudFormation remembers for so long.
    Needs cloudformation:DescribeStacks, :ListStacks and :ListStackResources, dynamodb:DescribeTable, :ListTables and
    :ListTagsOfResource, ec2:DescribeInstances, :DescribeLaunchTemplates, :DescribeLaunchTemplateVersions,
    :DescribeNetworkInterfaces, :DescribePlacementGroups, :DescribeSecurityGroups and :DescribeVolumes,
    fsx:DescribeFileSystems, iam:GetInstanceProfile, :GetRole, :ListInstanceProfiles and :ListRoles,
    lambda:GetFunction, logs:DescribeLogGroups, route53:ListHostedZones, s3:ListBucket and :ListBucketVersions,
    ssm:DescribeParameters, tag:GetResources.

    Args:
        deployment: What it is left of.
        cluster_names: ParallelCluster's names of its clusters; None: the name in the settings.
        missing: Takes what could not be looked for, for want of a right; None: such a refusal is raised.
    """
    deployment.account.forget()
    clusters = list(cluster_names or [deployment.settings.cluster_spec.name])
    names = [*dict.fromkeys([*stacks.names(deployment), *clusters])]
    standing = {
        each.physical_id: each
        for name in names
        if deployment.stack(name) is not None
        for each in stacks.all_resources(deployment, name)
        if each.status != "DELETE_COMPLETE"
    }
    gone = [name for name in clusters if deployment.stack(name) is None]
    found: dict[tuple[str, str], Found] = {}
    ids = {each["StackId"].rpartition("/")[2] for each in deleted_stacks(deployment, names)}
    looks: list[Callable[[], Iterator[Found]]] = [
        partial(_kept_by_stacks, deployment, names),
        *leftovers_by_name.looks(deployment, clusters, gone, ids),
    ]
    for look in looks:
        try:
            for each in look():
                if each.id.removeprefix("/aws/lambda/") not in standing and each.id not in standing:
                    found.setdefault((each.type, each.id), each)
        except Exception as error:
            if missing is None or not is_refusal(error):
                raise
            missing.append(str(error))
    return sorted(found.values(), key=lambda each: (_ORDER.index(each.type), each.id))


def deleted_stacks(deployment: Deployment, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the deleted stacks of these names, and those that were nested in them, as CloudFormation lists them.

    100 in each call, of all that were deleted in the last 90 days. Needs cloudformation:ListStacks.
    """
    deleted = deployment.account.list("cloudformation", "list_stacks", StackStatusFilter=["DELETE_COMPLETE"])
    roots = {each["StackId"] for each in deleted if each["StackName"] in names and not each.get("ParentId")}
    return [each for each in deleted if each["StackId"] in roots or each.get("RootId") in roots]


def _kept_by_stacks(deployment: Deployment, names: Sequence[str]) -> Iterator[Found]:
    """Yield what deleted stacks left behind: by policy, or because somebody had it retained to get rid of the stack.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    """
    for stack in deleted_stacks(deployment, names):
        for each in stacks.resources(deployment, stack["StackId"]):
            if each.status == "DELETE_COMPLETE" or not each.physical_id:
                continue
            if each.type in EXISTS and EXISTS[each.type](deployment, each.physical_id):
                reason = f"kept when stack {each.stack} was deleted"
                yield Found(each.type, each.physical_id, reason, kept=True, stack=each.stack)


_ORDER = (
    "AWS::EC2::Instance",
    "AWS::EC2::NetworkInterface",
    "AWS::EC2::Volume",
    "AWS::FSx::FileSystem",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::PlacementGroup",
    "AWS::EC2::LaunchTemplate",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::Role",
    "AWS::DynamoDB::Table",
    "AWS::Route53::HostedZone",
    "AWS::SSM::Parameter",
    "AWS::Lambda::Function",
    PREFIX,
    "AWS::S3::Bucket",
    "AWS::Logs::LogGroup",
)
"""All types that are found, each after those that hold on to it."""
