"""The clusters that a deployment has or had, its deleted stacks, and what these kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from scripts import generations, stacks
from scripts.deployment import Deployment
from scripts.inventory.leftovers_model import EXISTS, Found, allowed


def present(deployment: Deployment, missing: list[str] | None = None) -> list[Deployment]:
    """Return a deployment with each of its clusters that exist, and with that of its settings, the oldest first.

    Needs what `generations.existing` needs.

    Args:
        deployment: Whose clusters.
        missing: Takes a refusal, for want of a right; None: it is raised.
    """
    found = allowed(lambda: generations.existing(deployment), missing)
    return [deployment.of_generation(each) for each in sorted({*found, deployment.settings.cluster.generation})]


def known(deployment: Deployment, missing: list[str] | None = None) -> list[Deployment]:
    """Return the same, and with those before, and later ones whose stack was deleted in the last 90 days.

    Needs what `present` and `deleted` need. The argument is as there.
    """
    settings = deployment.settings
    first = settings.of_generation(1).stack_name("cluster")
    numbers = {*range(1, settings.cluster.generation + 1)}
    numbers.update(each.settings.cluster.generation for each in present(deployment, missing))
    for stack in allowed(lambda: _deleted(deployment), missing):
        match = re.fullmatch(rf"{re.escape(first)}-(\d+)", stack["StackName"])
        if match and stack.get("TemplateDescription") == f"Trn1 UltraCluster {settings.name}: cluster":
            numbers.add(int(match[1]))
    return [deployment.of_generation(each) for each in sorted(numbers)]


def names(clusters: Sequence[Deployment]) -> list[str]:
    """Return the names of the stacks that a deployment may have, with each of its clusters."""
    return [*dict.fromkeys(name for each in clusters for name in stacks.names(each))]


def deleted(deployment: Deployment, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Return the deleted stacks of these names, and those that were nested in them, as CloudFormation lists them.

    100 in each call, of all that were deleted in the last 90 days. Needs cloudformation:ListStacks.
    """
    found = _deleted(deployment)
    roots = {each["StackId"] for each in found if each["StackName"] in wanted and not each.get("ParentId")}
    return [each for each in found if each["StackId"] in roots or each.get("RootId") in roots]


def kept(deployment: Deployment, wanted: Sequence[str]) -> Iterator[Found]:
    """Yield what deleted stacks left behind: by policy, or because somebody had it retained to get rid of the stack.

    Roles and profiles are kept by no policy. They are global: only a stack of this Region tells whose they are.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    """
    for stack in deleted(deployment, wanted):
        for each in stacks.resources(deployment, stack["StackId"], deleted=True):
            if each.status == "DELETE_COMPLETE" or not each.physical_id:
                continue
            if each.type in EXISTS and EXISTS[each.type](deployment, each.physical_id):
                reason = f"kept when stack {each.stack} was deleted"
                by_policy = not each.type.startswith("AWS::IAM::")
                yield Found(each.type, each.physical_id, reason, kept=by_policy, stack=each.stack)


_OF_STORAGE = {
    "file-system": "AWS::FSx::FileSystem",
    "security-group": "AWS::EC2::SecurityGroup",
    "s3": "AWS::S3::Bucket",
}
"""What the storage stack can leave behind, by what its ARN has in front of its name (of a bucket: the service)."""


def tagged_by_storage(deployment: Deployment) -> Iterator[Found]:
    """Yield file system, security group and bucket of the storage stack, by the tag Name that the construct gives."""
    stack = deployment.stack_name("storage")
    path = f"{stack}/Lustre"
    wanted = [{"Key": "Name", "Values": [path]}]
    for each in deployment.account.list("resourcegroupstaggingapi", "get_resources", TagFilters=wanted):
        _, _, service, _, _, name = each["ResourceARN"].split(":", 5)
        kind = _OF_STORAGE.get(service if service == "s3" else name.partition("/")[0])
        found = name.rpartition("/")[2]
        if kind is not None and EXISTS[kind](deployment, found):  # deleted ones are listed for a while
            yield Found(kind, found, f"tag Name={path}", kept=True, stack=stack)


def kept_by_storage(deployment: Deployment) -> list[Found]:
    """Return what the storage stack left behind and is still there.

    Needs cloudformation:DescribeStacks, :ListStacks and :ListStackResources, tag:GetResources,
    fsx:DescribeFileSystems, ec2:DescribeSecurityGroups, s3:ListBucket.
    """
    stack = deployment.stack_name("storage")
    standing = set(deployment.physical_ids(stack).values())
    found = {each.id: each for look in (kept(deployment, [stack]), tagged_by_storage(deployment)) for each in look}
    return [each for each in found.values() if each.id not in standing]


def _deleted(deployment: Deployment) -> list[dict[str, Any]]:
    return deployment.account.list("cloudformation", "list_stacks", StackStatusFilter=["DELETE_COMPLETE"])
