"""The IAM policies of commands, for roles that run them in a pipeline."""

from __future__ import annotations

from typing import Any

from scripts.check.preflight.catalog import CATALOG, allowing
from scripts.check.preflight.check import Permission

_STATUS = (
    Permission("cloudformation:DescribeStacks"),
    Permission("cloudwatch:DescribeAlarms"),
    Permission("cloudwatch:GetMetricData"),
    Permission("dynamodb:GetItem", "arn:aws:dynamodb:*:*:table/parallelcluster-*"),
    Permission("ec2:DescribeCapacityReservations"),
    Permission("ec2:DescribeInstances"),
    Permission("elasticfilesystem:DescribeFileSystems"),
    Permission("fsx:DescribeFileSystems"),
    Permission("resource-groups:ListGroupResources"),
)
"""Without permission to run commands on the head node, which are root's: whoever has it has the cluster."""
_PROGRESS = (
    Permission("cloudformation:DescribeChangeSet"),
    Permission("cloudformation:DescribeStackEvents"),
    Permission("cloudformation:GetTemplate"),
)
_PLAN = (Permission("cloudformation:GetTemplate"), Permission("cloudformation:ListStackResources"))
_OWN_FUNCTIONS = "arn:aws:lambda:*:*:function:*-CustomVpcRestrict*"
"""The one function of these stacks, which the CDK writes: a function's answer has a link to its code, and variables.

CloudFormation makes its name of the stack's name, which it may shorten, and the logical id.
"""
_SESSIONS = "arn:aws:ssm:*:*:document/ultracluster-*"
_DRIFT = (
    Permission("billing:GetBillingViewData"),
    Permission("budgets:ListTagsForResource"),
    Permission("budgets:ViewBudget"),
    Permission("cloudformation:DescribeStackDriftDetectionStatus"),
    Permission("cloudformation:DescribeStackResourceDrifts"),
    Permission("cloudformation:DetectStackDrift"),
    Permission("cloudformation:DetectStackResourceDrift"),
    Permission("cloudformation:GetStackPolicy"),
    Permission("cloudwatch:GetDashboard"),
    Permission("cloudwatch:ListTagsForResource"),
    Permission("dlm:GetLifecyclePolicy"),
    Permission("ec2:DescribeAccountAttributes"),
    Permission("ec2:DescribeFlowLogs"),
    Permission("ec2:DescribeInternetGateways"),
    Permission("ec2:DescribeSecurityGroupRules"),
    Permission("ec2:DescribeVpcEncryptionControls"),
    Permission("ec2:DescribeVpnGateways"),
    Permission("elasticfilesystem:DescribeBackupPolicy"),
    Permission("elasticfilesystem:DescribeFileSystemPolicy"),
    Permission("elasticfilesystem:DescribeLifecycleConfiguration"),
    Permission("elasticfilesystem:DescribeMountTargetSecurityGroups"),
    Permission("elasticfilesystem:DescribeReplicationConfigurations"),
    Permission("fsx:DescribeDataRepositoryAssociations"),
    Permission("fsx:ListTagsForResource"),
    Permission("iam:GetPolicyVersion"),
    Permission("iam:GetRolePolicy"),
    Permission("iam:ListAttachedRolePolicies"),
    Permission("iam:ListEntitiesForPolicy"),
    Permission("iam:ListPolicyVersions"),
    Permission("iam:ListRolePolicies"),
    Permission("kms:GetKeyRotationStatus"),
    Permission("kms:ListResourceTags"),
    Permission("lambda:GetFunction", _OWN_FUNCTIONS),
    Permission("lambda:GetFunctionCodeSigningConfig", _OWN_FUNCTIONS),
    Permission("lambda:GetFunctionRecursionConfig", _OWN_FUNCTIONS),
    Permission("lambda:GetFunctionScalingConfig", _OWN_FUNCTIONS),
    Permission("lambda:GetRuntimeManagementConfig", _OWN_FUNCTIONS),
    Permission("logs:DescribeIndexPolicies"),
    Permission("logs:DescribeLogGroups"),
    Permission("logs:DescribeResourcePolicies"),
    Permission("logs:GetDataProtectionPolicy"),
    Permission("logs:ListTagsForResource"),
    Permission("rds:DescribeDBParameterGroups"),
    Permission("rds:DescribeDBParameters"),
    Permission("rds:DescribeDBSubnetGroups"),
    Permission("rds:ListTagsForResource"),
    Permission("s3:GetAccelerateConfiguration"),
    Permission("s3:GetAnalyticsConfiguration"),
    Permission("s3:GetBucket*"),
    Permission("s3:GetIntelligentTieringConfiguration"),
    Permission("s3:GetInventoryConfiguration"),
    Permission("s3:GetLifecycleConfiguration"),
    Permission("s3:GetMetricsConfiguration"),
    Permission("s3:GetReplicationConfiguration"),
    Permission("s3:ListTagsForResource"),
    Permission("sns:GetDataProtectionPolicy"),
    Permission("sns:GetSubscriptionAttributes"),
    Permission("sns:GetTopicAttributes"),
    Permission("sns:ListSubscriptionsByTopic"),
    Permission("sns:ListTagsForResource"),
    Permission("ssm:DescribeDocument", _SESSIONS),
    Permission("ssm:DescribeParameters"),
    Permission("ssm:GetDocument", _SESSIONS),
    Permission("ssm:GetParameters", "arn:aws:ssm:*:*:parameter/ultracluster/*"),
    Permission("ssm:ListTagsForResource", "arn:aws:ssm:*:*:parameter/ultracluster/*"),
    Permission("ssm:ListTagsForResource", _SESSIONS),
)
"""CloudFormation reads what it compares with the caller's permissions: those of `handlers.read` in a type's schema.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html,
https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
"""
_DIAGNOSIS = (
    Permission("cloudformation:ListChangeSets"),
    Permission("cloudformation:ListStacks"),
    Permission("logs:FilterLogEvents", "arn:aws:logs:*:*:log-group:/aws/lambda/pcluster-cfn-*"),
    Permission("logs:FilterLogEvents", "arn:aws:logs:*:*:log-group:/aws/parallelcluster/*"),
)
_INVENTORY = (
    Permission("backup:ListBackupVaults"),
    Permission("backup:ListRecoveryPointsByBackupVault"),
    Permission("dynamodb:DescribeTable"),
    Permission("dynamodb:ListTables"),
    Permission("dynamodb:ListTagsOfResource"),
    Permission("ec2:Describe*"),
    Permission("fsx:DescribeBackups"),
    Permission("iam:GetInstanceProfile"),
    Permission("rds:DescribeDBSnapshots"),
    Permission("route53:GetHostedZone"),
    Permission("route53:ListHostedZones"),
    Permission("s3:ListBucketVersions"),
    Permission("secretsmanager:DescribeSecret"),
    Permission("tag:GetResources"),
)


def reviewing() -> dict[str, Any]:
    """Return the policy of `preflight`, `plan` without change sets, `drift`, and `status` without queues."""
    return allowing(_reviewing())


def checking() -> dict[str, Any]:
    """Return the same with the permissions of `diagnose`."""
    return allowing([*_reviewing(), *_DIAGNOSIS])


def deploying() -> dict[str, Any]:
    """Return the same with the permissions of `diagnose` and `inventory`."""
    return allowing([*_reviewing(), *_DIAGNOSIS, *_INVENTORY])


def _reviewing() -> list[Permission]:
    preflight = [permission for check in CATALOG for permission in check.permissions]
    return [*preflight, *_STATUS, *_PROGRESS, *_PLAN, *_DRIFT]
