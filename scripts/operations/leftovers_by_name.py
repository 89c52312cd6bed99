"""What is left of a deployment, found by tag and by name.

Whatever could belong to somebody else is not found: names are compared whole, with the random parts that AWS and
ParallelCluster append, so that nothing of ``trn1-16-2`` is taken for something of ``trn1-16``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial

from scripts.deployment import PARTS, Deployment
from scripts.operations.leftovers_model import EXISTS, PREFIX, Found

COMMANDS = "/ultracluster/{}/commands"
"""Log group of the commands that were run on the head node of a cluster."""

_UUID = 36

_TAGGED = {
    "AWS::EC2::Instance": ("describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"),
    "AWS::EC2::NetworkInterface": ("describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    "AWS::EC2::Volume": ("describe_volumes", "Volumes[].VolumeId"),
    "AWS::EC2::SecurityGroup": ("describe_security_groups", "SecurityGroups[].GroupId"),
}
"""What carries ParallelCluster's tag in EC2: how it is listed, and where in the answer its ids are."""


def looks(
    deployment: Deployment, clusters: Sequence[str], gone: Sequence[str], deleted: Set[str]
) -> Iterator[Callable[[], Iterator[Found]]]:
    """Yield the ways to look; those for a cluster only where its own stack is gone, for else that has it all.

    Args:
        deployment: What it is left of.
        clusters: ParallelCluster's names of its clusters.
        gone: Those of them that have no stack.
        deleted: Last parts of the ids of deleted stacks, of which ParallelCluster makes names of functions.
    """
    yield partial(_storage, deployment)
    yield partial(_log_groups, deployment, clusters, deleted)
    for name in gone:
        for kind in _TAGGED:
            yield partial(_tagged, deployment, name, kind)
        for look in (_launch_templates, _tables, _zones, _roles, _profiles, _prefixes):
            yield partial(look, deployment, name)
    if deployment.stack(deployment.stack_name("cluster")) is None:
        yield partial(_placement_groups, deployment)
        for name in gone:
            yield partial(_parameters, deployment, name)


_STORAGE = {
    "file-system": "AWS::FSx::FileSystem",
    "security-group": "AWS::EC2::SecurityGroup",
    "s3": "AWS::S3::Bucket",
}
"""What the storage stack can leave behind, by what its ARN has in front of its name (of a bucket: the service)."""


def _storage(deployment: Deployment) -> Iterator[Found]:
    """Yield file system, security group and bucket of the storage stack, by the tag Name that the construct gives."""
    stack = deployment.stack_name("storage")
    path = f"{stack}/Lustre"
    wanted = [{"Key": "Name", "Values": [path]}]
    for each in deployment.account.list("resourcegroupstaggingapi", "get_resources", TagFilters=wanted):
        _, _, service, _, _, name = each["ResourceARN"].split(":", 5)
        kind = _STORAGE.get(service if service == "s3" else name.partition("/")[0])
        found = name.rpartition("/")[2]
        if kind is not None and EXISTS[kind](deployment, found):  # deleted ones are listed for a while
            yield Found(kind, found, f"tag Name={path}", kept=True, stack=stack)


def _tagged(deployment: Deployment, cluster: str, kind: str) -> Iterator[Found]:
    operation, path = _TAGGED[kind]
    filters = [{"Name": "tag:parallelcluster:cluster-name", "Values": [cluster]}]
    pages = (
        deployment.account.client("ec2")
        .get_paginator(operation)
        .paginate(Filters=filters, PaginationConfig={"PageSize": 1000})
    )
    for each in pages.search(path):
        yield Found(kind, each, f"tag parallelcluster:cluster-name={cluster}")


def _launch_templates(deployment: Deployment, cluster: str) -> Iterator[Found]:
    """Yield launch templates that tag their instances with the cluster's name; their own names could be another's."""
    ec2 = deployment.account.client("ec2")
    tag = {"Key": "parallelcluster:cluster-name", "Value": cluster}
    filters = [{"Name": "launch-template-name", "Values": [f"{cluster}-*"]}]
    for each in deployment.account.list("ec2", "describe_launch_templates", Filters=filters):
        template = each["LaunchTemplateId"]
        [version] = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=["$Latest"])[
            "LaunchTemplateVersions"
        ]
        if any(tag in tags["Tags"] for tags in version["LaunchTemplateData"].get("TagSpecifications", [])):
            yield Found("AWS::EC2::LaunchTemplate", template, f"tags its instances with cluster-name={cluster}")


def _placement_groups(deployment: Deployment) -> Iterator[Found]:
    begin = f"{deployment.stack_name('cluster')}-ClusterPlacementGroups"  # as CloudFormation makes names of ours
    for each in deployment.account.client("ec2").describe_placement_groups()["PlacementGroups"]:
        if each["GroupName"].startswith(begin) and each["State"] != "deleted":
            yield Found("AWS::EC2::PlacementGroup", each["GroupName"], "its name")


def _tables(deployment: Deployment, cluster: str) -> Iterator[Found]:
    tables = deployment.account.list("dynamodb", "list_tables")
    client = deployment.account.client("dynamodb")
    for name in (f"parallelcluster-{cluster}", f"parallelcluster-slurm-{cluster}"):
        if name in tables:
            table = client.describe_table(TableName=name)["Table"]["TableArn"]
            tags = client.list_tags_of_resource(ResourceArn=table)["Tags"]
            if {"Key": "parallelcluster:cluster-name", "Value": cluster} in tags:
                yield Found("AWS::DynamoDB::Table", name, f"tag parallelcluster:cluster-name={cluster}")


def _zones(deployment: Deployment, cluster: str) -> Iterator[Found]:
    for each in deployment.account.list("route53", "list_hosted_zones"):
        if each["Name"] == f"{cluster}.pcluster.":
            yield Found("AWS::Route53::HostedZone", each["Id"].rpartition("/")[2], f"its name, {each['Name']}")


def _roles(deployment: Deployment, cluster: str) -> Iterator[Found]:
    """Yield ParallelCluster's roles: those of nodes have a path of their own, those of clean-up functions a name."""
    cleaners = re.compile(rf"{re.escape(cluster)}-Cleanup(Resources|Route53)FunctionExecutionRole-\w{{12,13}}")
    for each in deployment.account.list("iam", "list_roles", PathPrefix="/parallelcluster/"):
        if each["Path"] == f"/parallelcluster/{cluster}/" or cleaners.fullmatch(each["RoleName"]):
            yield Found("AWS::IAM::Role", each["RoleName"], f"its name and path {each['Path']}")


def _profiles(deployment: Deployment, cluster: str) -> Iterator[Found]:
    path = f"/parallelcluster/{cluster}/"
    for each in deployment.account.list("iam", "list_instance_profiles", PathPrefix=path):
        if each["Path"] == path:
            yield Found("AWS::IAM::InstanceProfile", each["InstanceProfileName"], f"its path {path}")


def _parameters(deployment: Deployment, cluster: str) -> Iterator[Found]:
    begin = [{"Key": "Name", "Option": "BeginsWith", "Values": [f"/ultracluster/{cluster}/"]}]
    for each in deployment.account.list("ssm", "describe_parameters", ParameterFilters=begin):
        yield Found("AWS::SSM::Parameter", each["Name"], "its name")


def parallelcluster_bucket(deployment: Deployment) -> str:
    """Return the name of ParallelCluster's bucket of the account and Region. Needs sts:GetCallerIdentity, no right.

    It is made of a hash (aws-parallelcluster 3.16.1, pcluster/models/s3_bucket.py).
    """
    account = deployment.account.ask("sts", "get_caller_identity")["Account"]
    digest = hashlib.sha256((account + deployment.settings.region).encode()).hexdigest()
    return f"parallelcluster-{digest[:16]}-v1-do-not-delete"


def _prefixes(deployment: Deployment, cluster: str) -> Iterator[Found]:
    """Yield what the bucket that all clusters share still has of one, in whichever version of an object."""
    bucket = parallelcluster_bucket(deployment)
    if not EXISTS["AWS::S3::Bucket"](deployment, bucket):
        return
    version = deployment.settings.cluster.parallelcluster_version
    pages = (
        deployment.account.client("s3")
        .get_paginator("list_object_versions")
        .paginate(Bucket=bucket, Prefix=f"parallelcluster/{version}/clusters/{cluster}-", Delimiter="/")
    )
    own = re.compile(rf"parallelcluster/{re.escape(version)}/clusters/{re.escape(cluster)}-[a-z0-9]{{16}}/")
    for each in pages.search("CommonPrefixes[].Prefix"):
        if each and own.fullmatch(each):
            yield Found(PREFIX, f"s3://{bucket}/{each}", "the cluster's name in it")


def _log_groups(deployment: Deployment, clusters: Sequence[str], deleted: Set[str]) -> Iterator[Found]:
    """Yield log groups. Those of functions are named after them, and they after their stack (the id of it, or name)."""
    settings = deployment.settings
    for cluster in clusters:
        own = re.compile(rf"/aws/parallelcluster/{re.escape(cluster)}-\d{{12}}")
        for name in log_group_names(deployment, f"/aws/parallelcluster/{cluster}-"):
            if own.fullmatch(name):
                kept = settings.cluster.monitoring.retain_logs
                yield Found("AWS::Logs::LogGroup", name, "logs of the cluster", kept=kept)
        if COMMANDS.format(cluster) in log_group_names(deployment, COMMANDS.format(cluster)):
            yield Found("AWS::Logs::LogGroup", COMMANDS.format(cluster), "commands run on the head node")
    for name in log_group_names(deployment, "/aws/lambda/pcluster-"):
        if name[-_UUID:] in deleted:
            yield Found("AWS::Logs::LogGroup", name, "log of a Lambda function of a deleted stack")
    parts = "|".join(re.escape(deployment.stack_name(part)) for part in PARTS)
    own = re.compile(rf"/aws/lambda/(?:{parts})-[A-Z].*")  # CloudFormation goes on with the logical id
    for name in log_group_names(deployment, f"/aws/lambda/{settings.name}-"):
        if own.fullmatch(name):
            yield Found("AWS::Logs::LogGroup", name, "log of a Lambda function")


def log_group_names(deployment: Deployment, prefix: str) -> list[str]:
    """Return the names of the log groups that begin so, 50 in each call. Needs logs:DescribeLogGroups."""
    listed = deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix)
    return [each["logGroupName"] for each in listed]
