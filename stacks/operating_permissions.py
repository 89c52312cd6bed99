"""What a pipeline may do to a deployment by itself, beside what the CDK deploys in roles of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from config.settings import Settings
from ultracluster.domain.roles import names_of_role

WILDCARDS = {
    "Action::ec2:Describe": "looking at every kind of thing that a deployment is made of",
    "Action::s3:GetBucket": "looking at the settings of a bucket, for drift",
    "Resource::*": "actions that know no resources, or look at what others made",
    "Resource::arn:aws:cloudformation:": "stacks of this deployment, by name; their ids end in what nobody knows yet",
    "Resource::arn:aws:dynamodb:": "tables of ParallelCluster, by name, for clusters to come",
    "Resource::arn:aws:ec2:": "instances, volumes, groups, if tagged with the cluster's or stack's name; snapshots",
    "Resource::arn:aws:lambda:": "the CDK's function in a network stack, by name",
    "Resource::arn:aws:elasticfilesystem:": "the homes, if tagged with their stack's name",
    "Resource::arn:aws:fsx:": "the file system, if tagged with its stack's name, and backups",
    "Resource::arn:aws:iam:": "the role of backups of homes, by its stack's name",
    "Resource::arn:aws:rds:": "the database, if tagged with its stack's name, and its last snapshot",
    "Resource::arn:aws:logs:*:*:log-group:/aws/": "logs of ParallelCluster and its provider, by name",
    "Resource::arn:aws:s3:::cdk-": "encryption of the bucket of `cdk bootstrap`, by name",
    "Resource::arn:aws:ssm:*:*:document/": "documents of this project that open sessions, by name",
    "Resource::arn:aws:ssm:*:*:parameter/": "parameters of this project and of `cdk bootstrap`, by name",
}
"""Reasons for the wildcards in these permissions and in those of programs that read, for `acknowledge_wildcards`."""


def ask_head_node(stack: cdk.Stack, settings: Settings) -> list[iam.PolicyStatement]:
    """Return the permissions to run commands on the cluster's instances; commands run as root.

    The result of a command, and its cancellation, know no resources: the id of any command is enough.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/run-command-setting-up.html#tag-based-access,
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
    """
    document = f"arn:aws:ssm:{settings.region}::document/AWS-RunShellScript"
    instances = _arns(stack, settings, "ec2", "instance", "*")
    return [
        _allow(["ssm:SendCommand"], [document]),
        _allow(["ssm:SendCommand"], instances, _of_cluster("ssm:resourceTag", settings)),
        _allow(["ssm:CancelCommand", "ssm:GetCommandInvocation"], ["*"]),
    ]


def stop_and_destroy(stack: cdk.Stack, settings: Settings) -> list[iam.PolicyStatement]:
    """Return the permissions to stop the fleet and destroy the deployment, head node and file system after backups.

    CloudFormation deletes a stack in the role that created it, so few permissions are needed.
    """
    clusters = _cluster_names(settings)
    tables = [f"parallelcluster-{name}" for name in clusters]
    parts = [f"{settings.name}-{part}" for part in ("network", "storage", "team", "cluster", "cluster-*", "monitoring")]
    stacks = [f"{name}/*" for name in (*parts, *clusters)]
    of_storage = {"StringEquals": {"aws:ResourceTag/aws:cloudformation:stack-name": settings.stack_name("storage")}}

    def arns(service: str, kind: str, *names: str) -> list[str]:
        return _arns(stack, settings, service, kind, *names)

    snapshots = [f"arn:aws:ec2:{settings.region}::snapshot/*"]  # of no account
    return [
        _allow(["dynamodb:UpdateItem"], arns("dynamodb", "table", *tables)),
        _allow(
            ["cloudformation:DeleteStack", "cloudformation:UpdateTerminationProtection"],
            arns("cloudformation", "stack", *stacks),
        ),
        _allow(["ec2:TerminateInstances"], arns("ec2", "instance", "*"), _of_cluster("ec2:ResourceTag", settings)),
        _allow(["ec2:CreateSnapshot"], arns("ec2", "volume", "*"), _of_cluster("ec2:ResourceTag", settings)),
        _allow(["ec2:CreateSnapshot"], snapshots),
        _allow(["ec2:CreateTags"], snapshots, {"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}}),
        _allow(["ec2:DeleteSecurityGroup"], arns("ec2", "security-group", "*"), of_storage),
        _allow(["fsx:CreateBackup", "fsx:DeleteFileSystem"], arns("fsx", "file-system", "*"), of_storage),
        _allow(["fsx:CreateBackup", "fsx:TagResource"], arns("fsx", "backup", "*")),
        *(_end_team(stack, settings) if "team" in settings.parts else []),
    ]


def _end_team(stack: cdk.Stack, settings: Settings) -> list[iam.PolicyStatement]:
    """Return the permissions to delete homes and database after last backups."""
    name = settings.stack_name("team")
    of_team = {"StringEquals": {"aws:ResourceTag/aws:cloudformation:stack-name": name}}

    def arn(service: str, kind: str, resource: str, *, colon: bool = False) -> str:
        form = cdk.ArnFormat.COLON_RESOURCE_NAME if colon else cdk.ArnFormat.SLASH_RESOURCE_NAME
        return stack.format_arn(
            service=service, region=settings.region, resource=kind, resource_name=resource, arn_format=form
        )

    vault = arn("backup", "backup-vault", f"{settings.name}-homes", colon=True)
    role = names_of_role(settings.roles, name, "HomesBackupRole")
    databases, snapshots = arn("rds", "db", "*", colon=True), arn("rds", "snapshot", "*-final-*", colon=True)
    elastic = [f"elasticfilesystem:{each}" for each in ("DeleteFileSystem", "DeleteMountTarget")]
    deletion = ["rds:CreateDBSnapshot", "rds:DeleteDBInstance", "rds:ModifyDBInstance"]
    roles = stack.format_arn(service="iam", region="", resource="role", resource_name=role)
    to_backup = {"StringEquals": {"iam:PassedToService": "backup.amazonaws.com"}}
    return [
        _allow(["ec2:DeleteSecurityGroup"], [arn("ec2", "security-group", "*")], of_team),
        _allow(["fsx:CreateBackup", "fsx:DeleteFileSystem"], [arn("fsx", "file-system", "*")], of_team),
        _allow(elastic, [arn("elasticfilesystem", "file-system", "*")], of_team),
        _allow(["backup:CreateBackupVault", "backup:StartBackupJob", "backup:TagResource"], [vault]),
        _allow(["backup:DescribeBackupJob", "backup:ListBackupJobs"], ["*"]),
        _allow(["iam:PassRole"], [roles], to_backup),
        _allow(deletion, [databases], of_team),
        _allow(["rds:AddTagsToResource", "rds:CreateDBSnapshot"], [snapshots]),
    ]


def _arns(stack: cdk.Stack, settings: Settings, service: str, kind: str, *names: str) -> list[str]:
    return [
        stack.format_arn(service=service, region=settings.region, resource=kind, resource_name=name) for name in names
    ]


def _allow(
    actions: list[str], resources: list[str], conditions: Mapping[str, Any] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)


def _of_cluster(key: str, settings: Settings) -> dict[str, Any]:
    """Return the condition that ParallelCluster tagged an instance with the name of the cluster."""
    return {"StringLike": {f"{key}/parallelcluster:cluster-name": _cluster_names(settings)}}


def _cluster_names(settings: Settings) -> list[str]:
    """Return the name of the first cluster, and patterns for those of generations 2 to 99: IAM knows no digits."""
    name = settings.cluster.name or settings.name
    return [name, f"{name}-?", f"{name}-??"]
