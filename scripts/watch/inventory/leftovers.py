"""What is left of a deployment although its stack is deleted: found by what deleted stacks kept, by tag, and by name.

Names are compared whole, with the random parts that AWS and ParallelCluster append, so that nothing of ``trn1-16-2`` is
found for ``trn1-16``. Of global resources, such as roles, only those of this Region are found.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence, Set

from config.settings import PARTS
from scripts.account import backups, stacks
from scripts.account.deployment import Deployment, filters
from scripts.account.remote.streamed_command import log_group
from scripts.account.resource_kinds import LEFT, PREFIX, REMOVAL_ORDER
from scripts.watch.inventory import clusters as of_clusters
from scripts.watch.inventory.model import Key, Leftover, permitted
from scripts.watch.inventory.removal import exists

_UUID = 36
_CLUSTER_TAG = "parallelcluster:cluster-name"


def find(deployment: Deployment, denied: list[str] | None = None) -> list[Leftover]:
    """Return what is left of a deployment, in the order in which it can be removed.

    Of all generations of its cluster. About 25 calls, 15 for each further generation, and one for each deleted stack of
    the last 90 days, which CloudFormation remembers for so long. `denied` is that of `permitted`.
    """
    deployment.account.forget()
    clusters = of_clusters.known(deployment, denied)
    names = of_clusters.names(clusters)
    existing = {each.physical_id for name in names for each in stacks.existing(deployment, name)}
    deleted = permitted(of_clusters.deleted_stacks(deployment, names), denied)
    searches = [
        of_clusters.kept(deployment, names),
        of_clusters.tagged(deployment, "storage"),
        of_clusters.tagged(deployment, "team"),
        *_searches(deployment, clusters, {each["StackId"].rpartition("/")[2] for each in deleted}),
    ]
    by_key: dict[Key, Leftover] = {}
    for search in searches:
        for each in permitted(search, denied):
            if each.id.removeprefix("/aws/lambda/") not in existing and each.id not in existing:
                by_key.setdefault(each.key, each)
    return sorted(by_key.values(), key=lambda each: (REMOVAL_ORDER.index(each.type), each.id))


def _searches(
    deployment: Deployment, clusters: Sequence[Deployment], deleted: Set[str]
) -> Iterator[Iterator[Leftover]]:
    """Yield the searches by tag and name; those for a cluster only where its own stack, which has it all, is deleted.

    ParallelCluster makes names of functions of the last parts of stacks' ids: `deleted` are those of deleted ones.
    """
    yield _logs_of_functions(deployment, {each.stack_name(part) for each in clusters for part in PARTS}, deleted)
    yield _snapshots(deployment)
    if _has_team(deployment):
        yield _recovery_points(deployment)
        yield _database_snapshots(deployment)
    are_deleted = []
    for each in clusters:
        name, stack = each.settings.cluster_spec.name, each.stack_name("cluster")
        yield _logs_of_cluster(each, name)
        if each.stack(name) is None:
            yield from (_tagged(each, name, kind.type, *kind.tagged) for kind in LEFT if kind.tagged)
            for search in (_detached_interfaces, _launch_templates, _tables, _zones, _prefixes):
                yield search(each, name)
        if each.stack(stack) is None:
            yield _placement_groups(each, stack)
        are_deleted.append(each.stack(name) is None and each.stack(stack) is None)
        if are_deleted[-1]:
            yield _parameters(each, name)
    if all(are_deleted):
        yield _commands(deployment)


def _snapshots(deployment: Deployment) -> Iterator[Leftover]:
    """Yield the snapshots of head nodes, which no stack has and which outlive the policy that made them."""
    for each in backups.of_head_nodes(deployment):
        kind = "last one of" if each.final_of == deployment.settings.name else "of"
        reason = f"{kind} the head node's volume {each.of}, for ./ultracluster restore"
        yield Leftover(type="AWS::EC2::Snapshot", id=each.id, reason=reason, kept_on_purpose=True)


def _has_team(deployment: Deployment) -> bool:
    """Tell whether there are homes or a database, or were in the last 90 days."""
    name = deployment.stack_name("team")
    if "team" in deployment.settings.parts or deployment.stack(name) is not None:
        return True
    return any(each["StackName"] == name for each in stacks.deleted(deployment))


def _recovery_points(deployment: Deployment) -> Iterator[Leftover]:
    """Yield the last backups of homes on EFS, and the vault that has them, or has none any more."""
    vault = backups.vault_name(deployment)
    if not backups.has_vault(deployment.account, vault):
        return
    points = backups.of_homes(deployment)
    for each in points:
        kind, reason = "AWS::Backup::RecoveryPoint", f"last backup of {each.of}"
        yield Leftover(type=kind, id=each.id, reason=reason, kept_on_purpose=True)
    reason = "has last backups of homes" if points else "had last backups of homes, and is empty"
    yield Leftover(type="AWS::Backup::BackupVault", id=vault, reason=reason, kept_on_purpose=bool(points))


def _database_snapshots(deployment: Deployment) -> Iterator[Leftover]:
    for each in backups.of_databases(deployment.account):
        if each.final_of == deployment.settings.name:
            reason = f"last backup of {each.of}"
            yield Leftover(type="AWS::RDS::DBSnapshot", id=each.id, reason=reason, kept_on_purpose=True)


def _tagged(deployment: Deployment, cluster: str, kind: str, operation: str, path: str) -> Iterator[Leftover]:
    tag = filters({f"tag:{_CLUSTER_TAG}": [cluster]})
    pages = (
        deployment.account.client("ec2")
        .get_paginator(operation)
        .paginate(Filters=tag, PaginationConfig={"PageSize": 1000})
    )
    for each in pages.search(path):
        yield Leftover(type=kind, id=each, reason=f"tag {_CLUSTER_TAG}={cluster}")


def _detached_interfaces(deployment: Deployment, cluster: str) -> Iterator[Leftover]:
    """Yield the detached interfaces in a cluster's security groups, which they keep in use.

    ParallelCluster has EC2 tag nodes and volumes at their launch, but no interfaces
    (aws-parallelcluster 3.16.1, pcluster/templates/queues_stack.py).
    """
    tag = filters({f"tag:{_CLUSTER_TAG}": [cluster]})
    groups = [each["GroupId"] for each in deployment.account.list("ec2", "describe_security_groups", Filters=tag)]
    if groups:
        detached = filters({"group-id": groups, "status": ["available"]})
        for each in deployment.account.list("ec2", "describe_network_interfaces", Filters=detached):
            reason = f"in security groups with tag cluster-name={cluster}, attached to nothing"
            yield Leftover(type="AWS::EC2::NetworkInterface", id=each["NetworkInterfaceId"], reason=reason)


def _launch_templates(deployment: Deployment, cluster: str) -> Iterator[Leftover]:
    """Yield launch templates that tag their instances with the cluster's name; their own names could be another's."""
    ec2 = deployment.account.client("ec2")
    tag = {"Key": _CLUSTER_TAG, "Value": cluster}
    named = filters({"launch-template-name": [f"{cluster}-*"]})
    for each in deployment.account.list("ec2", "describe_launch_templates", Filters=named):
        template = each["LaunchTemplateId"]
        [version] = ec2.describe_launch_template_versions(LaunchTemplateId=template, Versions=["$Latest"])[
            "LaunchTemplateVersions"
        ]
        if any(tag in tags["Tags"] for tags in version["LaunchTemplateData"].get("TagSpecifications", [])):
            reason = f"tags its instances with cluster-name={cluster}"
            yield Leftover(type="AWS::EC2::LaunchTemplate", id=template, reason=reason)


def _placement_groups(deployment: Deployment, stack: str) -> Iterator[Leftover]:
    start = f"{stack}-ClusterPlacementGroups"  # as CloudFormation makes names of ours
    for each in deployment.account.client("ec2").describe_placement_groups()["PlacementGroups"]:
        if each["GroupName"].startswith(start) and each["State"] != "deleted":
            yield Leftover(type="AWS::EC2::PlacementGroup", id=each["GroupName"], reason="its name")


def _tables(deployment: Deployment, cluster: str) -> Iterator[Leftover]:
    tables = deployment.account.list("dynamodb", "list_tables")
    client = deployment.account.client("dynamodb")
    for name in (f"parallelcluster-{cluster}", f"parallelcluster-slurm-{cluster}"):
        if name in tables:
            table = client.describe_table(TableName=name)["Table"]["TableArn"]
            tags = client.list_tags_of_resource(ResourceArn=table)["Tags"]
            if {"Key": _CLUSTER_TAG, "Value": cluster} in tags:
                reason = f"tag {_CLUSTER_TAG}={cluster}"
                yield Leftover(type="AWS::DynamoDB::Table", id=name, reason=reason)


def _zones(deployment: Deployment, cluster: str) -> Iterator[Leftover]:
    """Yield the cluster's zone; zones are global, and one of that name can be of a cluster in another Region."""
    for each in deployment.account.list("route53", "list_hosted_zones"):
        if each["Name"] == f"{cluster}.pcluster.":
            zone = deployment.account.ask("route53", "get_hosted_zone", Id=each["Id"])
            if {vpc["VPCRegion"] for vpc in zone.get("VPCs", [])} == {deployment.settings.region}:
                reason = f"its name, {each['Name']}, and Region"
                yield Leftover(type="AWS::Route53::HostedZone", id=each["Id"].rpartition("/")[2], reason=reason)


def _parameters(deployment: Deployment, cluster: str) -> Iterator[Leftover]:
    start = [{"Key": "Name", "Option": "BeginsWith", "Values": [f"/ultracluster/{cluster}/"]}]
    for each in deployment.account.list("ssm", "describe_parameters", ParameterFilters=start):
        yield Leftover(type="AWS::SSM::Parameter", id=each["Name"], reason="its name")


def parallelcluster_bucket(deployment: Deployment) -> str:
    """Return the name of ParallelCluster's bucket (aws-parallelcluster 3.16.1, pcluster/models/s3_bucket.py)."""
    account = deployment.account.ask("sts", "get_caller_identity")["Account"]
    digest = hashlib.sha256((account + deployment.settings.region).encode()).hexdigest()
    return f"parallelcluster-{digest[:16]}-v1-do-not-delete"


def _prefixes(deployment: Deployment, cluster: str) -> Iterator[Leftover]:
    """Yield what the bucket that all clusters share still has of one, of every ParallelCluster and object version.

    One call for each version of ParallelCluster that the account has used in the Region.
    """
    bucket = parallelcluster_bucket(deployment)
    if not exists(deployment, "AWS::S3::Bucket", bucket):
        return
    own = re.compile(rf"parallelcluster/[^/]+/clusters/{re.escape(cluster)}-[a-z0-9]{{16}}/")
    for version in _folders(deployment, bucket, "parallelcluster/"):
        for each in _folders(deployment, bucket, f"{version}clusters/{cluster}-"):
            if own.fullmatch(each):
                yield Leftover(type=PREFIX, id=f"s3://{bucket}/{each}", reason="the cluster's name in it")


def _folders(deployment: Deployment, bucket: str, prefix: str) -> Iterator[str]:
    listed = deployment.account.client("s3").get_paginator("list_object_versions")
    pages = listed.paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    return (each for each in pages.search("CommonPrefixes[].Prefix") if each)


def _logs_of_cluster(deployment: Deployment, cluster: str) -> Iterator[Leftover]:
    kept = deployment.settings.cluster.monitoring.retain_logs
    own = re.compile(rf"/aws/parallelcluster/{re.escape(cluster)}-\d{{12}}")
    for each in _logs(deployment, f"/aws/parallelcluster/{cluster}-", own, "logs of the cluster"):
        yield each.model_copy(update={"kept_on_purpose": kept})


def _commands(deployment: Deployment) -> Iterator[Leftover]:
    name = log_group(deployment)
    yield from _logs(deployment, name, re.compile(re.escape(name)), "commands run on the head node")


def _logs_of_functions(deployment: Deployment, own_stacks: Set[str], deleted: Set[str]) -> Iterator[Leftover]:
    """Yield logs of functions; these are named after their stack, its id or its name."""
    start = "/aws/lambda/pcluster-"
    for each in _logs(deployment, start, re.compile(".*"), "log of a Lambda function of a deleted stack"):
        if each.id[-_UUID:] in deleted:
            yield each
    own = re.compile(rf"/aws/lambda/(?:{'|'.join(map(re.escape, own_stacks))})-[A-Z].*")  # then comes the logical id
    yield from _logs(deployment, f"/aws/lambda/{deployment.settings.name}-", own, "log of a Lambda function")


def _logs(deployment: Deployment, prefix: str, own: re.Pattern[str], reason: str) -> Iterator[Leftover]:
    """Yield the log groups with a prefix that match a pattern whole."""
    for each in deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=prefix):
        if own.fullmatch(each["logGroupName"]):
            yield Leftover(type="AWS::Logs::LogGroup", id=each["logGroupName"], reason=reason)
