"""What is left of a deployment although its stack is gone: by what deleted stacks kept, by tag, and by name.

Whatever could belong to somebody else is not found: names are compared whole, with the random parts that AWS and
ParallelCluster append, so that nothing of ``trn1-16-2`` is taken for something of ``trn1-16``. Of what is global, such
as roles, only that is found which is known to be of this Region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from scripts import stacks
from scripts.deployment import Deployment
from scripts.inventory import leftovers_by_name, leftovers_stacks
from scripts.inventory.leftovers_model import PREFIX, Found, allowed


def find(deployment: Deployment, missing: list[str] | None = None) -> list[Found]:
    """Return what is left of a deployment although its stack is gone, in the order in which it can be removed.

    Of all generations of its cluster. About 25 calls, 15 for each further generation, and one for each deleted stack of
    the last 90 days, which CloudFormation remembers for so long. Needs cloudformation:DescribeStacks, :ListStacks and
    :ListStackResources, dynamodb:DescribeTable, :ListTables and :ListTagsOfResource, ec2:DescribeInstances,
    :DescribeLaunchTemplates, :DescribeLaunchTemplateVersions, :DescribeNetworkInterfaces, :DescribePlacementGroups,
    :DescribeSecurityGroups, :DescribeSnapshots and :DescribeVolumes, fsx:DescribeFileSystems, iam:GetInstanceProfile
    and :GetRole, lambda:GetFunction, logs:DescribeLogGroups, route53:GetHostedZone and :ListHostedZones, s3:ListBucket
    and :ListBucketVersions, ssm:DescribeParameters, tag:GetResources.

    Args:
        deployment: What it is left of.
        missing: Takes what could not be looked for, for want of a right; None: such a refusal is raised.
    """
    deployment.account.forget()
    clusters = leftovers_stacks.known(deployment, missing)
    names = leftovers_stacks.names(clusters)
    standing = {
        each.physical_id
        for name in names
        if deployment.stack(name) is not None
        for each in stacks.all_resources(deployment, name)
        if each.status != "DELETE_COMPLETE"
    }
    deleted = allowed(lambda: leftovers_stacks.deleted(deployment, names), missing)
    looks: list[Callable[[], Iterator[Found]]] = [
        partial(leftovers_stacks.kept, deployment, names),
        partial(leftovers_stacks.tagged_by_storage, deployment),
        *leftovers_by_name.looks(deployment, clusters, {each["StackId"].rpartition("/")[2] for each in deleted}),
    ]
    found: dict[tuple[str, str], Found] = {}
    for look in looks:
        for each in allowed(look, missing):
            if each.id.removeprefix("/aws/lambda/") not in standing and each.id not in standing:
                found.setdefault((each.type, each.id), each)
    return sorted(found.values(), key=lambda each: (_ORDER.index(each.type), each.id))


_ORDER = (
    "AWS::EC2::Instance",
    "AWS::EC2::NetworkInterface",
    "AWS::EC2::Volume",
    "AWS::EC2::Snapshot",
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
