"""Buckets, keys, secrets and a role of the account that the file system and the cluster use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from config.messages import dotted
from scripts.account.deployment import Deployment
from scripts.check.preflight.check import check
from scripts.core.aws_errors import is_denied
from scripts.core.findings import FAIL, PASS, UNKNOWN, WARN, Finding
from ultracluster.domain.cluster_configuration import secret_arns
from ultracluster.domain.violations import Path

_SERVICE_ROLE = "AWSServiceRoleForAmazonFSx"


@check("data-bucket", "Buckets behind the file system", calls=("s3:ListBucket",))
def data_bucket(deployment: Deployment) -> Iterator[Finding]:
    """The storage stack would fail at the link to S3, after the file system was made.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html,
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
    """
    links = enumerate(deployment.settings.storage.data_repositories)
    paths = {link.bucket: f"storage.data_repositories[{index}].bucket" for index, link in links if link.bucket}
    for bucket, path in paths.items():
        command = deployment.command("s3api", "head-bucket", "--bucket", bucket)
        yield _bucket(deployment, bucket, path).of(bucket, command)


def _bucket(deployment: Deployment, bucket: str, path: str) -> Finding:
    from botocore.exceptions import ClientError

    try:
        answer = deployment.account.find("s3", "head_bucket", Bucket=bucket)
    except ClientError as error:  # HeadBucket has no body for errors, and so no other words for them
        if not is_denied(error):
            raise
        reason = "it is another account's, or they lack s3:ListBucket"
        hint = f"check that `{path}` is the bucket that you mean; if so, allow s3:ListBucket on arn:aws:s3:::{bucket}"
        return Finding(UNKNOWN, f"{bucket} exists, but not for these credentials: {reason}", hint)
    if answer is None:
        return Finding(FAIL, f"there is no bucket {bucket}", f"change `{path}`, or create it")
    region = answer["BucketRegion"]
    if region != deployment.settings.region:
        sentence = f"{bucket} is in {region}; allowed: {deployment.settings.region}, that of the file system"
        return Finding(FAIL, sentence, f"change `{path}`, or copy the data to a bucket there")
    return Finding(PASS, f"{bucket} is in {region} and can be reached")


@check("kms-key", "Key of the file system", calls=("kms:DescribeKey", "kms:GetKeyPolicy"))
def kms_key(deployment: Deployment) -> Finding | None:
    """FSx would reject the file system, or lose access to it.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/encryption-at-rest.html,
    https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
    """
    arn = deployment.settings.storage.file_system.kms_key_arn
    if arn is None:
        return None
    another = "change `storage.file_system.kms_key_arn`"
    command = deployment.command("kms", "describe-key", "--key-id", arn)
    answer = deployment.account.find("kms", "describe_key", KeyId=arn)
    if answer is None:
        return Finding(FAIL, f"there is no key {arn}", another, command)
    key = answer["KeyMetadata"]
    if (key["KeySpec"], key["KeyUsage"]) != ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"):
        sentence = f"{arn} is of {key['KeySpec']} for {key['KeyUsage']}; allowed: SYMMETRIC_DEFAULT, ENCRYPT_DECRYPT"
        return Finding(FAIL, sentence, another, command)
    if key["KeyState"] != "Enabled":
        sentence = f"{arn} is in the state {key['KeyState']}; allowed: Enabled"
        return Finding(
            FAIL, sentence, f"enable it (`aws kms enable-key`, `cancel-key-deletion`), or {another}", command
        )
    return _key_policy(deployment, arn)


def _key_policy(deployment: Deployment, arn: str) -> Finding:
    """Check whether a key's policy leaves it to the account's IAM who uses it, or lets FSx use the key."""
    policy = json.loads(deployment.account.ask("kms", "get_key_policy", KeyId=arn, PolicyName="default")["Policy"])
    command = deployment.command("kms", "get-key-policy", "--key-id", arn, "--policy-name", "default")
    account, fsx = arn.split(":")[4], f"fsx.{deployment.settings.region}.amazonaws.com"
    granting = [each for each in _listed(policy["Statement"]) if _allows(each, "kms:CreateGrant")]
    if any(_is_of_account(each, account) or fsx in json.dumps(each.get("Condition", {})) for each in granting):
        return Finding(PASS, f"{arn} is enabled, and its policy allows FSx to use it", command=command)
    sentence = f"the policy of {arn} neither leaves it to the account's IAM who uses it nor names {fsx}"
    hint = f"let it allow kms:CreateGrant and kms:DescribeKey where kms:ViaService is {fsx}"
    return Finding(WARN, sentence, hint, command)


def _is_of_account(statement: dict[str, Any], account: str) -> bool:
    principal = statement.get("Principal", {})
    named = _listed(principal.get("AWS", []) if isinstance(principal, dict) else principal)
    everybody = ("*", account, f"arn:aws:iam::{account}:root")
    return "Condition" not in statement and any(each in named for each in everybody)


@check(
    "secrets",
    "Secrets that the cluster uses",
    calls=("secretsmanager:DescribeSecret", "secretsmanager:GetResourcePolicy"),
)
def secrets(deployment: Deployment) -> Iterator[Finding]:
    """ParallelCluster would reject the cluster, or the head node would not start without a password."""
    for path, arn in _secrets_of(deployment):
        command = deployment.command("secretsmanager", "describe-secret", "--secret-id", arn)
        yield _secret(deployment, arn, dotted(path)).of(arn.rpartition(":")[2], command)


def _secrets_of(deployment: Deployment) -> Iterator[tuple[Path, str]]:
    yield from ((("cluster", *path), arn) for path, arn in secret_arns(deployment.settings.cluster))
    accounting = deployment.settings.accounting
    if accounting is not None and accounting.existing is not None:
        yield ("accounting", "existing", "password_secret_arn"), accounting.existing.password_secret_arn


def _secret(deployment: Deployment, arn: str, path: str) -> Finding:
    """Judge whether the head node and ParallelCluster's provider may use a secret.

    ParallelCluster lets the head node's role read it (aws-parallelcluster 3.16.1, templates/cdk_builder_utils.py). The
    cluster's stack lets the provider describe a password and read a Munge key, as its validators do.
    """
    region, another = deployment.settings.region, f"change `{path}`"
    if arn.split(":")[2:4] != ["secretsmanager", region]:
        return Finding(FAIL, f"got {arn}; allowed: a secret of Secrets Manager in {region}", another)
    secret = deployment.account.find("secretsmanager", "describe_secret", SecretId=arn)
    if secret is None:
        return Finding(FAIL, f"there is no secret {arn}", another)
    if "DeletedDate" in secret:
        hint = f"`{deployment.command('secretsmanager', 'restore-secret', '--secret-id', arn)}`, or {another}"
        return Finding(FAIL, f"{arn} is scheduled for deletion on {secret['DeletedDate']:%Y-%m-%d}", hint)
    document = deployment.account.ask("secretsmanager", "get_resource_policy", SecretId=arn).get("ResourcePolicy")
    if document and any(each["Effect"] == "Deny" for each in _listed(json.loads(document)["Statement"])):
        hint = "check that it denies nothing to the provider and the head node"
        return Finding(WARN, f"the policy of {arn} denies something", hint)
    if key := secret.get("KmsKeyId"):
        hint = f"let {key} allow kms:Decrypt to whoever reads it, or encrypt the secret with aws/secretsmanager"
        return Finding(WARN, f"{arn} exists; reading it also takes kms:Decrypt on {key}", hint)
    return Finding(PASS, f"{arn} exists; the roles of the head node and of the provider may use it")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _allows(statement: dict[str, Any], action: str) -> bool:
    patterns = _listed(statement.get("Action", []))
    return statement["Effect"] == "Allow" and any(fnmatchcase(action.lower(), each.lower()) for each in patterns)


@check("fsx-service-role", "Service-linked role of FSx", calls=("iam:GetRole",))
def fsx_service_role(deployment: Deployment) -> Finding:
    """The first file system of the account would fail if the deployer may not create the role.

    Find the role with which FSx makes its network interfaces, and which it creates itself with its first use.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html
    """
    command = deployment.command("iam", "get-role", "--role-name", _SERVICE_ROLE)
    if deployment.account.find("iam", "get_role", RoleName=_SERVICE_ROLE):
        return Finding(PASS, f"{_SERVICE_ROLE} exists", command=command)
    words = ("iam", "create-service-linked-role", "--aws-service-name", "fsx.amazonaws.com")
    sentence = f"there is no {_SERVICE_ROLE} yet; FSx creates it if the deployer has iam:CreateServiceLinkedRole"
    return Finding(WARN, sentence, f"`{deployment.command(*words)}`", command)


CHECKS = (data_bucket, kms_key, secrets, fsx_service_role)
