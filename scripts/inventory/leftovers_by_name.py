"""What is left of a deployment (`scripts.inventory.leftovers`), found by tag and by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial

from scripts.deployment import PARTS, Deployment
from scripts.inventory.leftovers_model import EXISTS, PREFIX, Found
from ultracluster.domain.names import SNAPSHOT_TAG

COMMANDS = "/ultracluster/{}/commands"
"""Log group of the commands that were run on the head node of a cluster."""

_UUID = 36

_TAGGED = {
    "AWS::EC2::Instance": ("describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"),
    "AWS::EC2::NetworkInterface": ("describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    "AWS::EC2::Volume": ("describe_volumes", "Volumes[].VolumeId"),
}
"""What carries ParallelCluster's tag in EC2, beside security groups: how it is listed, and where in the answer its ids
are."""


def looks(
    deployment: Deployment, clusters: Sequence[Deployment], deleted: Set[str]
) -> Iterator[Callable[[], Iterator[Found]]]:
    """Yield the ways to look; those for a cluster only where its own stack is gone, for else that has it all.

    Args:
        deployment: What it is left of.
        clusters: The same with each of its clusters.
        deleted: Last parts of the ids of deleted stacks, of which ParallelCluster makes names of functions.
    """
    stacks = {each.stack_name(part) for each in clusters for part in PARTS}
    yield partial(_logs_of_functions, deployment, stacks, deleted)
    yield partial(_snapshots, deployment)
    for each in clusters:
        name, stack = each.settings.cluster_spec.name, each.stack_name("cluster")
        yield partial(_logs_of_cluster, each, name)
        if each.stack(name) is None:
            for kind in _TAGGED:
                yield partial(_tagged, each, name, kind)
            for look in (_security_groups, _launch_templates, _tables, _zones, _prefixes):
                yield partial(look, each, name)
        if each.stack(stack) is None:
            yield partial(_placement_groups, each, stack)
        if each.stack(name) is None and each.stack(stack) is None:
            yield partial(_commands, each, name)
            yield partial(_parameters, each, name)


def _snapshots(deployment: Deployment) -> Iterator[Found]:
    """Yield the snapshots of head nodes, which no stack has and which outlive the policy that made them."""
    tag = {"Name": f"tag:{SNAPSHOT_TAG}", "Values": [deployment.settings.name]}
    for each in deployment.account.list("ec2", "describe_snapshots", OwnerIds=["self"], Filters=[tag]):
        reason = f"of the head node's volume {each['VolumeId']}, for make restore"
        yield Found("AWS::EC2::Snapshot", each["SnapshotId"], reason, kept=True)


def _security_groups(deployment: Deployment, cluster: str) -> Iterator[Found]:
    """Yield a cluster's security groups, and the interfaces in them that are attached to nothing.

    ParallelCluster has EC2 tag nodes and volumes at their launch, and no interfaces: one that stays is known by its
    groups alone, and keeps these (aws-parallelcluster 3.16.1, pcluster/templates/queues_stack.py).
    """
    tag = {"Name": "tag:parallelcluster:cluster-name", "Values": [cluster]}
    listed = deployment.account.list("ec2", "describe_security_groups", Filters=[tag])
    groups = [each["GroupId"] for each in listed]
    for each in groups:
        yield Found("AWS::EC2::SecurityGroup", each, f"tag parallelcluster:cluster-name={cluster}")
    if not groups:
        return
    detached = [{"Name": "group-id", "Values": groups}, {"Name": "status", "Values": ["available"]}]
    for each in deployment.account.list("ec2", "describe_network_interfaces", Filters=detached):
        reason = f"in security groups with tag cluster-name={cluster}, attached to nothing"
        yield Found("AWS::EC2::NetworkInterface", each["NetworkInterfaceId"], reason)


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


def _placement_groups(deployment: Deployment, stack: str) -> Iterator[Found]:
    begin = f"{stack}-ClusterPlacementGroups"  # as CloudFormation makes names of ours
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
    """Yield the cluster's zone; zones are global, and one of that name can be of a cluster in another Region."""
    for each in deployment.account.list("route53", "list_hosted_zones"):
        if each["Name"] == f"{cluster}.pcluster.":
            zone = deployment.account.ask("route53", "get_hosted_zone", Id=each["Id"])
            if {vpc["VPCRegion"] for vpc in zone.get("VPCs", [])} == {deployment.settings.region}:
                reason = f"its name, {each['Name']}, and Region"
                yield Found("AWS::Route53::HostedZone", each["Id"].rpartition("/")[2], reason)


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
    """Yield what the bucket that all clusters share still has of one, of whichever ParallelCluster and object version.

    One call for each version of ParallelCluster that the account has used in the Region.
    """
    bucket = parallelcluster_bucket(deployment)
    if not EXISTS["AWS::S3::Bucket"](deployment, bucket):
        return
    own = re.compile(rf"parallelcluster/[^/]+/clusters/{re.escape(cluster)}-[a-z0-9]{{16}}/")
    for version in _folders(deployment, bucket, "parallelcluster/"):
        for each in _folders(deployment, bucket, f"{version}clusters/{cluster}-"):
            if own.fullmatch(each):
                yield Found(PREFIX, f"s3://{bucket}/{each}", "the cluster's name in it")


def _folders(deployment: Deployment, bucket: str, begin: str) -> Iterator[str]:
    listed = deployment.account.client("s3").get_paginator("list_object_versions")
    pages = listed.paginate(Bucket=bucket, Prefix=begin, Delimiter="/")
    return (each for each in pages.search("CommonPrefixes[].Prefix") if each)


def _logs_of_cluster(deployment: Deployment, cluster: str) -> Iterator[Found]:
    own = re.compile(rf"/aws/parallelcluster/{re.escape(cluster)}-\d{{12}}")
    kept = deployment.settings.cluster.monitoring.retain_logs
    for name in log_group_names(deployment, f"/aws/parallelcluster/{cluster}-"):
        if own.fullmatch(name):
            yield Found("AWS::Logs::LogGroup", name, "logs of the cluster", kept=kept)


def _commands(deployment: Deployment, cluster: str) -> Iterator[Found]:
    name = COMMANDS.format(cluster)
    if name in log_group_names(deployment, name):
        yield Found("AWS::Logs::LogGroup", name, "commands run on the head node")


def _logs_of_functions(deployment: Deployment, stacks: Set[str], deleted: Set[str]) -> Iterator[Found]:
    """Yield logs of functions; these are named after their stack, the id of it or its name."""
    for name in log_group_names(deployment, "/aws/lambda/pcluster-"):
        if name[-_UUID:] in deleted:
            yield Found("AWS::Logs::LogGroup", name, "log of a Lambda function of a deleted stack")
    own = re.compile(rf"/aws/lambda/(?:{'|'.join(map(re.escape, stacks))})-[A-Z].*")  # then comes the logical id
    for name in log_group_names(deployment, f"/aws/lambda/{deployment.settings.name}-"):
        if own.fullmatch(name):
            yield Found("AWS::Logs::LogGroup", name, "log of a Lambda function")


def log_group_names(deployment: Deployment, prefix: str) -> list[str]:
    """Return the names of the log groups that begin so, 50 in each call. Needs logs:DescribeLogGroups."""
    listed = deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix)
    return [each["logGroupName"] for each in listed]
