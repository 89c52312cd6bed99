"""What a leftover is, and whether it is still there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from scripts.aws_errors import is_denied, is_not_found
from scripts.deployment import Deployment

if TYPE_CHECKING:
    pass

_T = TypeVar("_T")

PREFIX = "prefix of a bucket"
"""The type of what ParallelCluster keeps of one cluster in its bucket, which all clusters of a Region share."""

FINAL_BACKUP = "ultracluster:final-backup-of"
"""Tag of a backup that was made before its file system was deleted; its value is the deployment."""

_HOLDS_DATA = ("AWS::EC2::Snapshot", "AWS::EC2::Volume", "AWS::FSx::Backup", "AWS::FSx::FileSystem", "AWS::S3::Bucket")
_PROVIDER_BUCKET = "-pclustercustomresourcebu"
"""Within the name that CloudFormation makes for the bucket of ParallelCluster's provider, which keeps its requests."""


def holds_data(kind: str, name: str) -> bool:
    """Tell whether a resource holds data of people, so that only who asked for it may remove it."""
    return kind in _HOLDS_DATA and _PROVIDER_BUCKET not in name


PASSES = re.compile(
    r"in ?use|has a dependent object|has dependencies|DependencyViolation|Rate exceeded|Throttling|RequestLimitExceeded"
    r"|Internal ?Failure|ServiceUnavailable",
    re.IGNORECASE,
)
"""Reasons for which the same deletion works some minutes later: instances that stop hold the placement group for more
than 15 minutes (https://github.com/aws/aws-parallelcluster/issues/6329), and AWS gives back network interfaces, which
hold security groups and subnets, with a delay
(https://repost.aws/knowledge-center/cloudformation-stack-delete-failed)."""


@dataclass(frozen=True)
class Found:
    """Something that is left.

    Attributes:
        type: As CloudFormation names it, or `PREFIX`.
        id: What its service calls it.
        reason: Why it is taken for something of the deployment.
        kept: Whether it was left on purpose, by the settings or by a policy of its stack.
        stack: Name of the deleted stack that kept it; empty: it is not known by that.
    """

    type: str
    id: str
    reason: str
    kept: bool = False
    stack: str = ""

    @property
    def data(self) -> bool:
        """Whether it holds data of people, so that only who asked for it may remove it."""
        return holds_data(self.type, self.id)

    @property
    def is_swept(self) -> bool:
        """Whether it may be removed without a word of its own: nothing keeps it on purpose, and it holds no data."""
        return not (self.kept or self.data)


def allowed(look: Callable[[], Iterable[_T]], missing: list[str] | None) -> list[_T]:
    """Return what a look finds; where a right is missing, what it had found until then.

    Args:
        look: Asks AWS.
        missing: Takes the refusal; None: it is raised.
    """
    found: list[_T] = []
    try:
        for each in look():
            found.append(each)
    except Exception as error:
        if missing is None or not is_denied(error):
            raise
        if str(error) not in missing:
            missing.append(str(error))
    return found


def _described(
    service: str, operation: str, parameter: str, *, many: bool = False
) -> Callable[[Deployment, str], bool]:
    """Return a test whether something exists: a call that fails if it does not."""

    def exists(deployment: Deployment, name: str) -> bool:
        from botocore.exceptions import ClientError

        client = deployment.account.client(service)
        try:
            getattr(client, operation)(**{parameter: [name] if many else name})
        except ClientError as error:
            if is_not_found(error):
                return False
            raise
        return True

    return exists


def _log_group_exists(deployment: Deployment, name: str) -> bool:
    groups = deployment.account.list("logs", "describe_log_groups", logGroupNamePrefix=name)
    return name in [each["logGroupName"] for each in groups]


EXISTS: dict[str, Callable[[Deployment, str], bool]] = {
    "AWS::DynamoDB::Table": _described("dynamodb", "describe_table", "TableName"),
    "AWS::EC2::NetworkInterface": _described("ec2", "describe_network_interfaces", "NetworkInterfaceIds", many=True),
    "AWS::EC2::PlacementGroup": _described("ec2", "describe_placement_groups", "GroupNames", many=True),
    "AWS::EC2::SecurityGroup": _described("ec2", "describe_security_groups", "GroupIds", many=True),
    "AWS::FSx::FileSystem": _described("fsx", "describe_file_systems", "FileSystemIds", many=True),
    "AWS::IAM::InstanceProfile": _described("iam", "get_instance_profile", "InstanceProfileName"),
    "AWS::IAM::Role": _described("iam", "get_role", "RoleName"),
    "AWS::Lambda::Function": _described("lambda", "get_function", "FunctionName"),
    "AWS::Logs::LogGroup": _log_group_exists,
    "AWS::S3::Bucket": _described("s3", "head_bucket", "Bucket"),
}
"""How to tell whether something exists that a stack kept, by type; other types of ours are not kept."""
