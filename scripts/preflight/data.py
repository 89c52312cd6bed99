"""What the file system and the cluster take from the account: buckets, a key, secrets, a role."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from config.messages import dotted
from scripts.aws_errors import is_denied, is_not_found
from scripts.deployment import Deployment
from scripts.preflight.check import Finding, Status, check
from ultracluster.domain.cluster_configuration import secret_arns

_SERVICE_ROLE = "AWSServiceRoleForAmazonFSx"

_KEY_STATES = {"Disabled": "enable-key", "PendingDeletion": "cancel-key-deletion"}
"""What the AWS CLI does about a key that is not enabled; a key is disabled after its deletion was cancelled."""


@check(
    "data-bucket",
    "Buckets behind the file system",
    prevents="The storage stack would fail at the link to S3, after the file system was made.",
    calls=("s3:ListBucket",),
)
def data_bucket(deployment: Deployment) -> Iterator[Finding]:
    """Ask for each bucket that exists already.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html,
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
    """
    from botocore.exceptions import ClientError

    links = enumerate(deployment.settings.storage.data_repositories)
    places = {link.bucket: f"storage.data_repositories[{index}].bucket" for index, link in links if link.bucket}
    for bucket, place in places.items():
        command = deployment.command("s3api", "head-bucket", "--bucket", bucket)
        try:
            region = deployment.account.ask("s3", "head_bucket", Bucket=bucket)["BucketRegion"]
        except ClientError as error:
            status, sentence, hint = _absent(deployment, bucket, place, error)
        else:
            status, sentence, hint = Status.PASS, f"{bucket} is in {region} and can be reached", ""
            if region != deployment.settings.region:
                sentence = f"{bucket} is in {region}; allowed: {deployment.settings.region}, that of the file system"
                status, hint = Status.FAIL, f"change `{place}`, or copy the data to a bucket there"
        yield Finding(status, sentence, hint, command, bucket)


def _absent(deployment: Deployment, bucket: str, place: str, error: Any) -> tuple[Status, str, str]:
    """Tell what an answer without a body means, which is all that HeadBucket has for errors."""
    if is_not_found(error):
        hint = f"change `{place}`, or `{deployment.command('s3', 'mb', f's3://{bucket}')}`"
        return Status.FAIL, f"there is no bucket {bucket}", hint
    if not is_denied(error):
        raise error
    sentence = f"{bucket} exists, but not for these credentials: it is another account's, or they lack s3:ListBucket"
    hint = f"see that `{place}` is the bucket that you mean; if so, allow s3:ListBucket on arn:aws:s3:::{bucket}"
    return Status.UNKNOWN, sentence, hint


@check(
    "kms-key",
    "Key of the file system",
    prevents="FSx would refuse the file system, or lose access to it.",
    calls=("kms:DescribeKey", "kms:GetKeyPolicy"),
)
def kms_key(deployment: Deployment) -> Iterator[Finding]:
    """Look at the key's state, kind and policy.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/encryption-at-rest.html,
    https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
    """
    from botocore.exceptions import ClientError

    arn = deployment.settings.storage.file_system.kms_key_arn
    if arn is None:
        return
    command = deployment.command("kms", "describe-key", "--key-id", arn)
    try:
        key = deployment.account.ask("kms", "describe_key", KeyId=arn)["KeyMetadata"]
    except ClientError as error:
        if not is_not_found(error):
            raise
        yield Finding(Status.FAIL, f"there is no key {arn}", "change `storage.file_system.kms_key_arn`", command)
        return
    if (key["KeySpec"], key["KeyUsage"]) != ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"):
        sentence = f"{arn} is of {key['KeySpec']} for {key['KeyUsage']}; allowed: SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT"
        yield Finding(Status.FAIL, sentence, "change `storage.file_system.kms_key_arn`", command)
    elif key["KeyState"] != "Enabled":
        action = _KEY_STATES.get(key["KeyState"])
        mended = f"`{deployment.command('kms', action, '--key-id', arn)}`" if action else "wait"
        sentence = f"{arn} is in the state {key['KeyState']}; allowed: Enabled"
        yield Finding(Status.FAIL, sentence, f"{mended}, or change `storage.file_system.kms_key_arn`", command)
    else:
        yield _judged(deployment, arn)


def _judged(deployment: Deployment, arn: str) -> Finding:
    """Judge the policy of a key by whether it leaves the account's IAM to decide, or lets FSx use the key."""
    policy = json.loads(deployment.account.ask("kms", "get_key_policy", KeyId=arn, PolicyName="default")["Policy"])
    command = deployment.command("kms", "get-key-policy", "--key-id", arn, "--policy-name", "default")
    account, fsx = arn.split(":")[4], f"fsx.{deployment.settings.region}.amazonaws.com"
    granting = [each for each in _listed(policy["Statement"]) if _allows(each, "kms:CreateGrant")]
    if any(_is_of_account(each, account) for each in granting):
        return Finding(Status.PASS, f"{arn} is enabled, and its policy leaves it to IAM who uses it", "", command)
    if any(fsx in json.dumps(each.get("Condition", {})) for each in granting):
        return Finding(Status.PASS, f"{arn} is enabled, and its policy lets it be used by way of {fsx}", "", command)
    sentence = f"the policy of {arn} neither leaves it to the account's IAM who uses it nor names {fsx}"
    hint = f"let it allow kms:CreateGrant and kms:DescribeKey where kms:ViaService is {fsx}"
    return Finding(Status.WARN, sentence, hint, command)


def _is_of_account(statement: dict[str, Any], account: str) -> bool:
    principal = statement.get("Principal", {})
    named = _listed(principal.get("AWS", []) if isinstance(principal, dict) else principal)
    return "Condition" not in statement and any(
        each in named for each in ("*", account, f"arn:aws:iam::{account}:root")
    )


@check(
    "secrets",
    "Secrets that overrides name",
    prevents="ParallelCluster would refuse the cluster, or the head node would not start for want of a password.",
    calls=("secretsmanager:DescribeSecret", "secretsmanager:GetResourcePolicy"),
)
def secrets(deployment: Deployment) -> Iterator[Finding]:
    """Look at each secret of cluster.overrides, and at who may read it."""
    for place, arn in secret_arns(deployment.settings.cluster.overrides, ("cluster", "overrides")):
        command = deployment.command("secretsmanager", "describe-secret", "--secret-id", arn)
        status, sentence, hint = _secret(deployment, arn, dotted(place))
        yield Finding(status, sentence, hint, command, arn.rpartition(":")[2])


def _secret(deployment: Deployment, arn: str, place: str) -> tuple[Status, str, str]:
    from botocore.exceptions import ClientError

    region, another = deployment.settings.region, f"change `{place}`"
    if arn.split(":")[2:4] != ["secretsmanager", region]:
        return Status.FAIL, f"got {arn}; allowed: a secret of Secrets Manager in {region}", another
    try:
        found = deployment.account.ask("secretsmanager", "describe_secret", SecretId=arn)
    except ClientError as error:
        if not is_not_found(error):
            raise
        return Status.FAIL, f"there is no secret {arn}", another
    if "DeletedDate" in found:
        hint = f"`{deployment.command('secretsmanager', 'restore-secret', '--secret-id', arn)}`, or {another}"
        return Status.FAIL, f"{arn} is scheduled for deletion on {found['DeletedDate']:%Y-%m-%d}", hint
    status, sentence, hint = _secret_policy(deployment, arn, place)
    if key := found.get("KmsKeyId"):
        allowing = f"let {key} allow kms:Decrypt to whoever reads it, or encrypt the secret with aws/secretsmanager"
        status, hint = Status.WARN, "; ".join(filter(None, (hint, allowing)))
        sentence = f"{sentence}; reading it also takes kms:Decrypt on {key}"
    return status, sentence, hint


def _secret_policy(deployment: Deployment, arn: str, place: str) -> tuple[Status, str, str]:
    """Judge by a secret's resource policy whether the head node and ParallelCluster's provider may use it.

    ParallelCluster lets the head node's role read it (aws-parallelcluster 3.16.1, templates/cdk_builder_utils.py). The
    cluster's stack lets the provider describe a password and read a Munge key, as its validators do.
    """
    document = deployment.account.ask("secretsmanager", "get_resource_policy", SecretId=arn).get("ResourcePolicy")
    if document and any(each["Effect"] == "Deny" for each in _listed(json.loads(document)["Statement"])):
        sentence = f"the policy of {arn} denies something"
        return Status.WARN, sentence, "see that it is neither the provider nor the head node that is denied"
    verb = "read" if place.endswith("MungeKeySecretArn") else "describe"
    return Status.PASS, f"{arn} exists; the role of the head node may read it, that of the provider may {verb} it", ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _allows(statement: dict[str, Any], action: str) -> bool:
    patterns = _listed(statement.get("Action", []))
    return statement["Effect"] == "Allow" and any(fnmatchcase(action.lower(), each.lower()) for each in patterns)


@check(
    "fsx-service-role",
    "Service-linked role of FSx",
    prevents="The first file system of the account would fail if the deployer may not create the role.",
    calls=("iam:GetRole",),
)
def fsx_service_role(deployment: Deployment) -> Iterator[Finding]:
    """Look for the role with which FSx makes its network interfaces, and which it creates itself with its first use.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html
    """
    from botocore.exceptions import ClientError

    command = deployment.command("iam", "get-role", "--role-name", _SERVICE_ROLE)
    try:
        deployment.account.ask("iam", "get_role", RoleName=_SERVICE_ROLE)
    except ClientError as error:
        if not is_not_found(error):
            raise
        words = ("iam", "create-service-linked-role", "--aws-service-name", "fsx.amazonaws.com")
        sentence = f"there is no {_SERVICE_ROLE} yet; FSx creates it if the deployer has iam:CreateServiceLinkedRole"
        yield Finding(Status.WARN, sentence, f"`{deployment.command(*words)}`", command)
    else:
        yield Finding(Status.PASS, f"{_SERVICE_ROLE} exists", "", command)


CHECKS = (data_bucket, kms_key, secrets, fsx_service_role)
